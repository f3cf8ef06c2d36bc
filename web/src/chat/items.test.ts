import { describe, expect, it } from "vitest";
import type { Message } from "../api/types";
import { itemsOf, withoutAsked } from "./items";

const message = (seq: number, role: Message["role"], parts: Message["parts"]): Message => ({ seq, id: `${seq}`, role, text: "", parts, created_at: "2026-11-28T12:00:00Z", metadata: { turn: "t1" } }) as unknown as Message;
const call = (id: string, name: string) => ({ tool_call: { id, name, arguments: {} } }) as unknown as Message["parts"][number];
const result = (id: string) => ({ tool_result: { call_id: id, output: "x" } }) as unknown as Message["parts"][number];

describe("calls that wait for a decision", () => {
  const messages = [message(1, "assistant", [call("c1", "look"), call("c2", "change")]), message(2, "tool", [result("c1")])];
  const shown = (list: Message[], approvals: { turn: string; tool: string }[]) => withoutAsked(itemsOf(list), approvals).flatMap((item) => (item.kind === "calls" ? item.calls.map(({ name }) => name) : []));

  it("are shown by their approvals only", () => {
    expect(shown(messages, [{ turn: "t1", tool: "change" }])).toEqual(["look"]);
    expect(shown(messages, [{ turn: "t2", tool: "change" }, { turn: "t1", tool: "look" }])).toEqual(["look", "change"]);
    expect(withoutAsked(itemsOf([message(1, "assistant", [call("c2", "change")])]), [{ turn: "t1", tool: "change" }])).toEqual([]);
  });

  it("are shown when they have results", () => {
    expect(shown([...messages, message(3, "tool", [result("c2")])], [{ turn: "t1", tool: "change" }])).toEqual(["look", "change"]);
  });
});
