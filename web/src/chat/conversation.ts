/**
 * An open thread: its messages, its live connection and its running turn. Views read the signals.
 *
 * The connection resumes from the position of the last update, so nothing is missed or shown twice. A question is sent with an
 * idempotency key, which is kept until the answer has arrived, even across a reload: sending the question again with its key does not
 * ask it again.
 */
import { batch, signal } from "@preact/signals";
import { ApiError } from "../api/client";
import type { Client } from "../api/client";
import type { Approval, ApprovalTrace, Message, Thread, ThreadUpdate, ToolCallTrace, Turn, TurnEvent } from "../api/types";
import { randomId } from "../app/ids";
import { isAbort, messageOf, noteFailure } from "../app/session";
import { loadForTab, storeForTab } from "../app/storage";
import { EMPTY, apply, lastSeq, merge } from "./feed";
import type { Feed } from "./feed";
import { turnOf } from "./turn";

const PAGE = 60;
const FIRST_DELAY_MS = 400;
const MAX_DELAY_MS = 8_000;

export type Connection = "connecting" | "live" | "lost" | "deleting" | "deleted";

export interface RunningCall {
  id: string;
  name: string;
  arguments: unknown;
  result: ToolCallTrace | null;
}

/** A question, stored until its answer has arrived. */
interface StoredQuestion {
  agent: string;
  text: string;
  key: string;
  /** The last position when the question was asked. */
  since: number;
}

export interface Pending {
  kind: "question" | "decision";
  agent: string;
  /** The question; empty for a decision. */
  text: string;
  /** The last position before the turn. */
  since: number;
  turn: string | null;
  tokens: string;
  calls: RunningCall[];
  state: "sending" | "running" | "reconnecting" | "stopping" | "failed";
  problem: string | null;
}

export class Conversation {
  readonly feed = signal<Feed>(EMPTY);
  readonly thread = signal<Thread | null>(null);
  readonly connection = signal<Connection>("connecting");
  readonly pending = signal<Pending | null>(null);
  readonly approvals = signal<ReadonlyMap<string, Approval>>(new Map());
  readonly problem = signal<string | null>(null);
  readonly loaded = signal(false);

  private position = "";
  private opening: AbortController | null = null;
  private following: AbortController | null = null;
  private turnCall: AbortController | null = null;
  private isLoadingMore = false;
  private retryNow: (() => void) | null = null;

  constructor(
    private readonly client: Client,
    readonly id: string,
    private readonly onChange: () => void,
  ) {}

  get isBusy(): boolean {
    const state = this.pending.value?.state;
    return state !== undefined && state !== "failed";
  }

  /** Loads the newest messages, or those around a position. */
  async open(around: number | null): Promise<void> {
    this.opening?.abort();
    const stop = new AbortController();
    this.opening = stop;
    let delay = FIRST_DELAY_MS;
    while (!stop.signal.aborted && !(await this.tryOpen(around))) {
      this.connection.value = "lost";
      await this.wait(delay, stop.signal);
      delay = Math.min(delay * 2, MAX_DELAY_MS);
    }
  }

  /** Returns false if the server cannot be reached. */
  private async tryOpen(around: number | null): Promise<boolean> {
    try {
      const thread = await this.client.thread(this.id);
      const approvals = await this.client.approvalsOf(this.id);
      if (around === null || around > thread.seq - PAGE / 2) await this.loadNewest();
      else await this.loadAround(around);
      batch(() => {
        this.thread.value = thread;
        this.approvals.value = new Map(approvals.map((approval) => [approval.id, approval]));
        this.problem.value = null;
        this.loaded.value = true;
      });
      this.follow();
      this.resumeQuestion();
    } catch (error) {
      if (error instanceof ApiError && error.isUnreachable) return false;
      noteFailure(error);
      this.problem.value = messageOf(error);
    }
    return true;
  }

  /** Opens a thread that was just created, without loading it. */
  openNew(thread: Thread): void {
    this.thread.value = thread;
    this.loaded.value = true;
    this.position = String(thread.change);
    this.follow();
  }

  private async loadNewest(): Promise<void> {
    const page = await this.client.messages(this.id, { limit: PAGE });
    this.position = page.position;
    this.feed.value = { messages: page.messages, hasOlder: page.hasMore, hasNewer: false };
  }

  private async loadAround(seq: number): Promise<void> {
    const after = Math.max(0, seq - PAGE / 2);
    const page = await this.client.messages(this.id, { after, limit: PAGE });
    this.position = page.position;
    this.feed.value = { messages: page.messages, hasOlder: after > 0, hasNewer: page.hasMore };
  }

  async loadOlder(): Promise<void> {
    const first = this.feed.value.messages[0];
    if (!first || !this.feed.value.hasOlder || this.isLoadingMore) return;
    this.isLoadingMore = true;
    try {
      const page = await this.client.messages(this.id, { before: first.seq, limit: PAGE });
      this.feed.value = { ...this.feed.value, messages: merge(page.messages, this.feed.value.messages), hasOlder: page.hasMore };
    } catch (error) {
      noteFailure(error);
    } finally {
      this.isLoadingMore = false;
    }
  }

