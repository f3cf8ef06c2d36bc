/** The open threads. A thread with a running turn stays open while another one is shown. */
import { effect, signal } from "@preact/signals";
import type { Thread } from "../api/types";
import { Conversation } from "../chat/conversation";
import { client, messageOf, noteFailure } from "./session";

const PAGE = 60;

export const threads = signal<Thread[]>([]);
export const nextThreads = signal<string | null>(null);
export const threadsProblem = signal<string | null>(null);
export const threadsLoaded = signal(false);

const conversations = new Map<string, Conversation>();
const shown = signal<string | null>(null);

export async function loadThreads(): Promise<void> {
  try {
    const page = await client.threads(undefined, PAGE);
    threads.value = page.data;
    nextThreads.value = page.next;
    threadsProblem.value = null;
  } catch (error) {
    noteFailure(error);
    threadsProblem.value = messageOf(error);
  } finally {
    threadsLoaded.value = true;
  }
}

export async function loadMoreThreads(): Promise<void> {
  if (!nextThreads.value) return;
  const page = await client.threads(nextThreads.value, PAGE);
  const known = new Set(threads.value.map(({ id }) => id));
  threads.value = [...threads.value, ...page.data.filter(({ id }) => !known.has(id))];
  nextThreads.value = page.next;
}

let reload: ReturnType<typeof setTimeout> | undefined;

/** Reloads the list soon; many changes cause one reload. */
function reloadSoon(): void {
  clearTimeout(reload);
  reload = setTimeout(() => void loadThreads(), 300);
}

/** Returns the conversation of a thread; creates it if there is none. */
export function conversation(id: string): Conversation {
  const known = conversations.get(id);
  if (known) return known;
  const created = new Conversation(client, id, reloadSoon);
  conversations.set(id, created);
  return created;
}

/** Shows a thread; closes the connections of others. */
export function show(id: string | null): void {
  shown.value = id;
  for (const [other, open] of conversations) {
    if (other === id) continue;
    open.close();
    if (!open.isBusy) {
      open.dispose();
      conversations.delete(other);
    }
  }
}

export function forget(id: string): void {
  conversations.get(id)?.dispose();
  conversations.delete(id);
  threads.value = threads.value.filter((thread) => thread.id !== id);
}

/** Closes the connection of a hidden tab, because a browser opens only a few connections to each server. */
export function startVisibility(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const isVisible = signal(!document.hidden);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => (isVisible.value = false), 60_000);
    else isVisible.value = true;
  });
  effect(() => {
    const open = shown.value === null ? undefined : conversations.get(shown.value);
    if (isVisible.value) open?.resume();
    else open?.close();
  });
  addEventListener("online", () => {
    if (shown.value) conversations.get(shown.value)?.reconnect();
  });
}
