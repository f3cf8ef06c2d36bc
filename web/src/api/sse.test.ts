import { describe, expect, it } from "vitest";
import { EventParser, readEvents } from "./sse";
import type { ServerEvent } from "./sse";

const STREAM = ": listening\n\nid: 7-a1b2c3d4\nevent: commit\ndata: {\"change\":7}\n\n: heartbeat\n\ndata: one\r\ndata: two\r\n\r\n";
const EVENTS: ServerEvent[] = [
  { id: "7-a1b2c3d4", event: "commit", data: '{"change":7}' },
  { id: "7-a1b2c3d4", event: "message", data: "one\ntwo" },
];

describe("server-sent events", () => {
  it("are the same wherever the stream is cut", () => {
    for (let size = 1; size <= STREAM.length; size += 1) {
      const parser = new EventParser();
      const events: ServerEvent[] = [];
      for (let start = 0; start < STREAM.length; start += size) events.push(...parser.push(STREAM.slice(start, start + size)));
      expect(events, `pieces of ${size}`).toEqual(EVENTS);
    }
  });

  it("end with an error if the connection is silent", async () => {
    const silent = new ReadableStream<Uint8Array>({});
    const read = async () => {
      for await (const event of readEvents(silent, 10)) expect.fail(JSON.stringify(event));
    };
    await expect(read()).rejects.toThrow("silent");
  });

  it("keep characters intact that arrive in pieces", async () => {
    const bytes = new TextEncoder().encode("data: año\n\n");
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const found: string[] = [];
    for await (const { data } of readEvents(body, 1000)) found.push(data);
    expect(found).toEqual(["año"]);
  });
});
