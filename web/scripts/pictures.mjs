/**
 * Takes screenshots of each view, narrow and wide, in the light and the dark theme, and saves them in web/pictures:
 *
 *     cargo build && npm run pictures            all views
 *     npm run pictures -- context               only views whose name contains a word
 *     npm run pictures -- docs                  only those of the documentation, into docs/pictures
 */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { board, journal, launch, serve, tesis } from "../tests/browser/harness.mjs";

const FOLDER = fileURLToPath(new URL("../pictures/", import.meta.url));
const DOCS_FOLDER = fileURLToPath(new URL("../../docs/pictures/", import.meta.url));
/** The pictures of the documentation, by view, size and theme. */
const DOCS = new Map([
  ["chat-wide-day", "chat.png"],
  ["chat-map-large-wide-night", "map.png"],
  ["context-compare-wide-day", "context.png"],
]);
const isForDocs = process.argv[2] === "docs";
const only = isForDocs ? "" : (process.argv[2] ?? "");
/** The offline page is built with `cargo xtask web --offline`. */
const hasOffline = existsSync(fileURLToPath(new URL("../dist/offline/index.html", import.meta.url)));
const SIZES = { wide: { width: 1440, height: 900 }, narrow: { width: 390, height: 844 } };

const served = await serve({}, { withCluster: true });
const browser = await launch();
try {
  await mkdir(isForDocs ? DOCS_FOLDER : FOLDER, { recursive: true });
  const thread = (await served.call("POST", "v1/threads", { key: "trip", title: "A camping weekend by the lake", metadata: { assistant: "general" } })).id;
  await served.call("POST", `v1/threads/${thread}/messages`, { messages: journal() });
  await served.call("PUT", "v1/preferences/diet", { value: "no nuts" });
  const ask = (/** @type {string} */ agent, /** @type {string} */ text, /** @type {string} */ to) => served.call("POST", `v1/agents/${agent}/turns`, { text, thread: to });
  const turn = await ask("general", "What is Mila allergic to?", thread);
  const gardener = (await served.call("POST", "v1/threads", { title: "Seats", metadata: { assistant: "gardener" } })).id;
  await ask("gardener", "Remember that my seat is the window.", gardener);
  const london = (await served.call("POST", "v1/threads", { metadata: { assistant: "underground" } })).id;
  const route = await ask("underground", "how do i get from brixton to canary wharf?", london);
  const trains = (await served.call("POST", "v1/threads", { metadata: { assistant: "subway" } })).id;
  await served.call("POST", `v1/threads/${trains}/messages`, { messages: board() });
  const subway = (await served.call("POST", "v1/threads", { metadata: { assistant: "subway" } })).id;
  await ask("subway", "How do I get from Bedford Av to Columbus Circle?", subway);
  const documents = (await served.call("POST", "v1/threads", { metadata: { assistant: "subway" } })).id;
  const corpus = join(served.folder, "tesis.jsonl");
  await writeFile(corpus, tesis());
  await served.run("tesis", "import", corpus);
  const law = (await served.call("POST", "v1/threads", { metadata: { assistant: "tesis" } })).id;
  await ask("tesis", "¿Qué es la usucapión?", law);
  const operations = (await served.call("POST", "v1/threads", { metadata: { assistant: "kubeops" } })).id;
  await ask("kubeops", "is anything crashing in prod?", operations);
  await ask("kubeops", "scale the web deployment in prod to 5", operations);
  const views = {
    "chat-new": "#/chat",
    chat: `#/chat/${thread}`,
    "chat-approval": `#/chat/${gardener}`,
    "chat-law": `#/chat/${law}`,
    "chat-source": `#/chat/${law}`,
    "chat-operations": `#/chat/${operations}`,
    "chat-tools": `#/chat/${london}`,
    "chat-map": `#/chat/${london}`,
    "chat-map-large": `#/chat/${subway}`,
    "chat-arrivals": `#/chat/${trains}`,
    "chat-attachments": `#/chat/${documents}`,
    "chat-hit": `#/chat/${thread}?at=4`,
    context: `#/context/${thread}?q=${encodeURIComponent("Who is allergic to nuts, and who brings the stove?")}`,
    "context-compare": `#/context/${thread}?q=${encodeURIComponent("Who is allergic to nuts, and who brings the stove?")}`,
    "context-turn": `#/context/${thread}/${turn.turn}`,
    threads: "#/threads",
    search: "#/threads?q=stove",
    activity: "#/activity",
    turn: `#/activity/${london}/${route.turn}`,
    assistants: "#/assistants/general",
    "assistants-network": "#/assistants/underground",
    "assistants-line": "#/assistants/subway",
    analytics: "#/analytics",
    ...(hasOffline ? { "offline-chat": "offline/#/chat", "offline-search": "offline/#/threads" } : {}),
  };
  for (const [theme, colorScheme] of /** @type {const} */ ([["day", "light"], ["night", "dark"]])) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      const context = await browser.newContext({ viewport, colorScheme, deviceScaleFactor: 1, locale: process.env.PICTURES_LOCALE ?? "en-GB" });
      const page = await context.newPage();
      page.on("pageerror", (error) => console.error(error));
      page.on("console", (message) => message.type() === "error" && console.error(message.text()));
      await page.goto(`${served.url}#token=${served.token}`);
      await page.waitForSelector(".frame");
      for (const [name, address] of Object.entries(views)) {
        const inDocs = DOCS.get(`${name}-${size}-${theme}`);
        if (isForDocs ? !inDocs : !name.includes(only)) continue;
        await page.goto("about:blank");
        await page.goto(served.url + address);
        await page.waitForSelector(".chat .composer, .page .panel, .page .tiles, .threads-view, .graph");
        if (name === "context-compare") {
          await page.locator("label + button[aria-pressed]").click();
          // A narrow window shows one policy at a time.
          await page.waitForSelector(".columns.two .column-view:nth-child(2) .fate-map", { state: "attached" });
        }
        if (name === "chat-tools") {
          await page.locator(".call > summary").last().click();
          await page.locator(".call[open] pre").last().scrollIntoViewIfNeeded();
        }
        if (name.startsWith("chat-map")) await page.waitForSelector(".map-stretch");
        if (name === "chat-map-large") {
          await page.locator(".map figcaption .icon-button").last().click();
          await page.waitForSelector("dialog .map-stretch");
        }
        if (name === "offline-chat") {
          await page.locator(".composer textarea").fill("Remember that the tent is in the cellar.");
          await page.locator(".composer textarea").press("Enter");
          await page.waitForSelector(".message.assistant");
          await page.waitForSelector(".meter:not(.stale, .empty)");
        }
        if (name === "chat-source") {
          await page.locator(".sources button").first().click();
          await page.waitForSelector("dialog .passage");
        }
        if (name === "chat-attachments") {
          const file = (/** @type {string} */ file, /** @type {string} */ mimeType) => ({ name: file, mimeType, buffer: Buffer.from("The boathouse opens at nine.") });
          await page.locator(".composer input[type=file]").setInputFiles([file("boathouse.md", "text/markdown"), file("prices.csv", "text/csv"), file("lake.png", "image/png")]);
          await page.waitForSelector(".attachments li.ready");
        }
        if (name.startsWith("assistants-")) await page.waitForSelector(".network-panel svg");
        if (name === "assistants-line") {
          await page.getByRole("button", { name: "A", exact: true }).click();
          await page.waitForSelector(".stations li");
        }
        await page.waitForTimeout(1200);
        await page.screenshot({ path: isForDocs ? `${DOCS_FOLDER}${inDocs}` : `${FOLDER}${name}-${size}-${theme}.png` });
      }
      await context.close();
    }
  }
} finally {
  await browser.close();
  await served.close();
}
