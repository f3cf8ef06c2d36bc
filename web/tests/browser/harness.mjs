/**
 * Starts the real server and Debian's Chromium, for the user journeys and the screenshots. The store is SQLite, or PostgreSQL if
 * `THREADKEEP_PAGE_DATABASES` names a program that prints the URL of a new database for each line that it reads.
 */
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const TOKEN = "journeys-of-the-page-0123456789";
const START_TIMEOUT_MS = 60_000;
const DATABASES = process.env["THREADKEEP_PAGE_DATABASES"];

/** The program under test, which contains the page. */
export const PROGRAM = process.env["THREADKEEP_PROGRAM"] ?? join(ROOT, "target/debug/threadkeep");
/** The program that simulates a Kubernetes cluster, and the objects of the cluster. */
const CLUSTER = process.env["THREADKEEP_PAGE_CLUSTER"] ?? join(ROOT, "target/debug/examples/cluster");
const CLUSTER_OBJECTS = join(ROOT, "crates/cli/src/commands/slack/world");
export const CHROMIUM = process.env["THREADKEEP_CHROMIUM"] ?? "/usr/bin/chromium";

/** An assistant with a tool that needs approval. It answers offline. */
const GARDENER = `kind: Agent
metadata:
  name: gardener
spec:
  description: Knows the allotment, and asks before it remembers anything about you.
  tools: [recall, search_documents, list_preferences, {name: set_preference, approval: ask}, calculator, current_time]
`;

/**
 * @typedef {object} Served
 * @property {string} url The address, with a slash at the end.
 * @property {string} token
 * @property {string} folder
 * @property {() => Promise<void>} stop Kills the server, as if its machine failed.
 * @property {() => Promise<void>} start Restarts the server, on the same port and store.
 * @property {() => Promise<void>} close
 * @property {(method: string, path: string, body?: unknown) => Promise<any>} call Calls the API.
 * @property {(...options: string[]) => Promise<string>} run Runs the program with the server's store, and returns its output.
 */

/** Creates an empty database and returns its URL. @type {(() => Promise<string>) | null} */
let createDatabase = null;

/** Starts the program that creates databases. It ends with its input, at the latest when this process ends. @param {string} program */
function startDatabases(program) {
  const child = spawn(program, [], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return async () => {
    child.stdin.write("\n");
    const { value, done } = await lines.next();
    if (done) throw new Error(`${program} created no database`);
    return value;
  };
}

/**
 * Starts a simulated Kubernetes cluster, which ends with this process at the latest.
 * @param {string} folder The folder for its kubeconfig.
 */
async function startCluster(folder) {
  if (!existsSync(CLUSTER)) throw new Error(`${CLUSTER} is missing: run cargo build --package threadkeep-simulator --example cluster`);
  const child = spawn(CLUSTER, [CLUSTER_OBJECTS, join(folder, "kubeconfig")], { stdio: ["pipe", "pipe", "inherit"] });
  const { value, done } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  if (done) throw new Error(`${CLUSTER} ended`);
  return { kubeconfig: value, stop: () => child.stdin.end() };
}

/**
 * @param {Record<string, string>} [settings] Further environment variables of the server.
 * @param {{ withCluster?: boolean }} [options] With a cluster, the server also has the Kubernetes assistant.
 * @returns {Promise<Served>}
 */
export async function serve(settings = {}, { withCluster = false } = {}) {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing: run cargo build`);
  const folder = await mkdtemp(join(tmpdir(), "threadkeep-page-"));
  await writeFile(join(folder, "gardener.yaml"), GARDENER);
  if (DATABASES !== undefined) createDatabase ??= startDatabases(DATABASES);
  const store = createDatabase === null ? `sqlite:${join(folder, "page.db")}` : await createDatabase();
  const cluster = withCluster ? await startCluster(folder) : null;
  const env = {
    ...process.env,
    THREADKEEP_TOKEN: TOKEN,
    XDG_STATE_HOME: folder,
    XDG_CONFIG_HOME: folder,
    XDG_DATA_HOME: folder,
    HOME: folder,
    RUST_LOG: "warn",
    ...(cluster ? { KUBECONFIG: cluster.kubeconfig } : {}),
    ...settings,
  };
  /** @type {import("node:child_process").ChildProcess | null} */
  let child = null;
  let listen = "127.0.0.1:0";
  const start = async () => {
    if (child !== null) return;
    const names = ["general", "underground", "subway", "tesis", ...(cluster ? ["kubeops"] : []), join(folder, "gardener.yaml")];
    const assistants = names.flatMap((name) => ["--assistant", name]);
    const options = ["--store", store, "--json", "serve", "--listen", listen, ...assistants];
    const started = spawn(PROGRAM, options, { env, stdio: ["ignore", "pipe", "inherit"] });
    child = started;
    const line = await new Promise((resolve, reject) => {
      let text = "";
      const timer = setTimeout(() => reject(new Error("the server did not start in time")), START_TIMEOUT_MS);
      started.stdout.on("data", (/** @type {Buffer} */ data) => {
        text += data.toString();
        if (!text.includes("\n")) return;
        clearTimeout(timer);
        resolve(text);
      });
      started.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
    listen = new URL(JSON.parse(line).listening).host;
  };
  const stop = async () => {
    const stopped = child;
    child = null;
    if (!stopped || stopped.exitCode !== null) return;
    const ended = new Promise((resolve) => stopped.once("exit", resolve));
    stopped.kill("SIGKILL");
    await ended;
  };
  await start();
  const url = `http://${listen}/`;
  return {
    url,
    token: TOKEN,
    folder,
    start,
    stop,
    close: async () => {
      await stop();
      cluster?.stop();
      await rm(folder, { recursive: true, force: true });
    },
    run: async (...options) => (await promisify(execFile)(PROGRAM, ["--store", store, ...options], { env })).stdout,
    call: async (method, path, body) => {
      const headers = { authorization: `Bearer ${TOKEN}`, ...(typeof body === "string" ? {} : { "content-type": "application/json" }) };
      const init = { method, headers, ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }) };
      const response = await fetch(url + path, init);
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return text ? JSON.parse(text) : null;
    },
  };
}

