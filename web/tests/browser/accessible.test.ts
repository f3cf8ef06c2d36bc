/** Every view in both themes, narrow and wide: axe finds no violation, and nothing is wider than the window. */
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { board, citing, journal, launch, serve, tesis } from "./harness.mjs";
import type { Served } from "./harness.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const SIZES = { wide: { width: 1440, height: 900 }, narrow: { width: 360, height: 740 } };

let served: Served;
let browser: Browser;
let source: string;
let views: Record<string, { address: string; ready: string; then?: (page: Page) => Promise<void> }>;

beforeAll(async () => {
  [served, browser, source] = await Promise.all([serve({}, { withCluster: true }), launch(), readFile(AXE, "utf8")]);
  const create = async (body: unknown) => ((await served.call("POST", "v1/threads", body)) as { id: string }).id;
  const ask = async (agent: string, text: string, to: string) =>
    ((await served.call("POST", `v1/agents/${agent}/turns`, { text, thread: to })) as { turn: string }).turn;
  const trip = await create({ title: "A camping weekend by the lake", metadata: { assistant: "general" } });
  await served.call("POST", `v1/threads/${trip}/messages`, { messages: journal(60) });
  const turn = await ask("general", "What is Mila allergic to?", trip);
  const seats = await create({ title: "Seats", metadata: { assistant: "gardener" } });
  await ask("gardener", "Remember that my seat is the window.", seats);
  const route = await create({ metadata: { assistant: "underground" } });
  await ask("underground", "how do i get from brixton to canary wharf?", route);
  const trains = await create({ metadata: { assistant: "subway" } });
  await served.call("POST", `v1/threads/${trains}/messages`, { messages: board() });
  const empty = await create({ metadata: { assistant: "subway" } });
  const sums = await create({ title: "Sums" });
  const sum = await ask("general", "What is 17 * 23?", sums);
  const cited = await create({ title: "Sources" });
  await served.call("POST", `v1/threads/${cited}/messages`, { messages: [{ role: "user", text: "Who is allergic?" }, citing()] });
  const corpus = join(served.folder, "tesis.jsonl");
  await writeFile(corpus, tesis());
  await served.run("tesis", "import", corpus);
  const law = await create({ metadata: { assistant: "tesis" } });
  await ask("tesis", "¿Qué es la usucapión?", law);
  const operations = await create({ metadata: { assistant: "kubeops" } });
  await ask("kubeops", "scale the web deployment in prod to 5", operations);
  const question = encodeURIComponent("Who is allergic to nuts?");
  views = {
    "new chat": { address: "#/chat", ready: ".agent-cards" },
    chat: { address: `#/chat/${trip}`, ready: ".sources" },
    "a source": {
      address: `#/chat/${trip}`,
      ready: ".sources",
      then: async (page) => {
        await page.locator(".sources button").first().click();
        await page.locator("dialog .passage").waitFor();
      },
    },
    "sources with the same title": { address: `#/chat/${cited}`, ready: ".sources .chip" },
    "tool calls": {
      address: `#/chat/${sums}`,
      ready: "details.call",
      then: async (page) => {
        await page.locator("details.call summary").first().click();
      },
    },
    "a source of the law": {
      address: `#/chat/${law}`,
      ready: ".sources",
      then: async (page) => {
        await page.locator(".sources button").first().click();
        await page.locator("dialog .passage").waitFor();
      },
    },
    "approval with changes": { address: `#/chat/${operations}`, ready: ".approval .changes" },
    approval: { address: `#/chat/${seats}`, ready: ".approval" },
    "map of a journey": { address: `#/chat/${route}`, ready: "figure.map .map-stretch" },
    "large map": {
      address: `#/chat/${route}`,
      ready: "figure.map .map-stretch",
      then: async (page) => {
        await page.getByRole("button", { name: "Enlarge the map" }).click();
        await page.locator("dialog .map-stretch").first().waitFor();
      },
    },
    arrivals: { address: `#/chat/${trains}`, ready: ".strip li" },
    network: { address: "#/assistants/underground", ready: ".network-panel svg" },
    "line of a network": {
      address: "#/assistants/subway",
      ready: ".network-panel svg",
      then: async (page) => {
        await page.getByRole("button", { name: "A", exact: true }).click();
        await page.locator(".stations li").first().waitFor();
      },
    },
    attachments: {
      address: `#/chat/${empty}`,
      ready: ".composer",
      then: async (page) => {
        const file = (name: string, mimeType: string) => ({ name, mimeType, buffer: Buffer.from("text") });
        await page.locator(".composer input[type=file]").setInputFiles([file("a.md", "text/markdown"), file("b.png", "image/png")]);
        await page.locator(".attachments li.ready").first().waitFor();
        await page.locator(".attachments li.failed").first().waitFor();
      },
    },
    "context inspector": { address: `#/context/${trip}?q=${question}`, ready: ".rendered li" },
    "two policies": {
      address: `#/context/${trip}?q=${question}`,
      ready: ".rendered li",
      then: async (page) => {
        await page.getByRole("button", { name: "Compare policies" }).click();
        // A narrow window shows one policy at a time.
        const second = page.getByRole("button", { name: "Policy B" });
        if (await second.isVisible()) await second.click();
        const column = page.locator(".column-view").nth(1);
        await column.locator(".recalled li").first().waitFor();
        await column.locator(".fate-map .cell").first().click();
      },
    },
    "context of a turn": { address: `#/context/${trip}/${turn}`, ready: ".fate-map" },
    threads: { address: "#/threads", ready: ".threads" },
    search: { address: "#/threads?q=stove", ready: ".hits" },
    activity: { address: "#/activity", ready: ".turns" },
    trace: { address: `#/activity/${sums}/${sum}`, ready: ".timeline" },
    assistants: { address: "#/assistants/general", ready: ".graph" },
    analytics: { address: "#/analytics", ready: ".bars" },
  };
});

