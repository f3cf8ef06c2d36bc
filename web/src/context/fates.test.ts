import { describe, expect, it } from "vitest";
import type { FateSpan, Report } from "../api/types";
import { segmentsOf } from "./bar";
import { cellsOf, countFates, differences, fateAt, summarised } from "./fates";

const span = (first_seq: number, last_seq: number, fate: FateSpan["fate"], tokens = 0): FateSpan => ({ first_seq, last_seq, fate, tokens });
const report = (messages: FateSpan[], budget?: number): Report => ({
  counter: "approximate",
  ...(budget === undefined ? {} : { budget }),
  tokens: { total: 100, system_prompt: 20, enrichment: 0, preferences: 0, summary: 10, recalled: 5, history: 60, question: 0, framing: 5 },
  messages,
});

const LONG = report([span(1, 90_000, "summarised"), span(90_001, 90_001, "recalled", 7), span(90_002, 99_990, "dropped"), ...Array.from({ length: 10 }, (_, index) => span(99_991 + index, 99_991 + index, "kept", 3))]);

describe("the fates of messages", () => {
  it("are counted", () => {
    expect(countFates(LONG)).toEqual({ summarised: 90_000, recalled: 1, dropped: 9_989, kept: 10 });
    expect(fateAt(LONG, 95_000)?.fate).toBe("dropped");
    expect(fateAt(LONG, 100_001)).toBeNull();
    expect(summarised(LONG)).toEqual({ first: 1, last: 90_000, count: 90_000 });
  });

  it("fill the cells without gap or overlap, and no included message is lost", () => {
    for (const max of [1, 7, 300, 1_000]) {
      const cells = cellsOf(LONG, max);
      expect(cells.length).toBeLessThanOrEqual(max);
      expect(cells[0]?.first).toBe(1);
      expect(cells.at(-1)?.last).toBe(100_000);
      expect(cells.slice(1).every((cell, index) => cell.first === (cells[index]?.last ?? 0) + 1)).toBe(true);
      const total = cells.flatMap(({ counts }) => Object.values(counts)).reduce((sum, count) => sum + count, 0);
      expect(total, `${max} cells`).toBe(100_000);
    }
    expect(cellsOf(LONG, 300).some(({ fate }) => fate === "recalled")).toBe(true);
    expect(cellsOf(report([]), 10)).toEqual([]);
  });

  it("differ between two contexts", () => {
    const one = report([span(1, 1, "dropped"), span(2, 2, "kept")]);
    const other = report([span(1, 1, "recalled"), span(2, 2, "kept")]);
    expect([...differences(one, other)]).toEqual([1]);
  });
});

describe("the bar of tokens", () => {
  it("is as wide as the budget, or as a larger context", () => {
    const width = (of: Report) => segmentsOf(of).reduce((sum, segment) => sum + segment.width, 0);
    expect(width(report([]))).toBeCloseTo(100);
    expect(width(report([], 400))).toBeCloseTo(25);
    expect(width(report([], 50))).toBeCloseTo(100);
  });
});