/** @returns {Promise<import("playwright-core").Browser>} */
export function launch() {
  const args = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ];
  // Playwright gives each browser an empty profile folder and starts it headless.
  return chromium.launch({ executablePath: CHROMIUM, headless: true, args });
}

/** A conversation about a trip, long enough that a window excludes the messages that a question is about. */
export function journal(length = 96) {
  const topics = [
    ["We want to camp by a lake with the children in two weeks.", "Birch Bay fits: 1 h 20 by car, a shallow beach, warm showers."],
    ["Mila is allergic to nuts, so no trail mix.", "Noted: no nuts for Mila. I keep that for every meal plan."],
    ["Sam brings the stove, the gas is on us.", "Then gas goes on your list: one large cartridge is enough for two days."],
    ["The tent pole is cracked.", "A pole sleeve and strong tape hold for a weekend. I add both to the list."],
    ["We booked pitch 14, right behind the reeds.", "Pitch 14, arrival from 3 pm on Friday. Quiet hours start at 10."],
    ["What do we cook on Friday?", "Friday: pasta with tomato sauce, and apples.\n\n| meal | who | note |\n|---|---|---|\n| pasta | Nora | no nuts |\n| apples | Sam | for six |"],
    ["Can we swim there with a five-year-old?", "Yes: the bay is shallow for 20 metres, and there is a buoy line."],
    ["How far is the next pharmacy?", "In the village, 2.5 km along the lake path, open until six."],
  ];
  // The allergy is mentioned once, so that an answer about it quotes one message.
  const instead = ["Did we pack the sun cream?", "It is on the list: one bottle for everyone, in the blue bag."];
  const messages = [];
  const start = Date.parse("2026-05-11T18:02:00Z");
  for (let index = 0; index < length; index += 1) {
    const place = Math.floor(index / 2) % topics.length;
    const round = Math.floor(index / (topics.length * 2));
    const topic = round > 0 && place === 1 ? instead : topics[place];
    const text = (index % 2 === 0 ? topic?.[0] : topic?.[1]) ?? "";
    messages.push({
      role: index % 2 === 0 ? "user" : "assistant",
      ...(index % 2 === 0 ? { author: "Nora" } : { agent: "general" }),
      // The day is added to the first line, because a table may follow.
      text: round === 0 ? text : text.replace(/$/m, ` (day ${round + 1})`),
      created_at: new Date(start + round * 86_400_000 + index * 67_000).toISOString(),
    });
  }
  return messages;
}

