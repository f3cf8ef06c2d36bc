import { describe, expect, it } from "vitest";
import { Latest, whileTyping } from "./latest";

describe("the latest task", () => {
  it("runs after the running one, and the tasks between them do not run", async () => {
    const latest = new Latest();
    const ran: number[] = [];
    const ends: (() => void)[] = [];
    const task = (name: number) => () =>
      new Promise<void>((resolve) => {
        ran.push(name);
        ends.push(resolve);
      });
    for (const name of [1, 2, 3]) latest.run(task(name));
    expect(ran).toEqual([1]);
    ends[0]?.();
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(ran).toEqual([1, 3]);
    ends[1]?.();
    await new Promise((resolve) => setTimeout(resolve, 0));
    latest.run(task(4));
    expect(ran).toEqual([1, 3, 4]);
  });
});

describe("a query that is being typed", () => {
  it("has its last word as a prefix", () => {
    expect(whileTyping("walnu")).toBe("walnu walnu*");
    expect(whileTyping("copper lad")).toBe("copper lad lad*");
    expect(whileTyping("año nue")).toBe("año nue nue*");
  });

  it("is unchanged if no word is being typed", () => {
    for (const query of ["", "wa", "walnut ", '"copper lad', "role:user", "-copper", "walnu*", "c++"]) expect(whileTyping(query)).toBe(query);
  });
});
