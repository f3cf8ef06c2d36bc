import { describe, expect, it } from "vitest";
import { compare, parseExport } from "./exchange";

const THREAD = { id: "t1", owner: { user: "me" }, title: "Trip", metadata: {}, state: {}, created_at: "2026-05-25T09:00:00Z" };
const message = (seq: number, text: string) => ({ seq, id: `m${seq}`, role: "user", parts: [{ text }], revision: 0, created_at: "2026-05-25T09:00:00Z" });
const lines = (...values: unknown[]) => values.map((value) => JSON.stringify(value)).join("\n") + "\n";
const HEADER = { threadkeep: { version: 1, exported_at: "2026-05-25T09:00:00Z" } };

describe("comparing exports", () => {
  it("ignores what an import assigns", () => {
    const source = parseExport(lines(HEADER, { thread: THREAD }, { message: message(3, "Hi") }));
    const copy = { ...message(3, "Hi"), seq: 1, revision: 2 };
    const target = parseExport(lines(HEADER, { thread: { ...THREAD, owner: "tenant" } }, { message: copy }));
    expect(source.size).toBe(2);
    expect(compare(source, target)).toEqual([]);
  });

  it("names what is missing and what differs", () => {
    const record = { document: { owner: { user: "me" }, document: { namespace: "app/notes", key: "a", value: 1, version: 3 } } };
    const source = parseExport(lines(HEADER, { thread: THREAD }, { message: message(1, "Hi") }, { message: message(2, "There") }, record));
    const changed = { ...record.document, document: { ...record.document.document, value: 2 } };
    const target = parseExport(lines({ thread: THREAD }, { message: message(1, "Ho") }, { document: changed }));
    expect(compare(source, target)).toEqual(["message t1/m1", "message t1/m2", "record user/app/notes/a"]);
  });

  it("keeps messages of different conversations apart", () => {
    const other = { ...THREAD, id: "t2" };
    const source = parseExport(lines({ thread: THREAD }, { message: message(1, "Hi") }, { thread: other }, { message: message(1, "Hi") }));
    const target = parseExport(lines({ thread: THREAD }, { message: message(1, "Hi") }, { thread: other }));
    expect(compare(source, target)).toEqual(["message t2/m1"]);
  });
});
