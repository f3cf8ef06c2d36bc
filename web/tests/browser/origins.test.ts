/** Pages of other origins: cross-origin requests, server-sent events and WebSockets, with short-lived tokens. */
import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, serve } from "./harness.mjs";
import type { Served } from "./harness.mjs";

/** Serves empty pages from an origin of its own. */
async function host(): Promise<{ server: Server; origin: string }> {
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>A page</title>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

let served: Served;
let browser: Browser;
let hosts: { server: Server; origin: string }[];
let page: Page;
let stranger: Page;
let thread: string;

beforeAll(async () => {
  hosts = await Promise.all([host(), host()]);
  const [own, other] = hosts as [(typeof hosts)[0], (typeof hosts)[0]];
  [served, browser] = await Promise.all([serve({ THREADKEEP_BROWSER_ORIGINS: own.origin }), launch()]);
  [page, stranger] = await Promise.all([browser.newPage(), browser.newPage()]);
  await Promise.all([page.goto(own.origin), stranger.goto(other.origin)]);
  thread = ((await served.call("POST", "v1/threads", {})) as { id: string }).id;
});

afterAll(async () => {
  await browser.close();
  await served.close();
  hosts.forEach(({ server }) => server.close());
});

const token = async (role: string) =>
  ((await served.call("POST", "v1/tokens", { roles: [role], expires_in: 600 })) as { token: string }).token;
const say = (text: string) => served.call("POST", `v1/threads/${thread}/messages`, { messages: [{ role: "user", text }] });

/** Calls the API from a page. The requests need a preflight, because they have a body and a header for the token. */
function callFrom(caller: Page, key: string) {
  return caller.evaluate(
    async ([url, key, thread]) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const send = (method: string, path: string, body: unknown) =>
        fetch(url + path, { method, headers, body: JSON.stringify(body) });
      try {
        const created = await send("POST", "v1/threads", { title: "From a page" });
        const patched = await send("PATCH", `v1/threads/${thread}`, { title: "Renamed" });
        const refused = await send("DELETE", `v1/threads/${thread}/messages/99`, undefined);
        const requestId = refused.headers.get("x-request-id");
        return [created.status, patched.status, refused.status, requestId !== null];
      } catch (error) {
        return [(error as Error).name];
      }
    },
    [served.url, key, thread] as const,
  );
}

it("answers pages of configured origins only", async () => {
  expect(await callFrom(page, await token("write"))).toEqual([201, 200, 404, true]);
  expect(await callFrom(stranger, await token("write"))).toEqual(["TypeError"]);
});

it("sends events to an EventSource, which reconnects without losing or repeating any", async () => {
  await page.evaluate(
    ([url, key, thread]) => {
      const seen: string[] = [];
      const source = new EventSource(`${url}v1/threads/${thread}/events?token=${key}`);
      source.addEventListener("commit", (event) => {
        const { events } = JSON.parse((event as MessageEvent<string>).data) as { events: { messages?: { text: string }[] }[] };
        seen.push(...events.flatMap(({ messages }) => (messages ?? []).map(({ text }) => text)));
      });
      Object.assign(globalThis, { seen, source, opened: new Promise((resolve) => (source.onopen = resolve)) });
    },
    [served.url, await token("read"), thread] as const,
  );
  await page.evaluate(async () => (globalThis as unknown as { opened: Promise<void> }).opened);
  const seen = (count: number) =>
    page
      .waitForFunction((count) => (globalThis as unknown as { seen: string[] }).seen.length >= count, count, { timeout: 60_000 })
      .then(() => page.evaluate(() => (globalThis as unknown as { seen: string[] }).seen));
  await say("one");
  expect(await seen(1)).toEqual(["one"]);
  await served.stop();
  await served.start();
  // The page asks for what follows the last event that it has received.
  await say("two");
  await say("three");
  expect(await seen(3)).toEqual(["one", "two", "three"]);
  await page.evaluate(() => (globalThis as unknown as { source: EventSource }).source.close());
}, 120_000);

it("sends updates to a WebSocket", async () => {
  const key = await token("read");
  await page.evaluate(
    ([url, key, thread]) => {
      const received: string[] = [];
      const socket = new WebSocket(`${url.replace("http", "ws")}v1/live?token=${key}`);
      socket.onmessage = ({ data }) => received.push(data as string);
      socket.onopen = () => socket.send(JSON.stringify({ type: "subscribe", thread }));
      Object.assign(globalThis, { received, socket });
    },
    [served.url, key, thread] as const,
  );
  const receives = (text: string) =>
    page.waitForFunction((text) => (globalThis as unknown as { received: string[] }).received.some((data) => data.includes(text)), text);
  await receives("subscribed");
  await say("over the socket");
  await receives("over the socket");
  const refused = await page.evaluate(
    (url) =>
      new Promise<boolean>((resolve) => {
        const socket = new WebSocket(`${url.replace("http", "ws")}v1/live?token=tkb_wrong`);
        socket.onopen = () => resolve(false);
        socket.onerror = () => resolve(true);
      }),
    served.url,
  );
  expect(refused).toBe(true);
});
