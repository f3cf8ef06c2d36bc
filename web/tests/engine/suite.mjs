/**
 * Runs the conformance suite of the IndexedDB store in Chromium: `node suite.mjs FOLDER [PART OF A NAME]`.
 *
 * FOLDER holds the module of crates/browser/examples/suite.rs. Every case runs on the plain store and over faults. A panic ends
 * the module, so a page that fails is loaded again.
 */
import { assertEqual, createProfile, launch, run as runJourneys, serve } from "./pages.mjs";

/** Pages that run cases at the same time. */
const PAGES = 2;
/** Sequences of the comparison with the model, as many as SQLite runs. */
const SEQUENCES = 64;

const [folder, filter = ""] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: node suite.mjs FOLDER [PART OF A NAME]");

const server = await serve(folder);
const url = server.url;
const profile = await createProfile();
const browser = await launch(profile.folder);

/** @param {import("playwright-core").Page} page */
async function load(page) {
  await page.goto(url);
  return await page.evaluate(async () => {
    const suite = await import(/** @type {any} */ ("/suite.js"));
    await suite.default({ module_or_path: "/suite_bg.wasm" });
    Object.assign(window, { suite });
    return /** @type {string[]} */ (suite.cases());
  });
}

/** @typedef {{ name: string, hasFaults: boolean | null }} Job */

/**
 * @param {import("playwright-core").Page} page
 * @param {Job} job
 * @returns {Promise<string | null>} Why the case failed.
 */
async function run(page, { name, hasFaults }) {
  /** @type {(error: Error) => void} */
  let onError = () => {};
  const crashed = new Promise((_, reject) => page.once("pageerror", (onError = reject)));
  const ran = page.evaluate(
    ([name, hasFaults, sequences]) => {
      const { suite } = /** @type {any} */ (window);
      return hasFaults === null ? suite.compare_with_model(sequences) : suite.run(name, hasFaults);
    },
    /** @type {const} */ ([name, hasFaults, SEQUENCES]),
  );
  try {
    await Promise.race([ran, crashed]);
    return null;
  } catch (error) {
    ran.catch(() => {});
    const message = await page.evaluate(() => /** @type {any} */ (window).panicMessage);
    return String(message ?? error);
  } finally {
    page.off("pageerror", onError);
    crashed.catch(() => {});
  }
}

const start = Date.now();
const first = await browser.newPage();
const names = await load(first);
/** @type {Job[]} */
const jobs = names.flatMap((name) => [
  { name, hasFaults: false },
  { name, hasFaults: true },
]);
jobs.unshift({ name: "store_matches_the_model", hasFaults: null });
/** @param {Job} job */
const shown = ({ name, hasFaults }) => (hasFaults === null ? name : `${hasFaults ? "faulty" : "plain"}::${name}`);
const queue = jobs.filter((job) => shown(job).includes(filter));
let total = queue.length;
/** @type {string[]} */
const failures = [];

/** @param {import("playwright-core").Page} page */
async function work(page) {
  for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
    const began = Date.now();
    const failure = await run(page, job);
    console.log(`${shown(job)} ... ${failure === null ? "ok" : "FAILED"} (${Date.now() - began} ms)`);
    if (failure !== null) {
      failures.push(`${shown(job)}: ${failure}`);
      await load(page);
    }
  }
}

const pages = [first];
while (pages.length < PAGES) {
  const page = await browser.newPage();
  await load(page);
  pages.push(page);
}
await Promise.all(pages.map(work));

/** What a case in one page cannot check: several tabs, and a database of a later version. */
/** @type {[string, () => Promise<void>][]} */
const journeys = [
  ["two_tabs_append_to_one_thread", twoTabsAppend],
  ["another_tab_is_woken", anotherTabIsWoken],
  ["a_later_version_is_refused", laterVersionIsRefused],
];
const ofJourneys = await runJourneys(journeys, filter);
total += ofJourneys.total;
failures.push(...ofJourneys.failures);

/** @param {number} index @param {string} name @param {unknown[]} values */
async function call(index, name, ...values) {
  const page = pages[index];
  if (page === undefined) throw new Error("no such page");
  return await page.evaluate(
    ([name, values]) => /** @type {any} */ (window).suite[name](...values),
    /** @type {[string, unknown[]]} */ ([name, values]),
  );
}

async function twoTabsAppend() {
  await Promise.all([call(0, "append", "tabs", 1000, 50, false), call(1, "append", "tabs", 2000, 50, false)]);
  const [last, gapless] = await call(0, "newest", "tabs", 1000);
  assertEqual([last, gapless], [100, 100]);
}

async function anotherTabIsWoken() {
  const woken = call(0, "wait_for_change", "tabs");
  // The other tab may not listen yet, so this tab appends until it does.
  for (let number = 3000, isDone = false; !isDone; number += 1) {
    await call(1, "append", "tabs", number, 1, false);
    isDone = await Promise.race([woken, new Promise((resolve) => setTimeout(() => resolve(false), 100))]);
  }
}

async function laterVersionIsRefused() {
  await pages[0]?.evaluate(
    () =>
      new Promise((resolve, reject) => {
        const request = indexedDB.open("later", 1000);
        request.onsuccess = () => resolve(request.result.close());
        request.onerror = () => reject(request.error);
      }),
  );
  const refused = await call(0, "append", "later", 1, 1, false).then(() => "opened", String);
  if (!refused.includes("incompatible store: a later version")) throw new Error(refused);
}

if (process.env["MEASURE"] !== undefined) {
  const strict = await call(0, "append", "strict", 1, 200, false);
  const relaxed = await call(0, "append", "relaxed", 1, 2000, true);
  const [, , first] = await call(0, "newest", "relaxed", 16);
  const [, , read] = await call(0, "newest", "relaxed", 16);
  console.log(`append: strict ${strict.toFixed(2)} ms, relaxed ${relaxed.toFixed(2)} ms; newest 16 of 2000: ${first.toFixed(2)} ms, again ${read.toFixed(2)} ms`);
}
await browser.close();
server.close();
await profile.remove();
for (const failure of failures) console.log(`\n${failure}`);
console.log(`\n${total - failures.length} of ${total} cases passed in Chromium, in ${((Date.now() - start) / 1000).toFixed(1)} s`);
process.exitCode = failures.length === 0 && total > 0 ? 0 : 1;
