/** Copies conversations between this browser and a server, and compares both afterwards. */
import type { Client } from "../api/client";

export interface Copied {
  /** What the source contains. */
  threads: number;
  messages: number;
  records: number;
  /** What is missing in the target or differs from the source: the first of them, and their number. */
  differences: string[];
  differenceCount: number;
}

const MAX_LISTED = 20;

/** Copies everything that the source exports into the target. Repeating it adds only what is missing. */
export async function copyAll(source: Client, target: Client): Promise<Copied> {
  const exported = await source.exportFile();
  const items = parseExport(await exported.text());
  const { threads, messages, records } = counts(items);
  if (items.size === 0) return { threads, messages, records, differences: [], differenceCount: 0 };
  // A server limits the size of a request.
  const compressed = await new Response(exported.stream().pipeThrough(new CompressionStream("gzip"))).blob();
  const imported = await target.importFile(compressed);
  const arrived = parseExport(await (await target.exportFile()).text());
  const differences = [...imported.problems, ...compare(items, arrived)];
  return { threads, messages, records, differences: differences.slice(0, MAX_LISTED), differenceCount: differences.length };
}

/** The items of an export, by what identifies them. The value is the content that a copy must have. */
export type Items = Map<string, string>;

type Line = {
  thread?: { id: string; title?: unknown; metadata?: unknown; state?: unknown; created_at: string };
  message?: Record<string, unknown> & { id: string };
  document?: { owner: unknown; document: { namespace: string; key: string; value: unknown } };
};

/** Reads an export. What an import assigns is left out: positions, revisions, versions and owners. */
export function parseExport(text: string): Items {
  const items: Items = new Map();
  let thread = "";
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const { thread: opened, message, document } = JSON.parse(line) as Line;
    if (opened) {
      thread = opened.id;
      const { title = null, metadata = {}, state = {}, created_at } = opened;
      items.set(`thread ${thread}`, JSON.stringify({ title, metadata, state, created_at }));
    } else if (message) {
      const content = Object.fromEntries(Object.entries(message).filter(([name]) => name !== "seq" && name !== "revision"));
      items.set(`message ${thread}/${message.id}`, JSON.stringify(content));
    } else if (document) {
      const owner = isThreadOwner(document.owner) ? document.owner.thread : "user";
      items.set(`record ${owner}/${document.document.namespace}/${document.document.key}`, JSON.stringify(document.document.value));
    }
  }
  return items;
}

/** Returns the names of the items that the target does not have, or has with another content. */
export function compare(source: Items, target: Items): string[] {
  return [...source].filter(([name, content]) => target.get(name) !== content).map(([name]) => name);
}

function counts(items: Items): { threads: number; messages: number; records: number } {
  const count = (kind: string) => [...items.keys()].filter((name) => name.startsWith(`${kind} `)).length;
  return { threads: count("thread"), messages: count("message"), records: count("record") };
}

function isThreadOwner(owner: unknown): owner is { thread: string } {
  return typeof owner === "object" && owner !== null && "thread" in owner;
}