  async loadNewer(): Promise<void> {
    if (!this.feed.value.hasNewer || this.isLoadingMore) return;
    this.isLoadingMore = true;
    try {
      const page = await this.client.messages(this.id, { after: lastSeq(this.feed.value), limit: PAGE });
      this.feed.value = { ...this.feed.value, messages: merge(this.feed.value.messages, page.messages), hasNewer: page.hasMore };
    } catch (error) {
      noteFailure(error);
    } finally {
      this.isLoadingMore = false;
    }
  }

  async showNewest(): Promise<void> {
    await this.loadNewest();
  }

  // The live connection.

  private follow(): void {
    this.following?.abort();
    const stop = new AbortController();
    this.following = stop;
    void this.keepFollowing(stop.signal);
  }

  private async keepFollowing(signal: AbortSignal): Promise<void> {
    let delay = FIRST_DELAY_MS;
    while (!signal.aborted) {
      try {
        const updates = this.client.follow(this.id, this.position, signal);
        this.connection.value = "live";
        for await (const update of updates) {
          delay = FIRST_DELAY_MS;
          this.connection.value = "live";
          await this.handle(update, signal);
        }
      } catch (error) {
        if (isAbort(error) || isAborted(signal)) return;
        noteFailure(error);
        if (error instanceof ApiError && error.status === 404) {
          this.connection.value = "deleted";
          return;
        }
        if (error instanceof ApiError && error.status === 401) return;
      }
      if (this.connection.peek() === "deleted" || isAborted(signal)) return;
      this.connection.value = "lost";
      await this.wait(delay, signal);
      delay = Math.min(delay * 2, MAX_DELAY_MS);
    }
  }

