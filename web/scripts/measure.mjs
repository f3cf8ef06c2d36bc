/**
 * Measures the page with a long conversation: how smoothly it scrolls, and how long a search takes while one types. Runs against the
 * server, and against the engine in the browser if the page was built with it:
 *
 *     cargo build --release && THREADKEEP_PROGRAM=target/release/threadkeep npm run measure -- 100000
 *
 * Prints percentiles in milliseconds. A headless browser draws without a graphics processor.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { launch, serve } from "../tests/browser/harness.mjs";

const MESSAGES = Number(process.argv[2] ?? 100_000);
const THREAD = "019e1833-f9c0-7920-8d1e-8a8dbbb6d7bc";
const FRAMES = 600;
const TYPED = ["harbour lights", "copper ladder", "walnut garden"];
const WORDS = "walnut harbour ladder orchard copper violin garden meadow lantern river silver window marble thunder basket winter saddle anchor candle bridge lights".split(" ");

/** An export with one conversation. The words follow from the position. */
function conversation() {
  const lines = [
    JSON.stringify({ threadkeep: { version: 1, exported_at: "2026-05-25T09:00:00Z" } }),
    JSON.stringify({ thread: { id: THREAD, owner: { user: "me" }, title: "A long conversation", metadata: { assistant: "general" }, state: {}, created_at: "2020-01-01T00:00:00Z" } }),
  ];
  let state = 7;
  const next = () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648);
  for (let seq = 1; seq <= MESSAGES; seq += 1) {
    const words = Array.from({ length: 8 + (next() % 40) }, () => WORDS[next() % WORDS.length]);
    const text = `${words.join(" ")} ${seq}.`;
    const id = `019e1833-f9c1-7a0d-b2c9-${seq.toString(16).padStart(12, "0")}`;
    const created_at = new Date(Date.UTC(2020, 0, 1) + seq * 60_000).toISOString();
    lines.push(JSON.stringify({ message: { seq, id, role: seq % 2 === 1 ? "user" : "assistant", parts: [{ text }], revision: 0, created_at } }));
  }
  return lines.join("\n") + "\n";
}

const percentile = (/** @type {number[]} */ values, /** @type {number} */ share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? NaN;
const report = (/** @type {string} */ name, /** @type {number[]} */ values) =>
  console.log(`${name}: p50 ${percentile(values, 0.5).toFixed(1)} ms, p95 ${percentile(values, 0.95).toFixed(1)} ms, max ${Math.max(...values).toFixed(1)} ms (${values.length})`);

/** Scrolls up through the conversation, and returns the times between frames. @param {import("playwright-core").Page} page */
async function scroll(page) {
  await page.evaluate((to) => (location.hash = to), `#/chat/${THREAD}`);
  await page.locator("[data-seq]").last().waitFor();
  await page.waitForTimeout(1000);
  return page.evaluate(async (count) => {
    const element = document.querySelector(".chat .scroll");
    if (!element) throw new Error("no conversation");
    const times = [];
    let last = await new Promise((resolve) => requestAnimationFrame(resolve));
    for (let frame = 0; frame < count; frame += 1) {
      element.scrollTop -= 120;
      const now = await new Promise((resolve) => requestAnimationFrame(resolve));
      times.push(now - last);
      last = now;
    }
    return times;
  }, FRAMES);
}

/** Types queries letter by letter, and returns the time from each letter to its hits. @param {import("playwright-core").Page} page */
async function search(page) {
  await page.evaluate(() => (location.hash = "#/threads"));
  await page.locator("#search").waitFor();
  const times = [];
  for (const query of TYPED) {
    await page.locator("#search").fill("");
    for (let length = 3; length <= query.length; length += 1) {
      times.push(
        await page.evaluate(async (text) => {
          const field = document.querySelector("#search");
          if (!(field instanceof HTMLInputElement)) throw new Error("no field");
          const start = performance.now();
          field.value = text;
          field.dispatchEvent(new InputEvent("input", { bubbles: true }));
          const isBusy = () => document.querySelector(".threads-view")?.getAttribute("aria-busy") === "true";
          const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
          // The view becomes busy before the next frame.
          await frame();
          while (isBusy()) await frame();
          return performance.now() - start;
        }, query.slice(0, length)),
      );
    }
  }
  return times;
}

const folder = await mkdtemp(join(tmpdir(), "threadkeep-measure-"));
const served = await serve();
const browser = await launch();
try {
  const file = join(folder, "long.jsonl");
  const text = conversation();
  await writeFile(file, text);
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.setDefaultTimeout(600_000);
  const headers = { authorization: `Bearer ${served.token}`, "content-type": "application/octet-stream" };
  const imported = await fetch(`${served.url}v1/import`, { method: "POST", headers, body: gzipSync(text) });
  if (!imported.ok) throw new Error(await imported.text());
  await page.goto(`${served.url}#token=${served.token}`);
  await page.locator(".frame").waitFor();
  console.log(`${MESSAGES} messages in one conversation`);
  report("server, scrolling, time per frame", await scroll(page));
  report("server, searching while typing", await search(page));
  const offline = await page.goto(`${served.url}offline/#/threads`);
  if (offline?.ok()) {
    await page.locator(".frame").waitFor();
    const start = performance.now();
    await page.locator(".drop input[type=file]").setInputFiles(file);
    await page.locator("dialog dl").waitFor();
    console.log(`browser, import: ${((performance.now() - start) / 1000).toFixed(1)} s`);
    await page.keyboard.press("Escape");
    report("browser, scrolling, time per frame", await scroll(page));
    report("browser, searching while typing", await search(page));
  }
} finally {
  await browser.close();
  await served.close();
  await rm(folder, { recursive: true, force: true });
}
