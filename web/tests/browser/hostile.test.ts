/** Content that tries to run code, to load something, or to look like something else: shown as text, wherever it can appear. */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launch, serve } from "./harness.mjs";
import type { Served } from "./harness.mjs";

const SCRIPT = `<script>globalThis.hostile = 1</script><img src="http://evil.example/x" onerror="globalThis.hostile = 1">`;
const MARKDOWN = [
  SCRIPT,
  "[click](javascript:globalThis.hostile=1)",
  "[click](JaVaScRiPt:globalThis.hostile=1)",
  "[click](&#106;avascript:globalThis.hostile=1)",
  "[click](data:text/html,<script>globalThis.hostile=1</script>)",
  "[click](vbscript:x)",
  "![picture](http://evil.example/pixel.png)",
  "![picture](javascript:globalThis.hostile=1)",
  "<iframe srcdoc='<script>parent.hostile=1</script>'></iframe>",
  "<svg><animate onbegin=globalThis.hostile=1 attributeName=x></svg>",
  "[ref]: javascript:globalThis.hostile=1\n\n[ref]",
  "<style>* { display: none }</style>",
  `| a | ${SCRIPT} |\n|---|---|\n| b | ${SCRIPT} |`,
  "```html\n" + SCRIPT + "\n```",
  "> ".repeat(3000) + "deep",
].join("\n\n");

let served: Served;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let faults: string[];

beforeAll(async () => {
  [served, browser] = await Promise.all([serve(), launch()]);
});

afterAll(async () => {
  await browser.close();
  await served.close();
});

beforeEach(async () => {
  faults = [];
  context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-GB" });
  page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => faults.push(error.message));
  // The browser reports what the content security policy refuses; no content may get that far.
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => {
    if (!request.url().startsWith(served.url)) faults.push(`request to ${request.url()}`);
  });
  await page.goto(`${served.url}#token=${served.token}`);
  await page.locator(".frame").waitFor();
});

afterEach(async () => {
  await expectSafe();
  await context.close();
  expect(faults).toEqual([]);
});

/** Checks that nothing ran, and that no text became an element or a link that can run code. */
async function expectSafe(): Promise<void> {
  expect(await page.evaluate(() => (globalThis as { hostile?: number }).hostile)).toBeUndefined();
  const found = await page.evaluate(() => {
    const elements = document.querySelectorAll("main script, main iframe, main style, main img, main svg animate, [onerror], [onbegin]");
    const links = [...document.querySelectorAll("a")].map((link) => link.href).filter((href) => !/^(https?|mailto):/.test(href));
    return { elements: [...elements].map((element) => element.nodeName), links };
  });
  expect(found).toEqual({ elements: [], links: [] });
}

async function go(address: string): Promise<void> {
  await page.evaluate((to) => (location.hash = to), address);
}

async function thread(title: string | null, messages: unknown[], metadata: Record<string, unknown> = {}): Promise<string> {
  const created = (await served.call("POST", "v1/threads", { title, metadata })) as { id: string };
  if (messages.length > 0) await served.call("POST", `v1/threads/${created.id}/messages`, { messages });
  return created.id;
}