  private async wait(ms: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      const now = () => {
        clearTimeout(timer);
        resolve();
      };
      this.retryNow = now;
      signal.addEventListener("abort", now, { once: true });
    });
    this.retryNow = null;
  }

  /** Reconnects immediately, for example because the network is back. */
  reconnect(): void {
    this.retryNow?.();
  }

  private async handle(update: ThreadUpdate, signal: AbortSignal): Promise<void> {
    switch (update.type) {
      case "commit":
        batch(() => {
          for (const event of update.events) {
            this.feed.value = apply(this.feed.value, event);
            if (event.type === "approval") {
              this.approvals.value = new Map(this.approvals.value).set(event.approval.id, event.approval);
            }
          }
        });
        this.position = update.position;
        if (update.events.some(({ type }) => type === "patched" || type === "appended")) await this.readThread(signal);
        break;
      case "reset":
        await this.loadNewest();
        break;
      case "deleted":
        this.connection.value = "deleted";
        break;
      case "end":
        throw new ApiError(update.reason, 0, update.reason);
    }
  }

  private async readThread(signal?: AbortSignal): Promise<void> {
    try {
      this.thread.value = await this.client.thread(this.id, signal);
      this.onChange();
    } catch (error) {
      if (!isAbort(error)) noteFailure(error);
    }
  }

  /** Deletes the thread. Stops following it first, because the server would answer further requests with an error. */
  async delete(): Promise<void> {
    this.close();
    this.connection.value = "deleting";
    try {
      await this.client.deleteThread(this.id);
    } catch (error) {
      this.connection.value = "connecting";
      this.resume();
      throw error;
    }
  }

  /** Stops following. A running turn continues, and its answer is loaded when the thread is opened again. */
  close(): void {
    this.opening?.abort();
    this.following?.abort();
    this.following = null;
  }

  resume(): void {
    if (!this.following && this.loaded.peek()) this.follow();
  }

  dispose(): void {
    this.close();
    this.turnCall?.abort();
  }

  // Turns.

  ask(agent: string, text: string): void {
    this.send({ agent, text, key: randomId(), since: lastSeq(this.feed.peek()) });
  }

  private send(kept: StoredQuestion): void {
    storeForTab(`pending.${this.id}`, kept);
    const { agent, text, key, since } = kept;
    const question = { agent, text, key, thread: this.id };
    this.run({ kind: "question", agent, text, since }, (signal) => this.client.ask(question, signal));
  }

  /** Attaches to the turn of a question that was sent before the page was reloaded. */
  private resumeQuestion(): void {
    const kept = loadForTab(`pending.${this.id}`) as StoredQuestion | null;
    if (kept && !this.pending.value) this.send(kept);
  }

  decide(approval: Approval, decision: "approve" | "deny", reason: string): void {
    const body = { thread: this.id, approval: approval.id, decision, key: randomId(), ...(reason ? { reason } : {}) };
    const agent = this.agentOf(approval.turn) ?? "";
    this.run({ kind: "decision", agent, text: "", since: 0 }, (signal) => this.client.decide(body, signal));
  }

  private agentOf(turn: string): string | null {
    const found = this.feed.value.messages.find((message) => turnOf(message) === turn && message.agent);
    return found?.agent ?? null;
  }

  private run(base: Pick<Pending, "kind" | "agent" | "text" | "since">, start: (signal: AbortSignal) => AsyncIterable<TurnEvent>): void {
    if (this.isBusy) return;
    this.turnCall = new AbortController();
    this.pending.value = { ...base, turn: null, tokens: "", calls: [], state: "sending", problem: null };
    void this.keepRunning(start, this.turnCall.signal);
  }

  private async keepRunning(start: (signal: AbortSignal) => AsyncIterable<TurnEvent>, signal: AbortSignal): Promise<void> {
    let delay = FIRST_DELAY_MS;
    while (!signal.aborted) {
      try {
        this.update({ tokens: "", calls: [] });
        for await (const event of start(signal)) {
          delay = FIRST_DELAY_MS;
          if (event.type === "ended") {
            await this.finish(event.turn);
            return;
          }
          this.note(event);
        }
        throw new ApiError("The connection was lost.", 0, "connection_lost");
      } catch (error) {
        if (isAbort(error) || isAborted(signal)) return;
        noteFailure(error);
        const isLost = !(error instanceof ApiError) || error.isUnreachable;
        if (!isLost) {
          storeForTab(`pending.${this.id}`, null);
          this.update({ state: "failed", problem: messageOf(error) });
          return;
        }
        this.update({ state: "reconnecting" });
        await new Promise((resolve) => setTimeout(resolve, delay));
        delay = Math.min(delay * 2, MAX_DELAY_MS);
      }
    }
  }

  private update(changes: Partial<Pending>): void {
    if (this.pending.value) this.pending.value = { ...this.pending.value, ...changes };
  }

  private note(event: Exclude<TurnEvent, { type: "ended" }>): void {
    const pending = this.pending.value;
    if (!pending) return;
    // A turn that is being stopped still sends events until it has ended.
    const state = pending.state === "stopping" ? "stopping" : "running";
    switch (event.type) {
      case "started":
        this.pending.value = { ...pending, state, turn: event.turn, agent: event.agent };
        break;
      case "token":
        this.pending.value = { ...pending, state, tokens: pending.tokens + event.text };
        break;
      case "restarted":
        this.pending.value = { ...pending, state, tokens: "" };
        break;
      case "tool_started": {
        const call = { id: event.id, name: event.name, arguments: event.arguments, result: null };
        const calls = [...pending.calls.filter(({ id }) => id !== event.id), call];
        this.pending.value = { ...pending, state, tokens: "", calls };
        break;
      }
      case "tool_finished": {
        const done = { id: event.call.id, name: event.call.name, arguments: event.call.arguments, result: event.call };
        const isKnown = pending.calls.some(({ id }) => id === done.id);
        const calls = isKnown ? pending.calls.map((call) => (call.id === done.id ? done : call)) : [...pending.calls, done];
        this.pending.value = { ...pending, state, calls };
        break;
      }
      case "approval":
        this.noteApproval(event.approval, pending.turn ?? "");
        break;
    }
  }

  private noteApproval(trace: ApprovalTrace, turn: string): void {
    const known = this.approvals.value.get(trace.id);
    const now = new Date().toISOString();
    const approval: Approval = { by: null, decided_at: null, reason: null, requested_at: now, turn, thread: this.id, ...known, ...trace };
    this.approvals.value = new Map(this.approvals.value).set(trace.id, approval);
  }

  /** Replaces the streamed text with the stored messages of the turn, in one step. */
  private async finish(turn: Turn): Promise<void> {
    storeForTab(`pending.${this.id}`, null);
    const last = Math.max(0, ...turn.stored.map(({ seq }) => seq));
    let added: Message[] = [];
    try {
      if (!this.feed.value.hasNewer && lastSeq(this.feed.value) < last) {
        added = (await this.client.messages(this.id, { after: lastSeq(this.feed.value), limit: 1000 })).messages;
      }
    } catch (error) {
      // The live connection delivers the messages.
      noteFailure(error);
    }
    batch(() => {
      this.feed.value = { ...this.feed.value, messages: merge(this.feed.value.messages, added) };
      for (const trace of turn.approvals) this.noteApproval(trace, turn.turn);
      this.pending.value = null;
    });
    await this.readThread();
  }

  async stop(): Promise<void> {
    const pending = this.pending.value;
    if (!pending?.turn || pending.state === "failed") return;
    this.update({ state: "stopping" });
    try {
      await this.finish(await this.client.stopTurn(this.id, pending.turn));
      this.turnCall?.abort();
    } catch (error) {
      noteFailure(error);
      this.update({ state: "running", problem: messageOf(error) });
    }
  }

  /** Drops a question that could not be sent, and returns its text. */
  dismiss(): string {
    const text = this.pending.value?.text ?? "";
    this.pending.value = null;
    return text;
  }

  async erase(seq: number): Promise<void> {
    await this.client.eraseMessage(this.id, seq);
    this.feed.value = apply(this.feed.value, { type: "erased", seq, id: "" });
  }
}

/** Whether a signal has been aborted. The compiler assumes that `signal.aborted` does not change after a check. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

