/**
 * Tests the package `@threadkeep/browser` in Chromium: `node package.mjs FOLDER [PART OF A NAME]`. FOLDER holds `threadkeep_browser.js`
 * and its module. With `MEASURE=1`, also prints sizes and times.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { assertEqual, createProfile, launch, launchToKill, run, serve } from "./pages.mjs";

/** @typedef {import("playwright-core").Page} Page */

const [folder, filter = ""] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: node package.mjs FOLDER [PART OF A NAME]");

const server = await serve(folder);
const profile = await createProfile();
const browser = await launch(profile.folder);

/**
 * Opens a tab with the package in `window.tk`.
 *
 * @param {import("playwright-core").BrowserContext} [context]
 */
async function openTab(context = browser) {
  const page = await context.newPage();
  await load(page);
  return page;
}

/** @param {Page} page */
async function load(page) {
  await page.goto(server.url);
  await page.evaluate(async () => {
    const tk = await import(/** @type {any} */ ("/threadkeep_browser.js"));
    await tk.default();
    Object.assign(window, { tk });
  });
}

/**
 * Runs a function in a tab with the package and one value.
 *
 * @template T, R
 * @param {Page} page
 * @param {(tk: any, value: T) => R | Promise<R>} work
 * @param {T} [value]
 * @returns {Promise<R>}
 */
async function inTab(page, work, value) {
  const source = `async (value) => (${work.toString()})(window.tk, value)`;
  return /** @type {Promise<R>} */ (page.evaluate(`(${source})(${JSON.stringify(value) ?? "undefined"})`));
}

/** @type {[string, () => Promise<void>][]} */
const journeys = [
  ["conversations_are_kept_and_found", keptAndFound],
  ["errors_have_codes_and_name_the_mistake", errorsHaveCodes],
  ["another_tab_sees_every_change", anotherTabSeesEveryChange],
  ["exports_are_imported_elsewhere", exportsAreImported],
  ["erased_messages_are_unreadable", erasedMessagesAreUnreadable],
  ["users_see_only_their_threads", usersAreSeparate],
  ["private_windows_work", privateWindowsWork],
  ["calls_of_art_work_as_documented", callsOfArtWork],
  ["a_tab_closed_in_the_middle_loses_nothing_acknowledged", closedTabLosesNothing],
  ["a_killed_browser_loses_nothing_acknowledged", killedBrowserLosesNothing],
  ["a_full_disk_is_reported_and_nothing_is_half_written", fullDiskIsReported],
];

