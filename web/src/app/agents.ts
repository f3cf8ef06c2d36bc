/** The default assistant of a conversation, and the user's choice of another one. */
import type { Thread } from "../api/types";
import { agents } from "./session";
import { load, store } from "./storage";

/** The assistant that a thread was started with; empty if it does not say. */
export function assistantOf(thread: Thread | null): string {
  const named = thread && (thread.metadata as Record<string, unknown>)["assistant"];
  return typeof named === "string" ? named : "";
}

export function defaultAgent(thread: Thread | null): string {
  const candidates = [thread ? load(`agent.${thread.id}`) : null, assistantOf(thread), load("agent"), "general"];
  const known = agents.value.map(({ name }) => name);
  return candidates.find((name) => name !== null && known.includes(name)) ?? known[0] ?? "";
}

export function chooseAgent(thread: string | null, name: string): void {
  if (thread !== null) store(`agent.${thread}`, name);
  store("agent", name);
}
