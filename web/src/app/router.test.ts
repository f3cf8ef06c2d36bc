import { describe, expect, it } from "vitest";
import { readHandover } from "./fragment";
import { formatRoute, parseRoute } from "./router";
import type { Route } from "./router";

describe("addresses of views", () => {
  it("are read as they were written", () => {
    const routes: Route[] = [
      { view: "chat", thread: null, at: null, agent: "general" },
      { view: "chat", thread: "0199-a/b?c#d", at: 17, agent: null },
      { view: "context", thread: "t", turn: "u 1", question: "¿Qué? & más" },
      { view: "threads", query: "a+b %" },
      { view: "activity", thread: "t", turn: "u" },
      { view: "assistants", agent: "my agent" },
      { view: "analytics" },
    ];
    for (const route of routes) expect(parseRoute(formatRoute(route))).toEqual(route);
  });

  it("that are invalid lead to the chat", () => {
    const chat: Route = { view: "chat", thread: null, at: null, agent: null };
    for (const fragment of ["", "#", "#/", "#/nowhere", "#/chat?at=-1", "#/chat/%E0%A4%A"]) {
      expect(parseRoute(fragment), fragment).toEqual(chat);
    }
  });

  it("hand over a secret", () => {
    expect(readHandover("#token=tkb_a.b&assistant=general")).toEqual({ secret: "tkb_a.b", agent: "general" });
    expect(readHandover("#/chat?at=3")).toBeNull();
  });
});