// S1.01, S1.05, S1.07, S1.08, S1.10, S1.11, S1.12, S1.13, S1.14, S1.15, S1.16, S1.17
async function callsOfArtWork() {
  const page = await openTab();
  const seen = await inTab(page, async (tk) => {
    const { ConversationManager, ConversationRepository, ThreadkeepStorageAdapter } = await import(/** @type {any} */ ("/art.js"));
    const store = await tk.Threadkeep.open({ database: "art" });
    const adapter = new ThreadkeepStorageAdapter(store);
    /** @type {string[]} */
    const calls = [];
    const recording = {
      set: (/** @type {string} */ collection, /** @type {string} */ id, /** @type {any} */ value) => {
        calls.push(`set ${collection} ${id} ${value.id}`);
        return adapter.set(collection, id, value);
      },
      query: (/** @type {string} */ collection, /** @type {any} */ options) => {
        calls.push(`query ${collection} ${JSON.stringify(options)}`);
        return adapter.query(collection, options);
      },
    };
    /** @type {string[]} */
    const notified = [];
    const socket = {
      notify: (/** @type {any} */ message, /** @type {any} */ options) => {
        notified.push(`${message.messageId} ${options.targetThreadId}`);
        if (message.messageId === "m2") throw new Error("a listener fails");
      },
    };
    addEventListener("error", (event) => event.preventDefault());
    const manager = new ConversationManager(new ConversationRepository(recording), socket);
    const message = (/** @type {string} */ messageId, /** @type {string} */ role, /** @type {string} */ content, /** @type {number} */ timestamp, threadId = "trip") => ({ messageId, threadId, role, content, timestamp });
    const first = [message("m2", "AI", "At nine.", 2_000), { ...message("m1", "USER", "When does the pier open?", 1_000), metadata: { source: "web", tags: [] } }];
    await manager.addMessages("trip", first);
    // Several calls at once.
    await Promise.all([manager.addMessages("trip", [message("m3", "TOOL", "fares", 2_000)]), manager.addMessages("trip", [message("m4", "SYSTEM", "closing", 4_000)]), manager.addMessages("other", [message("o1", "USER", "elsewhere", 3_000, "other")])]);
    const ids = async (/** @type {any} */ options) => (await manager.getMessages("trip", options)).map((/** @type {any} */ found) => found.messageId);
    const all = await manager.getMessages("trip");
    const bounds = [await ids({ limit: 2 }), await ids({ beforeTimestamp: 4_000, limit: 1 }), await ids({ afterTimestamp: 2_000 }), await ids({ limit: 0 })];
    // The same id again replaces the message, with its time.
    await manager.addMessages("trip", [message("m3", "TOOL", "new fares", 5_000)]);
    const replaced = (await manager.getMessages("trip")).map((/** @type {any} */ found) => `${found.messageId} ${found.content} ${found.timestamp}`);
    const before = calls.length;
    await manager.addMessages("trip", []);
    await manager.addMessages("trip", null);
    const failures = [];
    for (const call of [() => manager.addMessages("", first), () => manager.addMessages("trip", [message("m5", "ROBOT", "x", 1)]), () => adapter.query("agents", {}), () => manager.getMessages("")]) {
      failures.push(await call().then(() => "no error", (/** @type {Error} */ error) => error.message));
    }
    const context = await store.context(await adapter.thread("trip"), "When does it open?", {});
    return { all, bounds, replaced, notified, silent: calls.length - before, failures, calls: calls.slice(0, 3), context: context.messages.length };
  });
  assertEqual(seen, {
    all: [
      { messageId: "m1", threadId: "trip", role: "USER", content: "When does the pier open?", timestamp: 1_000, metadata: { source: "web", tags: [] } },
      { messageId: "m2", threadId: "trip", role: "AI", content: "At nine.", timestamp: 2_000 },
      { messageId: "m3", threadId: "trip", role: "TOOL", content: "fares", timestamp: 2_000 },
      { messageId: "m4", threadId: "trip", role: "SYSTEM", content: "closing", timestamp: 4_000 },
    ],
    bounds: [["m3", "m4"], ["m3"], ["m4"], []],
    replaced: ["m1 When does the pier open? 1000", "m2 At nine. 2000", "m4 closing 4000", "m3 new fares 5000"],
    notified: ["m2 trip", "m1 trip", "m3 trip", "o1 other", "m4 trip", "m3 trip"],
    silent: 1,
    failures: ["threadId must be a text that is not empty", "role must be one of USER, AI, SYSTEM, TOOL, not ROBOT", 'unknown collection "agents": only "conversations" is stored here', "threadId must be a text that is not empty"],
    calls: ["set conversations m2 m2", "set conversations m1 m1", 'set conversations m3 m3'],
    context: 5,
  });
  await page.close();
}

