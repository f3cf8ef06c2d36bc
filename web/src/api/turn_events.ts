/** The events of a running turn, as the server sends them. */
import type { ApprovalTrace, ToolCallTrace, Turn, TurnEvent } from "./types";

/** Reads an event from its name and its data. Returns null for an event that this page does not know. */
export function turnEvent(name: string, data: unknown): TurnEvent | null {
  switch (name) {
    case "turn.started":
      return { type: "started", ...(data as { thread: string; turn: string; agent: string }) };
    case "token":
      return { type: "token", text: (data as { text: string }).text };
    case "token.restarted":
      return { type: "restarted" };
    case "tool.started":
      return { type: "tool_started", ...(data as { id: string; name: string; arguments: unknown }) };
    case "tool.finished":
      return { type: "tool_finished", call: data as ToolCallTrace };
    case "approval.requested":
      return { type: "approval", approval: data as ApprovalTrace };
    case "turn.completed":
    case "turn.failed":
      return { type: "ended", turn: data as Turn };
    default:
      return null;
  }
}
