/** Documents that are attached to a question. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launch, serve } from "./harness.mjs";
import type { Served } from "./harness.mjs";

const HOURS = "# Boathouse\n\nThe boathouse opens at nine and closes at half past six. Canoes must be back by six.\n";

let served: Served;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let faults: string[];
/** Whether the test expects errors in the console, because the server rejects a file. */
let expectsErrors = false;

beforeAll(async () => {
  [served, browser] = await Promise.all([serve(), launch()]);
});

afterAll(async () => {
  await browser.close();
  await served.close();
});

beforeEach(async () => {
  faults = [];
  expectsErrors = false;
  context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB" });
  page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && !expectsErrors && faults.push(message.text()));
  page.on("request", (request) => {
    if (!request.url().startsWith(served.url)) faults.push(`request to ${request.url()}`);
  });
  await page.goto(`${served.url}#token=${served.token}`);
  await page.locator(".frame").waitFor();
});

afterEach(async () => {
  expect(await page.evaluate(() => (globalThis as { hostile?: number }).hostile)).toBeUndefined();
  await context.close();
  expect(faults).toEqual([]);
});

const file = (name: string, content: string | Buffer, mimeType = "text/markdown") => ({ name, mimeType, buffer: Buffer.from(content) });
const attach = (...files: ReturnType<typeof file>[]) => page.locator(".composer input[type=file]").setInputFiles(files);
const chips = () => page.locator(".attachments li");
const files = async () => ((await served.call("GET", "v1/files?limit=100")) as { data: { filename: string }[] }).data.map(({ filename }) => filename);

async function chat(assistant: string): Promise<string> {
  const { id } = (await served.call("POST", "v1/threads", { metadata: { assistant } })) as { id: string };
  await page.evaluate((to) => (location.hash = to), `#/chat/${id}`);
  await page.getByLabel("Your message").waitFor();
  return id;
}

describe("attachments", () => {
  it("are uploaded, named in the question, and cited in the answer", async () => {
    await chat("general");
    // The button opens the browser's dialog, also by keyboard.
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Attach documents" }).press("Enter");
    await (await chooser).setFiles([file("boathouse.md", HOURS)]);
    await page.locator(".attachments li.ready").waitFor();
    await expect.poll(() => page.locator(".composer [role=status]").innerText()).toBe("1 document is attached");
    await page.getByLabel("Your message").fill("When does the boathouse close?");
    await page.getByLabel("Your message").press("Enter");
    await page.locator(".message.user").getByText("boathouse.md").waitFor();
    await page.locator(".sources").getByText("boathouse.md").first().waitFor();
    await page.locator(".message.assistant").getByText("half past six").first().waitFor();
    await expect.poll(() => chips().count()).toBe(0);
    expect(await files()).toContain("boathouse.md");
  });

  it("can be dropped and pasted, also as CSV and JSON", async () => {
    await chat("general");
    const give = (event: "drop" | "paste", name: string, content: string, type: string) =>
      page.evaluate(
        ([event, name, content, type]) => {
          const data = new DataTransfer();
          data.items.add(new File([content ?? ""], name ?? "", { type: type ?? "" }));
          const init = { bubbles: true, cancelable: true };
          const target = document.getElementById("composer");
          target?.dispatchEvent(event === "drop" ? new DragEvent("drop", { ...init, dataTransfer: data }) : new ClipboardEvent("paste", { ...init, clipboardData: data }));
        },
        [event, name, content, type],
      );
    await give("drop", "prices.csv", "boat;price\ncanoe;14", "text/csv");
    await give("paste", "config.json", `{"mooring": "pier 7"}`, "application/json");
    await expect.poll(() => page.locator(".attachments li.ready").count()).toBe(2);
    expect(await files()).toEqual(expect.arrayContaining(["prices.csv", "config.json"]));
  });

  it("that are removed are deleted, and the others survive a reload", async () => {
    const id = await chat("general");
    await attach(file("keep.md", "kept"), file("drop.md", "dropped"));
    await expect.poll(() => page.locator(".attachments li.ready").count()).toBe(2);
    await page.getByRole("button", { name: "Remove drop.md" }).click();
    await expect.poll(files).not.toContain("drop.md");
    await page.reload();
    await page.locator(".attachments li").getByText("keep.md").waitFor();
    await expect.poll(() => chips().count()).toBe(1);
    expect(page.url()).toContain(id);
  });

  it("that the server rejects show its reason, and are not sent", async () => {
    expectsErrors = true;
    const id = await chat("general");
    await attach(file("paper.pdf", Buffer.from([37, 80, 68, 70, 0, 255, 1]), "application/pdf"));
    await page.locator(".attachments li.failed").getByText("expected a text, Markdown or HTML file").waitFor();
    await page.getByLabel("Your message").fill("What is in it?");
    await page.getByLabel("Your message").press("Enter");
    await page.locator(".message.assistant .meta").first().waitFor();
    const messages = (await served.call("GET", `v1/threads/${id}/messages?order=asc`)) as { data: { text: string }[] };
    expect(messages.data[0]?.text).toBe("What is in it?");
  });

  it("that cannot be used are recognised before they are sent", async () => {
    await chat("general");
    await attach(file("photo.png", Buffer.from([137, 80, 78, 71]), "image/png"));
    await page.locator(".attachments li.failed").getByText("Images are not supported").waitFor();
    // By its path, because the content of a large file would be sent to the browser in one message.
    const large = join(served.folder, "large.md");
    await writeFile(large, Buffer.alloc(16 * 1024 * 1024 + 1, 120));
    await page.locator(".composer input[type=file]").setInputFiles(large);
    await page.locator(".attachments li.failed").getByText("larger than 16 MiB").waitFor();
    expect(await files()).not.toContain("photo.png");
    await page.getByRole("button", { name: "Remove photo.png" }).click();
    await chat("subway");
    await attach(file("notes.md", "notes"));
    await page.getByText("The Subway assistant cannot read documents. Choose another assistant, for example General.").waitFor();
  });

  it("with hostile names are text", async () => {
    await chat("general");
    const name = "`<img src=x onerror=globalThis.hostile=1>` [x](javascript:globalThis.hostile=1) \u202egpj.md";
    await attach(file(name, HOURS));
    await page.locator(".attachments li.ready").waitFor();
    expect(await page.locator(".attachments .name").innerText()).not.toContain("\u202e");
    await page.getByLabel("Your message").fill("When must canoes be back?");
    await page.getByLabel("Your message").press("Enter");
    await page.locator(".message.assistant .meta").first().waitFor();
    expect(await page.locator("main img, main [onerror], main a[href^='javascript']").count()).toBe(0);
    expect(await page.locator(".message.user .bubble code").innerText()).toContain("<img src=x");
  });
});
