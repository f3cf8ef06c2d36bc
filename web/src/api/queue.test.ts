import { describe, expect, it } from "vitest";
import { Queue } from "./queue";

describe("a queue", () => {
  it("returns the values in order, then the error", async () => {
    const queue = new Queue<number>();
    const read: number[] = [];
    const reading = (async () => {
      for await (const value of queue.until(new AbortController().signal)) read.push(value);
    })();
    queue.push(1);
    await Promise.resolve();
    queue.push(2);
    queue.push(3);
    queue.fail(new Error("ended"));
    await expect(reading).rejects.toThrow("ended");
    expect(read).toEqual([1, 2, 3]);
  });

  it("ends like an aborted request", async () => {
    const queue = new Queue<number>();
    const stop = new AbortController();
    const reading = queue.until(stop.signal).next();
    stop.abort();
    await expect(reading).rejects.toMatchObject({ name: "AbortError" });
  });
});