describe("hostile content is text", () => {
  it("in messages and their Markdown, of both sides", async () => {
    const id = await thread("Messages", [
      { role: "user", text: MARKDOWN },
      { role: "assistant", text: MARKDOWN },
      { role: "system", text: MARKDOWN },
    ]);
    await go(`#/chat/${id}`);
    await page.locator('[data-seq="3"]').waitFor();
    // Rejected links are text; a click on them does nothing.
    for (const text of await page.locator("main").getByText("click").all()) await text.click({ force: true, timeout: 1000 }).catch(() => undefined);
    await expectSafe();
  });

  it("in titles, keys and names", async () => {
    const title = `${SCRIPT} \u202egpj.exe`;
    const id = await thread(title, [{ role: "user", author: SCRIPT, text: "hello" }, { role: "assistant", agent: SCRIPT, text: "hello" }]);
    for (const view of [`#/chat/${id}`, "#/threads", `#/context/${id}`, `#/activity/${id}`, "#/analytics"]) {
      await go(view);
      await page.locator("main, .side").getByText("<script>").filter({ visible: true }).first().waitFor();
      await page.locator("main .panel, main .message, main .threads, main .tiles").first().waitFor();
      await expectSafe();
    }
    // Marks that reverse the direction of text are made visible.
    expect(await page.locator(".thread-list").first().innerText()).not.toContain("\u202e");
  });

  it("in tool calls and their results", async () => {
    const id = await thread("Tools", [
      { role: "user", text: "go" },
      { role: "assistant", parts: [{ tool_call: { id: "c1", name: "look", arguments: { q: SCRIPT, [SCRIPT]: 1 } } }] },
      { role: "tool", parts: [{ tool_result: { call_id: "c1", output: SCRIPT + MARKDOWN } }] },
      { role: "assistant", parts: [{ tool_call: { id: "c2", name: "look", arguments: {} } }] },
      { role: "tool", parts: [{ tool_result: { call_id: "c2", output: SCRIPT, is_error: true } }] },
      { role: "assistant", parts: [{ reasoning: MARKDOWN }, { text: "done" }, { image: { url: "javascript:globalThis.hostile=1", description: SCRIPT } }] },
    ]);
    await go(`#/chat/${id}`);
    await page.locator("details.reasoning").waitFor();
    for (const call of await page.locator("details.call summary, details.reasoning summary").all()) await call.click();
    await page.locator("details.call pre").filter({ hasText: "<script>" }).first().waitFor();
  });

  it("in sources, with addresses that would run code", async () => {
    const fields = { cited_as: 1, url: "javascript:globalThis.hostile=1", text: MARKDOWN, [SCRIPT]: SCRIPT };
    const id = await thread("Sources", [
      { role: "user", text: "who?" },
      { role: "assistant", text: "They do [1].", sources: [{ kind: SCRIPT, id: SCRIPT, title: SCRIPT, fields }] },
    ]);
    await go(`#/chat/${id}`);
    await page.locator(".sources button").click();
    await page.getByRole("dialog").locator(".passage").waitFor();
    await expectSafe();
    expect(await page.getByRole("dialog").locator("a[href^='javascript']").count()).toBe(0);
  });

  it("in what the model gets, in hits and in what was recalled", async () => {
    const lines = Array.from({ length: 40 }, (_, index) => ({ role: index % 2 ? "assistant" : "user", text: `quince ${index} ${MARKDOWN}` }));
    const id = await thread("Contexts", lines);
    await go(`#/context/${id}?q=${encodeURIComponent(`quince ${SCRIPT}`)}`);
    await page.locator(".rendered li").first().waitFor();
    await page.getByRole("combobox", { name: "Recalled messages" }).selectOption("thread");
    await page.getByRole("slider", { name: "Window" }).fill("4");
    await page.locator(".recalled li").first().waitFor();
    await page.locator(".fate-map .cell").first().click();
    await page.locator(".cell-detail .text").waitFor();
    await expectSafe();
    await go("#/threads?q=quince");
    await page.locator(".hits li").first().waitFor();
  });

  it("in approvals and traces", async () => {
    const id = await thread("Approvals", [], { assistant: "gardener" });
    const text = `Remember that my seat is ${SCRIPT}`;
    const turn = (await served.call("POST", "v1/agents/gardener/turns", { text, thread: id })) as { turn: string };
    for (const view of ["#/activity", `#/chat/${id}`, `#/activity/${id}/${turn.turn}`]) {
      await go(view);
      await page.locator("main").getByText("<script>").first().waitFor();
      for (const details of await page.locator("main details summary").all()) await details.click();
      await expectSafe();
    }
  });

  it("in addresses of the page", async () => {
    for (const view of [
      `#/chat/${encodeURIComponent(SCRIPT)}`,
      `#/context/${encodeURIComponent(SCRIPT)}/${encodeURIComponent(SCRIPT)}`,
      `#/assistants/${encodeURIComponent(SCRIPT)}`,
      `#/threads?q=${encodeURIComponent(SCRIPT)}`,
      `#/chat?assistant=${encodeURIComponent(SCRIPT)}`,
    ]) {
      await go(view);
      await page.locator("main section").first().waitFor();
      await page.waitForTimeout(300);
      await expectSafe();
    }
    // The browser logs each answer with an error status.
    faults = faults.filter((fault) => !fault.includes("Failed to load resource"));
  });
});