async function keptAndFound() {
  const page = await openTab();
  const thread = await inTab(page, async (tk) => {
    const store = await tk.Threadkeep.open({ database: "kept" });
    const thread = await store.openThread({ key: "notes:1", metadata: { folder: "garden" } });
    const options = { idempotency_key: "turn-1" };
    const turn = [
      { role: "user", text: "When do I plant the walnut trees?" },
      { role: "assistant", text: "In October, before the first frost." },
    ];
    const first = await store.append(thread.id, turn, options);
    const second = await store.append(thread.id, turn, options);
    if (first.replayed || !second.replayed) throw new Error("the repeated request was stored twice");
    await store.append(thread.id, { role: "user", text: "And the roses?" });
    return thread.id;
  });
  await load(page);
  const seen = await inTab(
    page,
    async (tk, thread) => {
      const store = await tk.Threadkeep.open({ database: "kept" });
      const again = await store.openThread({ key: "notes:1" });
      const page = await store.messages(thread, { limit: 2 });
      const context = await store.context(thread, "And the tulips?", { system_prompt: "Be brief.", window: 2 });
      const found = await store.search('"first frost"', { roles: ["assistant"] });
      const recalled = await store.recall("planting walnuts");
      const list = await store.threads({ metadata: { folder: "garden" } });
      return {
        created: again.created,
        title: again.title,
        seqs: page.messages.map((/** @type {any} */ message) => message.seq),
        more: page.more,
        roles: context.messages.map((/** @type {any} */ message) => message.role),
        last: context.messages.at(-1).parts[0].text,
        hits: found.hits.map((/** @type {any} */ hit) => [hit.thread === thread, hit.message.seq]),
        recalled: recalled.some((/** @type {any} */ found) => found.message.seq === 1),
        listed: list.threads.length,
      };
    },
    thread,
  );
  assertEqual(seen, {
    created: false,
    title: "When do I plant the walnut trees?",
    seqs: [2, 3],
    more: true,
    roles: seen.roles,
    last: "And the tulips?",
    hits: [[true, 2]],
    recalled: true,
    listed: 1,
  });
  assertEqual([seen.roles[0], seen.roles.at(-1)], ["system", "user"]);
  await page.close();
}

async function errorsHaveCodes() {
  const page = await openTab();
  const errors = await inTab(page, async (tk) => {
    const store = await tk.Threadkeep.open({ database: "errors" });
    const thread = (await store.openThread()).id;
    const unknown = "00000000-0000-4000-8000-000000000000";
    const calls = [
      () => store.thread(unknown),
      () => store.thread("x"),
      () => store.append(unknown, { role: "user", text: "?" }),
      () => store.append(thread, { role: "poet", text: "?" }),
      () => store.append(thread, { role: "user", txt: "?" }),
      () => store.append(thread, { role: "user", text: "?" }, { expected_seq: 7 }),
      () => store.append(thread, { role: "user", text: "x".repeat(2 ** 25) }),
      () => store.context(thread, "?", { windw: 3 }),
      () => store.context(thread, "?", { recall: { lmit: 3 } }),
      () => store.context(thread, "?", { budget: 1 }),
      () => store.messages(thread, { limit: 0 }),
      () => store.import(new Uint8Array([1, 2, 3])),
      () => tk.Threadkeep.open({ durability: "eternal" }),
      () => store.export(() => { throw new TypeError("the caller's own"); }),
    ];
    const errors = [];
    for (const call of calls) {
      const error = await call().then(() => ({ code: "none", message: "" }), (/** @type {any} */ error) => error);
      errors.push([error.name, error.code ?? null, error.message]);
    }
    return errors;
  });
  const codes = errors.map(([, code]) => code);
  assertEqual(codes, [
    "not_found", "invalid_request", "not_found", "invalid_request", "invalid_request", "seq_conflict", "limit_exceeded",
    "invalid_request", "invalid_request", "invalid_policy", "invalid_request", "invalid_request", "invalid_request", null,
  ]);
  for (const [index, field] of /** @type {[number, string][]} */ ([[7, "windw"], [8, "recall.lmit"]])) {
    const message = String(errors[index]?.[2]);
    if (!message.includes(field)) throw new Error(`the field ${field} is not named: ${message}`);
  }
  assertEqual(errors.at(-1), ["TypeError", null, "the caller's own"]);
  await page.close();
}

