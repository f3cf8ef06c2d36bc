import { describe, expect, it } from "vitest";
import { costOf } from "./cost";

const figures = (cost_usd: number, assistant: number, models: Record<string, number>) => ({ cost_usd, roles: { assistant }, models });

describe("the cost", () => {
  it("is a total only if each message of an assistant has one", () => {
    expect(costOf(figures(0, 0, {})).value).toMatch(/0\.00/);
    expect(costOf(figures(0, 6, { offline: 6 }))).toEqual({ value: "Free" });
    expect(costOf(figures(1.5, 6, { a: 6 }))).toEqual({ value: expect.stringContaining("1.50") as string });
  });

  it("is not known if some messages have none", () => {
    expect(costOf(figures(0, 60, { offline: 6 }))).toMatchObject({ value: "Not known", note: expect.stringContaining("6 of 60 assistant messages") as string });
    expect(costOf(figures(0, 6, { a: 6 }))).toEqual({ value: "Not known" });
    expect(costOf(figures(1.5, 60, { a: 6 }))).toMatchObject({ value: expect.stringMatching(/^At least .*1\.50$/) as string, note: expect.stringContaining("6 of 60") as string });
  });
});
