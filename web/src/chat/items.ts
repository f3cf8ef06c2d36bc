/** Arranges the messages of a thread for display: a tool call appears together with its result. Pure. */
import type { Approval, Message, Part } from "../api/types";
import type { Found } from "../maps/answer";
import { turnOf } from "./turn";

export interface Call {
  id: string;
  name: string;
  arguments: unknown;
  /** `null` while there is no result. */
  result: { seq: number | null; output: string; isError: boolean; durationMs: number | null; data: unknown; at: string } | null;
}

export type Item =
  | { kind: "user"; message: Message; text: string }
  | { kind: "answer"; message: Message; text: string; reasoning: string; turn: string | null; error: string | null; approvals: string[]; found: Found[] }
  | { kind: "calls"; message: Message; calls: Call[] }
  | { kind: "decision"; message: Message; text: string }
  | { kind: "note"; message: Message; text: string };

export function itemsOf(messages: Message[]): Item[] {
  const results = new Map<string, Call["result"]>();
  for (const message of messages) {
    for (const part of message.parts) {
      if (!("tool_result" in part)) continue;
      const { call_id, output, is_error } = part.tool_result;
      const duration = metadata(message)["duration_ms"];
      results.set(call_id, { seq: message.seq, output, isError: is_error ?? false, durationMs: typeof duration === "number" ? duration : null, data: dataOf(message), at: message.created_at });
    }
  }
  const called = new Set<string>();
  const items: Item[] = [];
  /** What the tools of the present turn have found. */
  let found: Found[] = [];
  for (const message of messages) {
    const { calls, text, reasoning } = partsOf(message.parts);
    if (message.role === "user") {
      found = [];
      items.push({ kind: metadata(message)["approval"] ? "decision" : "user", message, text });
    } else if (message.role === "system") items.push({ kind: "note", message, text });
    else if (message.role === "assistant") {
      const approvals = metadata(message)["approvals"];
      const error = metadata(message)["error"];
      if (text || reasoning || calls.length === 0) {
        items.push({
          kind: "answer",
          message,
          text,
          reasoning,
          turn: turnOf(message),
          error: typeof error === "string" ? error : null,
          approvals: Array.isArray(approvals) ? approvals.filter((id): id is string => typeof id === "string") : [],
          found,
        });
        found = [];
      }
      if (calls.length > 0) {
        for (const { id } of calls) called.add(id);
        const done = calls.map((call) => ({ ...call, result: results.get(call.id) ?? null }));
        items.push({ kind: "calls", message, calls: done });
        found = [...found, ...done.flatMap(({ name, result }) => (result && !result.isError ? [{ name, data: result.data, at: result.at }] : []))];
      }
    } else {
      // The call of this result is not loaded.
      const orphans = message.parts.flatMap((part) => ("tool_result" in part && !called.has(part.tool_result.call_id) ? [part.tool_result] : []));
      if (orphans.length > 0) {
        const calls = orphans.map(({ call_id }) => ({ id: call_id, name: "…", arguments: {}, result: results.get(call_id) ?? null }));
        items.push({ kind: "calls", message, calls });
      }
    }
  }
  return items;
}

/** Leaves out calls without a result that wait for a decision: their approvals show them. */
export function withoutAsked(items: Item[], approvals: Iterable<Pick<Approval, "turn" | "tool">>): Item[] {
  const asked = new Set([...approvals].map(({ turn, tool }) => JSON.stringify([turn, tool])));
  return items.flatMap((item): Item[] => {
    if (item.kind !== "calls") return [item];
    const turn = turnOf(item.message);
    const calls = item.calls.filter(({ name, result }) => result !== null || !asked.has(JSON.stringify([turn, name])));
    return calls.length > 0 ? [{ ...item, calls }] : [];
  });
}

function partsOf(parts: Part[]): { text: string; reasoning: string; calls: Omit<Call, "result">[] } {
  const texts: string[] = [];
  const reasoning: string[] = [];
  const calls: Omit<Call, "result">[] = [];
  for (const part of parts) {
    if ("text" in part) texts.push(part.text);
    else if ("reasoning" in part) reasoning.push(part.reasoning);
    else if ("tool_call" in part) calls.push(part.tool_call);
    else if ("image" in part) texts.push(`![${part.image.description ?? ""}](${part.image.url})`);
    else if ("raw" in part) texts.push("```\n" + JSON.stringify(part.raw.json, null, 2) + "\n```");
  }
  return { text: texts.join("\n\n"), reasoning: reasoning.join("\n\n"), calls };
}

/** Returns the data of a tool's result; its text is what the model reads. */
function dataOf(message: Message): unknown {
  return (message.data as { value?: unknown } | null | undefined)?.value;
}

export function metadata(message: Message): Record<string, unknown> {
  return (message.metadata as Record<string, unknown> | undefined) ?? {};
}

/** Returns the question of a turn: the user's newest message before an answer. */
export function questionBefore(messages: Message[], seq: number): Message | null {
  return messages.findLast((message) => message.seq < seq && message.role === "user" && !metadata(message)["approval"]) ?? null;
}