async function anotherTabSeesEveryChange() {
  const [writer, reader] = [await openTab(), await openTab()];
  const thread = await inTab(writer, async (tk) => {
    const store = await tk.Threadkeep.open({ database: "tabs" });
    const thread = await store.openThread();
    await store.append(thread.id, { role: "user", text: "before" });
    Object.assign(window, { store });
    return thread.id;
  });
  await inTab(
    reader,
    async (tk, thread) => {
      const store = await tk.Threadkeep.open({ database: "tabs" });
      /** @type {any[]} */
      const seen = [];
      const listener = (/** @type {any} */ update) => {
        if (update instanceof Error) throw update;
        if (update.type === "history") seen.push(...update.messages);
        for (const event of update.events ?? []) seen.push(...(event.messages ?? []));
      };
      const subscription = await store.subscribe(thread, listener, { last: 10 });
      Object.assign(window, { seen, subscription });
    },
    thread,
  );
  const append = (/** @type {number} */ count) =>
    inTab(
      writer,
      async (_tk, [thread, count]) => {
        for (let number = 0; number < count; number += 1) {
          await /** @type {any} */ (window).store.append(thread, { role: "user", text: `message ${number}` });
        }
      },
      /** @type {[string, number]} */ ([thread, count]),
    );
  await append(20);
  await reader.waitForFunction(() => /** @type {any} */ (window).seen.length >= 21);
  const seqs = await reader.evaluate(() => /** @type {any} */ (window).seen.map((/** @type {any} */ message) => message.seq));
  assertEqual(seqs, Array.from({ length: 21 }, (_, index) => index + 1));
  await inTab(
    reader,
    async (tk, thread) => {
      /** @type {any} */ (window).subscription.stop();
      // A second subscription shows when the stopped one would have been called.
      const store = await tk.Threadkeep.open({ database: "tabs" });
      const state = Object.assign(window, { later: 0 });
      await store.subscribe(thread, () => (state.later += 1));
    },
    thread,
  );
  await append(3);
  await reader.waitForFunction(() => /** @type {any} */ (window).later >= 3);
  assertEqual(await reader.evaluate(() => /** @type {any} */ (window).seen.length), 21);
  await writer.close();
  await reader.close();
}

async function exportsAreImported() {
  const page = await openTab();
  const result = await inTab(page, async (tk) => {
    const from = await tk.Threadkeep.open({ database: "from" });
    for (let number = 0; number < 3; number += 1) {
      const thread = await from.openThread({ key: `t:${number}`, title: `Thread ${number}` });
      await from.append(thread.id, [{ role: "user", text: `Ünïcödé ${number}\n"quoted"` }, { role: "assistant", text: "yes" }]);
    }
    const read = async (/** @type {any} */ store) => {
      /** @type {string[]} */
      const lines = [];
      await store.export((/** @type {string} */ line) => lines.push(line));
      return lines;
    };
    const lines = await read(from);
    const bytes = new TextEncoder().encode(lines.join("\n"));
    const to = await tk.Threadkeep.open({ database: "to" });
    const first = await to.import(bytes);
    const second = await to.import(bytes);
    const exported = await read(to);
    // The header contains the time of the export.
    return { first, second, same: JSON.stringify(lines.slice(1)) === JSON.stringify(exported.slice(1)), lines: lines.length };
  });
  const { first, second } = /** @type {any} */ (result);
  assertEqual([first.threads_created, first.messages_added, first.problems], [3, 6, []]);
  assertEqual([second.threads_created, second.messages_added, second.messages_already_there], [0, 0, 6]);
  assertEqual([result.same, result.lines], [true, 10]);
  await page.close();
}

