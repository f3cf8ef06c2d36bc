/** Reads server-sent events from a response. `EventSource` is not used, because it cannot send headers. */

export interface ServerEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Longer lines and events are rejected. */
const MAX_CHARACTERS = 64 * 1024 * 1024;

/** Turns the text of a stream into events. Text may be cut anywhere, even between `\r` and `\n`. */
export class EventParser {
  private rest = "";
  private id: string | null = null;
  private event = "";
  private data: string[] = [];

  push(text: string): ServerEvent[] {
    this.rest += text;
    if (this.rest.length > MAX_CHARACTERS) throw new Error("an event of the stream is too long");
    const events: ServerEvent[] = [];
    for (;;) {
      const end = this.rest.search(/[\r\n]/);
      // A carriage return at the end may be followed by a line feed that has not arrived yet.
      if (end < 0 || (this.rest[end] === "\r" && end === this.rest.length - 1)) return events;
      const width = this.rest.startsWith("\r\n", end) ? 2 : 1;
      const line = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + width);
      if (line === "") {
        if (this.data.length > 0) {
          events.push({ id: this.id, event: this.event || "message", data: this.data.join("\n") });
        }
        this.event = "";
        this.data = [];
      } else {
        this.field(line);
      }
    }
  }

  private field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.event = value;
    else if (name === "data") this.data.push(value);
    else if (name === "id" && !value.includes("\0")) this.id = value;
  }
}

/**
 * Yields the events of a stream. Heartbeats arrive as comments; if nothing arrives for `silenceMs`, the connection
 * counts as lost.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  silenceMs: number,
  onActivity?: () => void,
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await withTimeout(reader.read(), silenceMs);
      if (done) return;
      onActivity?.();
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the connection is silent")), ms);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
