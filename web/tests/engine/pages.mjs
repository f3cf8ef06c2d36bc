/** Pages in Chromium that load a WebAssembly module from a folder. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const CHROMIUM = process.env["THREADKEEP_CHROMIUM"] ?? "/usr/bin/chromium";
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };

/**
 * Serves a folder, and an empty page at `/`.
 *
 * @param {string} folder
 */
export async function serve(folder) {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    if (path === "/") {
      response.setHeader("content-type", "text/html").end("<!doctype html><title>Threadkeep</title>");
      return;
    }
    const content = await readFile(join(folder, path)).catch(() => null);
    const type = /** @type {Record<string, string>} */ (TYPES)[extname(path)] ?? "application/octet-stream";
    response.writeHead(content === null ? 404 : 200, { "content-type": type }).end(content);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${address.port}/`, close: () => server.close() };
}

/** A folder for a profile of the browser. */
export async function createProfile() {
  const folder = await mkdtemp(join(tmpdir(), "threadkeep-chromium-"));
  return { folder, remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }) };
}

/** @param {string} profile */
export async function launch(profile) {
  return await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    headless: true,
    args: ["--no-sandbox"],
  });
}

/**
 * Starts a browser in a process group of its own, so that a test can kill it.
 *
 * @param {string} profile
 */
export async function launchToKill(profile) {
  const args = ["--headless", "--no-sandbox", "--no-first-run", "--remote-debugging-port=0", `--user-data-dir=${profile}`];
  const child = spawn(CHROMIUM, args, { detached: true, stdio: ["ignore", "ignore", "pipe"] });
  const exited = new Promise((resolve) => child.once("exit", () => resolve(undefined)));
  for await (const line of createInterface({ input: child.stderr })) {
    const address = /^DevTools listening on (\S+)$/.exec(line)?.[1];
    if (address === undefined) continue;
    const browser = await chromium.connectOverCDP(address);
    const context = browser.contexts()[0];
    if (context === undefined) throw new Error("the browser has no context");
    const group = -(child.pid ?? 0);
    const kill = async () => {
      process.kill(group, "SIGKILL");
      await exited;
      // The other processes of the browser, which hold its files open, may end later.
      while (isRunning(group)) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    return { context, kill };
  }
  throw new Error("Chromium did not start");
}

/** Whether a process of a group exists. @param {number} group */
function isRunning(group) {
  try {
    return process.kill(group, 0);
  } catch {
    return false;
  }
}

/**
 * Runs journeys one after the other, and prints their results.
 *
 * @param {[string, () => Promise<void>][]} journeys
 * @param {string} filter Only journeys whose names contain this text.
 * @returns {Promise<{ total: number, failures: string[] }>}
 */
export async function run(journeys, filter) {
  const chosen = journeys.filter(([name]) => name.includes(filter));
  /** @type {string[]} */
  const failures = [];
  for (const [name, journey] of chosen) {
    const began = Date.now();
    const failure = await journey().then(
      () => null,
      (error) => String(error instanceof Error ? error.stack : error),
    );
    console.log(`${name} ... ${failure === null ? "ok" : "FAILED"} (${Date.now() - began} ms)`);
    if (failure !== null) failures.push(`${name}: ${failure}`);
  }
  return { total: chosen.length, failures };
}

/** @param {unknown} actual @param {unknown} expected */
export function assertEqual(actual, expected) {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) {
    throw new Error(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
  }
}
