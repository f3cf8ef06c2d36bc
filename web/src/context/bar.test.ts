import { describe, expect, it } from "vitest";
import type { PartName } from "../api/types";
import { namedParts } from "./bar";

describe("the names in a bar", () => {
  const segments = (widths: Partial<Record<PartName, number>>) => Object.entries(widths).map(([part, width]) => ({ part: part as PartName, tokens: 1, width }));
  const named = (widths: Partial<Record<PartName, number>>, barWidth: number) => [...namedParts(segments(widths), barWidth, (part) => part)].sort();

  it("are those that fit", () => {
    expect(named({ summary: 60, history: 30, recalled: 10 }, 400)).toEqual(["history", "summary"]);
    expect(named({ summary: 60, history: 30, recalled: 10 }, 0)).toEqual([]);
  });

  it("leave out no part that is wider than one with a name", () => {
    expect(named({ system_prompt: 25, summary: 55, history: 20 }, 350)).toEqual(["summary"]);
  });
});
