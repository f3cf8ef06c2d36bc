/** The page without a server: its engine and its conversations are in the browser. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launch, serve } from "./harness.mjs";
import type { Served } from "./harness.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
/** A page that was built without the compiler for browsers has no offline page. */
const isBuilt = existsSync(fileURLToPath(new URL("../../dist/offline/index.html", import.meta.url)));

let served: Served;
let browser: Browser;
let context: BrowserContext;
let faults: string[];

describe.skipIf(!isBuilt)("the offline page", () => {
  beforeAll(async () => {
    [served, browser] = await Promise.all([serve(), launch()]);
  });

  afterAll(async () => {
    await browser.close();
    await served.close();
  });

  beforeEach(async () => {
    faults = [];
    context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB" });
    context.setDefaultTimeout(30_000);
    context.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(served.url) && !/^(blob|data|about):/.test(url)) faults.push(`request to ${url}`);
    });
  });

  afterEach(async () => {
    await context.close();
    await served.start();
    expect(faults).toEqual([]);
  });

  async function open(address = "#/chat", expectsErrors = false): Promise<Page> {
    const page = await context.newPage();
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !expectsErrors) faults.push(message.text());
    });
    await page.goto(`${served.url}offline/${address}`);
    await page.locator(".frame").waitFor();
    return page;
  }

  const send = async (page: Page, text: string) => {
    const composer = page.getByLabel("Your message");
    await composer.fill(text);
    const answers = await page.locator(".message.assistant").count();
    await composer.press("Enter");
    await expect.poll(() => page.locator(".message.assistant, .approval").count()).toBeGreaterThan(answers);
    await page.locator(".turn-in-progress").waitFor({ state: "detached" });
  };
  const go = (page: Page, address: string) => page.evaluate((to) => (location.hash = to), address);
  const threadOf = (page: Page) => page.evaluate(() => location.hash.replace(/^#\/chat\//, "").replace(/\?.*$/, ""));
  /** Waits until the service worker serves the page. */
  const waitForWorker = (page: Page) => page.waitForFunction(() => navigator.serviceWorker.controller !== null);

  it("answers from what was said, and calls no server", async () => {
    const page = await open();
    const calls: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/v1/")) calls.push(request.url());
    });
    await send(page, "The key to the shed is under the blue pot.");
    await send(page, "Where is the key to the shed?");
    await page.locator(".message.assistant").getByText("under the blue pot").first().waitFor();
    // Another conversation remembers it.
    await go(page, "#/chat");
    await page.locator(".agent-cards").waitFor();
    await send(page, "Where is the key to the shed?");
    await page.locator(".message.assistant").getByText("under the blue pot").first().waitFor();
    expect(calls).toEqual([]);
  });

  it("opens when the server cannot be reached, and still has its conversations", async () => {
    const page = await open("#/chat", true);
    await send(page, "My locker has the number 271.");
    await waitForWorker(page);
    await served.stop();
    await page.reload();
    await page.locator(".frame").waitFor();
    await page.getByText("My locker has the number 271.").first().waitFor();
    await send(page, "What number does my locker have?");
    await page.locator(".message.assistant").last().getByText("271").first().waitFor();
    const other = await open("#/threads", true);
    await other.locator("#search").fill("locker");
    await other.locator(".hits li").first().waitFor();
  });

  it("finishes a turn whose tab was reloaded", async () => {
    const page = await open();
    await page.getByLabel("Your message").fill("The ferry leaves at half past six.");
    await page.getByLabel("Your message").press("Enter");
    await page.locator(".message.user").waitFor();
    await page.reload();
    await page.locator(".message.assistant").first().waitFor();
    await page.locator(".turn-in-progress").waitFor({ state: "detached" });
    await send(page, "When does the ferry leave?");
    await page.locator(".message.assistant").last().getByText("half past six").first().waitFor();
  });

  it("erases what it should forget", async () => {
    const page = await open();
    await send(page, "My blood type is AB.");
    await send(page, "Forget what I said about my blood type.");
    await page.getByText("Shall I erase it for good?").waitFor();
    await send(page, "Yes.");
    await page.getByText("erase_messages").waitFor();
    await expect.poll(() => page.getByText("My blood type is AB.").count()).toBe(0);
  });

  it("shows in each tab what another one writes", async () => {
    const first = await open();
    await send(first, "The meeting is on Monday.");
    const thread = await threadOf(first);
    const second = await open(`#/chat/${thread}`);
    await second.getByText("The meeting is on Monday.").first().waitFor();
    await send(first, "It starts at nine.");
    await second.getByText("It starts at nine.").first().waitFor();
  });

  it("shows what a model would get", async () => {
    const page = await open();
    await send(page, "Ana plants walnuts in October.");
    await go(page, `#/context/${await threadOf(page)}?q=${encodeURIComponent("When are walnuts planted?")}`);
    await page.getByText("Ana plants walnuts in October.").first().waitFor();
  });

  it("searches attached documents", async () => {
    const page = await open();
    const text = "# Opening hours\n\nThe pool opens at seven on weekdays.";
    await page.locator(".composer input[type=file]").setInputFiles({ name: "pool.md", mimeType: "text/markdown", buffer: Buffer.from(text) });
    await page.locator(".attachments li.ready").waitFor();
    await send(page, "When does the pool open on weekdays?");
    await page.getByText("opens at seven").first().waitFor();
  });

  it("copies everything to the server and back, and compares", async () => {
    const page = await open();
    await send(page, "The spare tyre is in the cellar.");
    const thread = await threadOf(page);
    const copy = async (name: string) => {
      await page.getByRole("button", { name }).click();
      await page.locator("dialog").getByRole("button", { name: "Copy", exact: true }).click();
    };
    await go(page, "#/threads");
    await copy("Copy to the server");
    await page.locator("dialog").getByText("You are not signed in").waitFor();
    faults = faults.filter((fault) => !fault.includes("401"));
    await page.goto(`${served.url}#token=${served.token}`);
    await page.locator(".frame").waitFor();
    await page.goto(`${served.url}offline/#/threads`);
    await page.locator(".frame").waitFor();
    await copy("Copy to the server");
    await page.locator("dialog").getByText("Nothing is missing").waitFor();
    const { data } = (await served.call("GET", `v1/threads/${thread}/messages?order=asc`)) as { data: { text: string }[] };
    expect(data[0]?.text).toBe("The spare tyre is in the cellar.");

    const title = "Only on the server";
    const { id } = (await served.call("POST", "v1/threads", { title })) as { id: string };
    await served.call("POST", `v1/threads/${id}/messages`, { messages: [{ role: "user", text: "Written on the server." }] });
    await page.locator("dialog").getByRole("button", { name: "Close" }).click();
    await copy("Copy from the server");
    await page.locator("dialog").getByText("Nothing is missing").waitFor();
    await page.locator("dialog").getByRole("button", { name: "Close" }).click();
    await page.getByRole("link", { name: title }).first().click();
    await page.getByText("Written on the server.").first().waitFor();
  });

  it("erases everything in this browser", async () => {
    const page = await open();
    await send(page, "My hamster is called Pico.");
    await go(page, "#/threads");
    await page.getByRole("button", { name: /^Erase all/ }).click();
    await page.locator("dialog input").fill("me");
    await page.locator("dialog").getByRole("button", { name: "Erase for good" }).click();
    await page.getByText("There are no conversations yet.").first().waitFor();
    const databases = await page.evaluate(async () => {
      const request = indexedDB.open("threadkeep");
      const database = await new Promise<IDBDatabase>((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(new Error("cannot open the database"));
      });
      const texts: string[] = [];
      for (const store of database.objectStoreNames) {
        const all = database.transaction(store).objectStore(store).getAll();
        await new Promise((resolve) => (all.onsuccess = resolve));
        const decode = (value: unknown): string =>
          value instanceof ArrayBuffer || ArrayBuffer.isView(value) ? new TextDecoder().decode(value) : JSON.stringify(value);
        for (const row of all.result as unknown[]) {
          texts.push(decode(row));
          if (row && typeof row === "object") texts.push(...Object.values(row).map(decode));
        }
      }
      database.close();
      return texts.join("\n");
    });
    expect(databases).not.toContain("Pico");
  });

  it("has no accessibility violation, day and night", async () => {
    const source = await readFile(AXE, "utf8");
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await open();
      await page.emulateMedia({ colorScheme });
      await go(page, "#/threads");
      await page.getByRole("button", { name: "Copy to the server" }).click();
      await page.locator("dialog").waitFor();
      // The page's content security policy does not apply to this script.
      await page.evaluate(source);
      const found = await page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))");
      expect(found).toEqual([]);
      await page.close();
    }
  });

  it("does not copy the conversations of all users of a tenant", async () => {
    const page = await open();
    // What the server responds to a key of a whole tenant.
    await page.route("**/v1/caller", (route) => route.fulfill({ json: { tenant: "local", user: null, roles: ["read", "write"] } }));
    await go(page, "#/threads");
    await page.getByRole("button", { name: "Copy from the server" }).click();
    await page.locator("dialog").getByRole("button", { name: "Copy", exact: true }).click();
    await page.locator("dialog").getByText("for a whole tenant").waitFor();
  });

  it("may compile its engine, and nothing else", async () => {
    const policy = (path: string) => fetch(served.url + path).then((response) => response.headers.get("content-security-policy") ?? "");
    expect(await policy("offline/")).toContain("script-src 'self' 'wasm-unsafe-eval';");
    expect(await policy("")).not.toContain("wasm-unsafe-eval");
    for (const part of ["unsafe-inline", "'unsafe-eval'", "*"]) expect(await policy("offline/")).not.toContain(part);
  });
});
