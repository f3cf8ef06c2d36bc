/** What the assistants for law and Kubernetes show: the sources of an answer, and what a request would change. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launch, serve, tesis } from "./harness.mjs";
import type { Served } from "./harness.mjs";

let served: Served;
let browser: Browser;
let page: Page;
let faults: string[];

beforeAll(async () => {
  [served, browser] = await Promise.all([serve({}, { withCluster: true }), launch()]);
  const corpus = join(served.folder, "tesis.jsonl");
  await writeFile(corpus, tesis());
  await served.run("tesis", "import", corpus);
}, 120_000);

afterAll(async () => {
  await browser.close();
  await served.close();
});

beforeEach(async () => {
  faults = [];
  page = await browser.newPage({ viewport: { width: 1280, height: 900 }, locale: "en-GB" });
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
});

afterEach(async () => {
  await page.close();
  expect(faults).toEqual([]);
});

async function open(assistant: string): Promise<string> {
  const { id } = (await served.call("POST", "v1/threads", { metadata: { assistant } })) as { id: string };
  await page.goto(`${served.url}#token=${served.token}`);
  await page.locator(".frame").waitFor();
  await page.evaluate((to) => (location.hash = to), `#/chat/${id}`);
  return id;
}

async function ask(text: string): Promise<void> {
  await page.getByLabel("Your message").fill(text);
  await page.getByLabel("Your message").press("Enter");
}

describe("the legal assistant", () => {
  it("shows the sources of an answer, and opens the passage", async () => {
    await open("tesis");
    await ask("¿Qué es la usucapión?");
    const sources = page.locator(".message.assistant .sources li");
    await expect.poll(() => sources.count()).toBe(2);
    await sources.filter({ hasText: "JUSTO TÍTULO" }).getByRole("button").click();
    const dialog = page.getByRole("dialog");
    await dialog.locator(".passage").getByText("El justo título es la causa generadora de la posesión.").waitFor();
    await dialog.getByText("9100022").first().waitFor();
  });
});

describe("the Kubernetes assistant", () => {
  const replicas = async (): Promise<unknown> => {
    const id = ((await served.call("POST", "v1/threads", { metadata: { assistant: "kubeops" } })) as { id: string }).id;
    return ((await served.call("POST", "v1/agents/kubeops/turns", { text: "how many replicas does the web deployment in prod have?", thread: id })) as { reply: string }).reply;
  };

  it("shows what a request would change, and changes it only after approval", async () => {
    await open("kubeops");
    await ask("scale the web deployment in prod to 5");
    const card = page.locator(".approval.pending");
    await card.locator("header b").filter({ hasText: /^kubectl scale deployment web --replicas=5 -n prod$/ }).waitFor();
    expect(await card.getByRole("list", { name: "What it would change" }).locator("li").allInnerTexts()).toEqual(["Dry run: 2 → 5 replicas"]);
    expect(await replicas()).toContain("2");
    await page.evaluate(() => (location.hash = "#/activity"));
    await page.locator(".turns li").filter({ hasText: "scale the web deployment in prod to 5" }).getByText("Waiting for approval").waitFor();
    await page.goBack();
    await card.getByRole("button", { name: "Approve" }).click();
    await page.locator(".approval.done").waitFor();
    await expect.poll(replicas).toContain("5");
  });

  it("changes nothing that was denied", async () => {
    const id = await open("kubeops");
    await ask("delete the cache deployment in prod");
    const card = page.locator(".approval.pending");
    await card.getByRole("list", { name: "What it would change" }).locator("li").first().waitFor();
    await card.getByRole("button", { name: "Deny" }).click();
    await card.getByLabel("Reason for denying (optional)").fill("not today");
    await card.getByRole("button", { name: "Deny" }).click();
    await page.locator(".approval.denied").waitFor();
    await page.locator(".turn-in-progress").waitFor({ state: "detached" });
    await served.call("POST", "v1/agents/kubeops/turns", { text: "list the deployments in prod", thread: id });
    await page.locator(".message.assistant").last().getByText("cache").first().waitFor();
  });
});