async function erasedMessagesAreUnreadable() {
  const page = await openTab();
  const found = await inTab(page, async (tk) => {
    const store = await tk.Threadkeep.open({ database: "erased" });
    const thread = await store.openThread();
    const { messages } = await store.append(thread.id, [
      { role: "user", text: "my password is xylophone-7" },
      { role: "assistant", text: "I will not repeat it" },
    ]);
    await store.eraseMessages(thread.id, [messages[0].id]);
    const left = await store.messages(thread.id);
    const doomed = await store.openThread();
    await store.append(doomed.id, { role: "user", text: "xylophone-8" });
    await store.deleteThread(doomed.id);
    // Everything that IndexedDB returns, as text.
    const database = await new Promise((resolve, reject) => {
      const request = indexedDB.open("erased");
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    let text = "";
    for (const name of database.objectStoreNames) {
      const rows = await new Promise((resolve, reject) => {
        const request = database.transaction(name).objectStore(name).getAll();
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
      for (const row of rows) {
        const bytes = row instanceof Uint8Array ? row : row instanceof ArrayBuffer ? new Uint8Array(row) : null;
        text += bytes === null ? JSON.stringify(row) : new TextDecoder("latin1").decode(bytes);
      }
    }
    return {
      seqs: left.messages.map((/** @type {any} */ message) => message.seq),
      hits: (await store.search("xylophone")).hits.length,
      kept: text.includes("I will not repeat it"),
      leaked: text.includes("xylophone"),
    };
  });
  assertEqual(found, { seqs: [2], hits: 0, kept: true, leaked: false });
  await page.close();
}

async function usersAreSeparate() {
  const page = await openTab();
  const seen = await inTab(page, async (tk) => {
    const open = (/** @type {string | undefined} */ user) => tk.Threadkeep.open({ database: "users", ...(user && { user }) });
    const [ana, ben, all] = [await open("ana"), await open("ben"), await open(undefined)];
    const thread = await ana.openThread({ key: "same" });
    await ana.append(thread.id, { role: "user", text: "the narwhal is mine" });
    await ben.openThread({ key: "same" });
    const code = await ben.thread(thread.id).then(() => "none", (/** @type {any} */ error) => error.code);
    const counts = [];
    for (const store of [ana, ben, all]) counts.push([(await store.threads()).threads.length, (await store.search("narwhal")).hits.length]);
    return { code, counts };
  });
  assertEqual(seen, { code: "not_found", counts: [[1, 1], [1, 0], [2, 1]] });
  await page.close();
}

async function privateWindowsWork() {
  const owner = browser.browser();
  if (owner === null) {
    // A context with a profile has no browser to open further contexts in.
    const other = await createProfile();
    const incognito = await launch(other.folder);
    await appendOne(await openTab(incognito));
    await incognito.close();
    await other.remove();
    return;
  }
  const incognito = await owner.newContext();
  await appendOne(await openTab(incognito));
  await incognito.close();
}

/** @param {Page} page */
async function appendOne(page) {
  const seq = await inTab(page, async (tk) => {
    const store = await tk.Threadkeep.open();
    const thread = await store.openThread();
    await store.append(thread.id, { role: "user", text: "hello" });
    return (await store.thread(thread.id)).seq;
  });
  assertEqual(seq, 1);
}

/**
 * Appends to a thread without end; `window.acknowledged` is the position of the last acknowledged message.
 *
 * @param {Page} page @param {string} database
 */
async function appendWithoutEnd(page, database) {
  await inTab(
    page,
    async (tk, database) => {
      const store = await tk.Threadkeep.open({ database });
      const thread = await store.openThread({ key: "endless" });
      const state = Object.assign(window, { acknowledged: thread.seq });
      const work = async () => {
        for (;;) {
          const { messages } = await store.append(thread.id, [
            { role: "user", text: "question ".repeat(50) },
            { role: "assistant", text: "answer ".repeat(50) },
          ]);
          state.acknowledged = Math.max(state.acknowledged, messages[1].seq);
        }
      };
      void Promise.all([work(), work(), work()]);
    },
    database,
  );
}

/** @param {Page} page */
const acknowledged = (page) => page.evaluate(() => /** @type {any} */ (window).acknowledged);

/**
 * Checks that a thread has no gap and at least the acknowledged messages, and that turns are whole.
 *
 * @param {Page} page @param {string} database @param {number} acknowledged
 */
async function assertNothingLost(page, database, acknowledged) {
  const state = await inTab(
    page,
    async (tk, database) => {
      const store = await tk.Threadkeep.open({ database });
      const thread = await store.openThread({ key: "endless" });
      let after = 0;
      let roles = "";
      for (let more = true; more; ) {
        const page = await store.messages(thread.id, { after, limit: 1_000 });
        for (const message of page.messages) {
          if (message.seq !== after + 1) throw new Error(`a gap after ${after}`);
          after = message.seq;
          roles += message.role[0];
        }
        more = page.more;
      }
      return { seq: thread.seq, read: after, isWhole: /^(ua)*$/.test(roles) };
    },
    database,
  );
  assertEqual([state.read, state.isWhole], [state.seq, true]);
  if (state.seq < acknowledged) throw new Error(`${acknowledged} messages were acknowledged, ${state.seq} are stored`);
}

async function closedTabLosesNothing() {
  const reader = await openTab();
  let last = 0;
  for (let round = 0; round < 10; round += 1) {
    const writer = await openTab();
    await appendWithoutEnd(writer, "closed");
    const target = last + 2 * round;
    await writer.waitForFunction((target) => /** @type {any} */ (window).acknowledged > target, target);
    last = await acknowledged(writer);
    await writer.close();
  }
  await assertNothingLost(reader, "closed", last);
  await reader.close();
}

async function killedBrowserLosesNothing() {
  const killed = await createProfile();
  let last = 0;
  for (let round = 0; round < 5; round += 1) {
    const { context, kill } = await launchToKill(killed.folder);
    const page = await openTab(context);
    if (round > 0) {
      await assertNothingLost(page, "killed", last).catch(async (error) => {
        const files = await readdir(killed.folder, { recursive: true });
        const stored = files.filter((file) => /IndexedDB|WebStorage/.test(file));
        throw new Error(`${error.message}, after ${round} kills; files: ${stored.join(", ")}`);
      });
    }
    await appendWithoutEnd(page, "killed");
    const target = last + 20;
    await page.waitForFunction((target) => /** @type {any} */ (window).acknowledged > target, target);
    last = await acknowledged(page);
    await kill();
  }
  const survivor = await launch(killed.folder);
  await assertNothingLost(await openTab(survivor), "killed", last);
  await survivor.close();
  await killed.remove();
  console.log(`  5 kills, ${last} acknowledged messages, none lost`);
}

async function fullDiskIsReported() {
  const page = await openTab();
  const session = await browser.newCDPSession(page);
  const origin = new URL(server.url).origin;
  const fill = () =>
    inTab(page, async (tk) => {
      const store = await tk.Threadkeep.open({ database: "full" });
      const thread = await store.openThread({ key: "endless" });
      for (let number = 0; number < 200; number += 1) {
        const turn = [
          { role: "user", text: Array.from({ length: 50_000 }, () => Math.random().toString(36)).join(" ").slice(0, 200_000) },
          { role: "assistant", text: "noted" },
        ];
        const error = await store.append(thread.id, turn).then(() => null, (/** @type {any} */ error) => error);
        if (error !== null) return { code: error.code, message: error.message, stored: number };
      }
      return { code: "none", message: "", stored: 200 };
    });
  const { usage } = await session.send("Storage.getUsageAndQuota", { origin });
  await session.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: usage + 4_000_000 });
  const refused = await fill();
  assertEqual([refused.code, refused.stored < 200], ["unavailable", true]);
  if (!refused.message.includes("no space left")) throw new Error(`the cause is not named: ${refused.message}`);
  await assertNothingLost(page, "full", 2 * refused.stored);
  await session.send("Storage.overrideQuotaForOrigin", { origin });
  const again = await inTab(page, async (tk) => {
    const store = await tk.Threadkeep.open({ database: "full" });
    const thread = await store.openThread({ key: "endless" });
    return (await store.append(thread.id, [{ role: "user", text: "again" }, { role: "assistant", text: "yes" }])).first_seq;
  });
  assertEqual(again, 2 * refused.stored + 1);
  await page.close();
}

/** Prints the size of the module, and how long appends and reads take. */
async function measure() {
  const module = await readFile(join(/** @type {string} */ (folder), "threadkeep_browser_bg.wasm"));
  console.log(`module: ${module.length} bytes, ${gzipSync(module, { level: 9 }).length} bytes with gzip`);
  for (const durability of /** @type {const} */ (["strict", "relaxed"])) {
    const tab = await openTab();
    const times = await inTab(
      tab,
      async (tk, durability) => {
        const store = await tk.Threadkeep.open({ database: `measure-${durability}`, durability });
        const { id } = await store.openThread();
        const times = [];
        for (let number = 0; number < 500; number += 1) {
          const began = performance.now();
          await store.append(id, { role: "user", text: "word ".repeat(40) });
          times.push(performance.now() - began);
        }
        return times;
      },
      durability,
    );
    console.log(`append, ${durability}: ${quantiles(times)}`);
    console.log(`  the same reads and writes by hand: ${quantiles(await inTab(tab, appendByHand, durability))}`);
    await tab.close();
  }
  const page = await openTab();
  for (const messages of [16, 1_000, 100_000]) {
    const times = await inTab(
      page,
      async (tk, messages) => {
        const store = await tk.Threadkeep.open({ database: `measure-${messages}`, durability: "relaxed" });
        const { id } = await store.openThread();
        for (let first = 0; first < messages; first += 500) {
          const count = Math.min(500, messages - first);
          await store.append(id, Array.from({ length: count }, (_, number) => ({ role: "user", text: `message ${first + number} ${"word ".repeat(38)}` })));
        }
        const times = [];
        for (let number = 0; number < 200; number += 1) {
          const began = performance.now();
          const page = await store.messages(id, { limit: 16 });
          times.push(performance.now() - began);
          if (page.messages.length !== 16) throw new Error("the read did not return 16 messages");
        }
        return times;
      },
      messages,
    );
    console.log(`newest 16 of ${messages}: ${quantiles(times)}`);
  }
  await page.close();
}

/**
 * Makes the reads and writes of an append with IndexedDB alone, and returns how long each took.
 *
 * @param {any} _
 * @param {IDBTransactionDurability} durability
 */
async function appendByHand(_, durability) {
  const open = indexedDB.open(`by-hand-${durability}`, 1);
  open.onupgradeneeded = () => open.result.createObjectStore("rows").createIndex("index", "keys", { multiEntry: true });
  await new Promise((done) => (open.onsuccess = done));
  const text = (/** @type {number} */ length) => "x".repeat(length);
  const times = [];
  for (let number = 0; number < 500; number += 1) {
    const began = performance.now();
    await new Promise((done) => {
      const transaction = open.result.transaction("rows", "readwrite", { durability });
      const rows = transaction.objectStore("rows");
      const reads = [rows.get("thread"), rows.get("counters"), rows.index("index").getAll(`key ${number}`), rows.index("index").get(`id ${number}`)];
      transaction.oncomplete = done;
      /** @type {IDBRequest} */ (reads.at(-1)).onsuccess = () => {
        rows.put({ text: text(20) }, "counters");
        rows.put({ text: text(400), keys: [`id ${number}`, "word"] }, `message ${number}`);
        rows.put({ text: text(300), keys: ["created", `updated ${number}`, `changed ${number}`] }, "thread");
        rows.put({ text: text(150), keys: [`key ${number}`] }, `commit ${number}`);
        transaction.commit();
      };
    });
    times.push(performance.now() - began);
  }
  return times;
}

/** @param {number[]} times In milliseconds. */
function quantiles(times) {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (/** @type {number} */ share) => (sorted[Math.floor((sorted.length - 1) * share)] ?? NaN).toFixed(2);
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, max ${at(1)} ms`;
}

const { total, failures } = await run(journeys, filter);
if (process.env["MEASURE"] !== undefined) await measure();
await browser.close();
server.close();
await profile.remove();
for (const failure of failures) console.log(`\n${failure}`);
console.log(`\n${total - failures.length} of ${total} journeys of the package passed in Chromium`);
// A failed journey may have left a browser open.
process.exit(failures.length === 0 && total > 0 ? 0 : 1);
