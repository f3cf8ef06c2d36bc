/** Which turn a message belongs to. Pure. */
import type { Message } from "../api/types";

/** Returns the id of the turn that stored a message; `null` if no turn stored it. */
export function turnOf(message: Message): string | null {
  const turn = (message.metadata as Record<string, unknown> | undefined)?.["turn"];
  return typeof turn === "string" ? turn : null;
}
