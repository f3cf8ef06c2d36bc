import { describe, expect, it } from "vitest";
import type { Message } from "../api/types";
import { EMPTY, apply, merge } from "./feed";
import type { Feed } from "./feed";

const message = (seq: number, text = `text ${seq}`, revision = 0) => ({ seq, id: `id-${seq}`, text, revision }) as Message;
const feed = (...seqs: number[]): Feed => ({ ...EMPTY, messages: seqs.map((seq) => message(seq)) });
const seqs = (of: Feed) => of.messages.map(({ seq }) => seq);

describe("a thread that changes", () => {
  it("shows each message once, in order, however often and in whatever order updates arrive", () => {
    const appended = (...added: number[]) => ({ type: "appended" as const, messages: added.map((seq) => message(seq)) });
    const steps = [appended(3), appended(2, 3), appended(4), appended(4)];
    expect(seqs(steps.reduce(apply, feed(1, 2)))).toEqual([1, 2, 3, 4]);
  });

  it("keeps the newest revision", () => {
    const messages = merge([message(1, "new", 2)], [message(1, "old", 1)]);
    expect(messages.map(({ text }) => text)).toEqual(["new"]);
    expect(merge(messages, [message(1, "newer", 3)])[0]?.text).toBe("newer");
  });

  it("does not append after a gap", () => {
    const earlier = { ...feed(5, 6), hasNewer: true };
    expect(seqs(apply(earlier, { type: "appended", messages: [message(90)] }))).toEqual([5, 6]);
  });

  it("removes what was erased or trimmed, and adds nothing that is not loaded", () => {
    expect(seqs(apply(feed(1, 2, 3), { type: "erased", seq: 2, id: "id-2" }))).toEqual([1, 3]);
    expect(seqs(apply(feed(1, 2, 3), { type: "trimmed", first_seq: 3 }))).toEqual([3]);
    expect(seqs(apply(feed(3), { type: "replaced", message: message(1, "x", 1) }))).toEqual([3]);
  });
});