const UNION_SQUARE = "14 St-Union Sq";

/**
 * A turn of the subway assistant that found trains at Union Square. The live feeds are not reachable from tests, so the result is stored
 * as the assistant would store it.
 * @param {string} [name] The name of the station. Another name than the usual one is also a direction.
 */
export function board(name = UNION_SQUARE, ageMinutes = 0) {
  const now = Date.now() - ageMinutes * 60_000;
  const train = (/** @type {string} */ line, /** @type {string} */ towards, /** @type {string} */ destination, /** @type {number} */ minutes) => ({
    line,
    route_id: line,
    direction: "S",
    towards,
    destination,
    stop_id: "L03S",
    minutes_until: minutes,
    clock: new Date(now + minutes * 60_000).toISOString().slice(11, 16),
    at: Math.floor(now / 1000) + minutes * 60,
    is_assigned: true,
    is_stalled: false,
    is_rerouted: false,
  });
  const arrivals = [
    train("L", "8 Av", "8 Av", 2),
    train("L", "Brooklyn", "Canarsie-Rockaway Pkwy", 4),
    train("L", "8 Av", "8 Av", 7),
    train("6", "Uptown", "Pelham Bay Park", 8),
    train("6", "Uptown", "Pelham Bay Park", 9),
    train("L", "8 Av", "8 Av", 12),
    name === UNION_SQUARE ? train("Q", "Uptown", "96 St", 16) : train("Q", name, name, 16),
  ].sort((a, b) => a.at - b.at);
  const value = { station: { name, lines: ["4", "5", "6", "L", "N", "Q", "R", "W"], area: "Manhattan", stop_ids: ["635", "L03", "R20"] }, line: null, arrivals, live: { status: "available" }, assumption: null };
  const created_at = new Date(now).toISOString();
  return [
    { role: "user", text: "Next trains at Union Square?", created_at },
    { role: "assistant", parts: [{ tool_call: { id: "b1", name: "get_train_arrivals", arguments: { station_name: name } } }], created_at },
    { role: "tool", parts: [{ tool_result: { call_id: "b1", output: "Trains at 14 St-Union Sq" } }], data: { value }, created_at },
    { role: "assistant", text: `The next L to 8 Av leaves at ${arrivals[0]?.clock}.`, created_at },
  ];
}

/** Records of invented tesis, as lines of JSON. */
export function tesis() {
  const record = (/** @type {number} */ id, /** @type {string} */ rubro, /** @type {string} */ texto) => ({
    idTesis: id,
    rubro,
    texto,
    epoca: "Undécima Época",
    instancia: "Primera Sala",
    tesis: `1a./J. ${id % 1000}/2022 (11a.)`,
    tipoTesis: "Jurisprudencia",
    anio: 2022,
  });
  const records = [
    record(9_100_021, "USUCAPIÓN. LA POSESIÓN DEBE SER PACÍFICA, CONTINUA Y PÚBLICA.", "Para usucapir, la posesión se ejerce en concepto de propietario. El plazo es de cinco años con buena fe."),
    record(9_100_022, "USUCAPIÓN. JUSTO TÍTULO.", "El justo título es la causa generadora de la posesión."),
    record(9_100_011, "PAGARÉ. PRESCRIPCIÓN DE LA ACCIÓN CAMBIARIA DIRECTA.", "La acción cambiaria directa prescribe en tres años contados desde el vencimiento."),
  ];
  return records.map((each) => JSON.stringify(each)).join("\n");
}

/** An answer that cites two messages of the same day, and one passage of a document twice. */
export function citing() {
  const source = (/** @type {string} */ kind, /** @type {string} */ id, /** @type {string} */ title, /** @type {number} */ number, /** @type {string} */ text) => ({ kind, id, title, fields: { cited_as: number, text } });
  const said = "said by Nora on 2026-05-11";
  return {
    role: "assistant",
    text: "Mila is allergic to nuts [1] [2]. The guide names peanuts [3] [4].",
    sources: [
      source("message", "m1", said, 1, "Mila is allergic to nuts."),
      source("message", "m2", said, 2, "No nuts for Mila."),
      source("document", "d1", "guide.md", 3, "Peanuts are nuts here."),
      source("document", "d1", "guide.md", 4, "Peanuts are nuts here."),
    ],
  };
}