afterAll(async () => {
  await browser.close();
  await served.close();
});

interface Violation {
  id: string;
  nodes: { html: string; failureSummary: string }[];
}

describe.each(["light", "dark"] as const)("in %s colours", (colorScheme) => {
  it.each(Object.keys(SIZES) as (keyof typeof SIZES)[])(
    "every view is accessible, %s",
    async (size) => {
      const context = await browser.newContext({ viewport: SIZES[size], colorScheme, locale: "en-GB", reducedMotion: "reduce" });
      const page = await context.newPage();
      page.setDefaultTimeout(20_000);
      await page.goto(`${served.url}#token=${served.token}`);
      await page.locator(".frame").waitFor();
      const problems: Record<string, unknown> = {};
      for (const [name, { address, ready, then }] of Object.entries(views)) {
        await page.evaluate((to) => (location.hash = to), address);
        await page.locator(ready).first().waitFor();
        await then?.(page);
        // The page's content security policy does not apply to this script.
        await page.evaluate(source);
        const { violations } = await page.evaluate<{ violations: Violation[] }>("axe.run(document, { resultTypes: ['violations'] })");
        const found = violations.map(({ id, nodes }) => ({ id, nodes: nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary.slice(0, 300)}`) }));
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (found.length > 0 || overflow > 0) problems[name] = { found, overflow };
        await page.keyboard.press("Escape");
      }
      await context.close();
      expect(problems).toEqual({});
    },
    180_000,
  );
});

it("the sign-in form is accessible", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const context = await browser.newContext({ colorScheme, locale: "en-GB" });
    const page = await context.newPage();
    await page.goto(served.url);
    await page.getByLabel("Token or key").waitFor();
    await page.evaluate(source);
    const { violations } = await page.evaluate<{ violations: Violation[] }>("axe.run(document)");
    expect(violations).toEqual([]);
    await context.close();
  }
});
