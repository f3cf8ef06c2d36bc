/** The client of the page without a server: its calls are answered by the engine in the browser. */
import { ApiError } from "./client";
import type { Client, MessagePage, MessageQuery, Passage, Question, ThreadPage, TurnState } from "./client";
import type { Engine, Store, TurnListener } from "./engine";
import { USER } from "./engine";
import { Queue } from "./queue";
import { turnEvent } from "./turn_events";
import type {
  Agent,
  AgentDetail,
  Analytics,
  Approval,
  AssembledContext,
  Caller,
  Erased,
  Hits,
  Imported,
  Message,
  NetworkMap,
  Policy,
  Recalled,
  Report,
  Thread,
  ThreadUpdate,
  Turn,
  TurnEvent,
  UploadedFile,
} from "./types";

/** The statuses that the server would respond with, for the codes that the page distinguishes. */
const STATUSES: Record<string, number> = { not_found: 404, busy: 409, unavailable: 503 };

export class OfflineClient implements Client {
  constructor(
    private readonly engine: Engine,
    private readonly store: Store,
  ) {}

  caller(): Promise<Caller> {
    return Promise.resolve({ tenant: "local", user: USER, roles: ["read", "write", "approve", "admin"] });
  }

  signIn(): Promise<void> {
    return Promise.resolve();
  }

  signOut(): void {
    // Anyone who can open this browser has access.
  }

  agents(): Promise<Agent[]> {
    return call(() => this.engine.agents());
  }

  agent(name: string): Promise<AgentDetail> {
    return call(() => this.engine.agent(name));
  }

  networkMap(): Promise<NetworkMap> {
    return Promise.reject(new ApiError("This assistant has no map.", 404, "no_map"));
  }

  /** The assistant of this engine has no collection of its own. */
  sourceText(): Promise<string | null> {
    return Promise.resolve(null);
  }

  threads(after?: string, limit = 50): Promise<ThreadPage> {
    return call(() => this.engine.threads(after, limit));
  }

  thread(id: string, signal?: AbortSignal): Promise<Thread> {
    return call(() => this.engine.thread(id), signal);
  }

  createThread(id: string, metadata: Record<string, unknown>): Promise<Thread> {
    return call(() => this.engine.createThread(id, metadata));
  }

  renameThread(id: string, title: string | null): Promise<Thread> {
    return call(() => this.engine.renameThread(id, title ?? undefined));
  }

  deleteThread(id: string): Promise<void> {
    return call(() => this.engine.deleteThread(id));
  }

  forkThread(id: string, throughSeq: number, key: string): Promise<Thread> {
    return call(() => this.engine.forkThread(id, throughSeq, key));
  }

  messages(thread: string, { before, after, limit }: MessageQuery): Promise<MessagePage> {
    return call(() => this.engine.messages(thread, before, after, limit));
  }

  message(thread: string, seq: number): Promise<Message> {
    return call(() => this.engine.message(thread, seq));
  }

  eraseMessage(thread: string, seq: number): Promise<void> {
    return call(() => this.engine.eraseMessage(thread, seq));
  }

  async *follow(thread: string, position: string, signal: AbortSignal): AsyncGenerator<ThreadUpdate> {
    const updates = new Queue<ThreadUpdate>();
    const listener = (update: ThreadUpdate | Error) => {
      if (update instanceof Error) updates.fail(apiError(update));
      else updates.push(update);
    };
    const subscription = await call(() => this.engine.follow(thread, position, listener), signal);
    try {
      yield* updates.until(signal);
    } finally {
      subscription.stop();
    }
  }

  ask({ agent, thread, text, key }: Question, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    return turnEvents((listener) => this.engine.ask(agent, thread, text, key, listener), signal);
  }

  decide(): AsyncIterable<TurnEvent> {
    // No tool of the assistant requires approval.
    throw new ApiError("There are no approvals.", 404, "not_found");
  }

  async turn(thread: string, turn: string): Promise<TurnState> {
    const found = await call(() => this.engine.turn(thread, turn));
    return found ? { running: false, turn: found } : { running: true };
  }

  stopTurn(thread: string, turn: string): Promise<Turn> {
    return call(() => this.engine.stopTurn(thread, turn));
  }

  approvals(): Promise<Approval[]> {
    return Promise.resolve([]);
  }

  approvalsOf(): Promise<Approval[]> {
    return Promise.resolve([]);
  }

  context(thread: string, question: string, policy: Policy, signal: AbortSignal): Promise<AssembledContext> {
    return call(() => this.engine.context(thread, question.trim() ? question : undefined, policy), signal);
  }

  contextReport(thread: string, turn: string): Promise<Report | null> {
    return call(() => this.engine.contextReport(thread, turn));
  }

  recall(question: string, thread: string | null, limit: number, signal?: AbortSignal): Promise<Recalled> {
    return call(() => this.engine.recall(question, thread ?? undefined, limit), signal);
  }

  search(query: string, options: { thread?: string; after?: string }, signal?: AbortSignal): Promise<Hits> {
    return call(() => this.engine.search(query, options.thread, options.after), signal);
  }

  async passages(question: string, limit: number): Promise<Passage[]> {
    const found = await call(() => this.engine.passages(question, limit));
    return found.map(([title, place, text]) => ({ title: place ? `${title}, ${place}` : title, text }));
  }

  async uploadFile(file: File, key: string, onProgress: (share: number) => void, signal: AbortSignal): Promise<UploadedFile> {
    const bytes = await file.arrayBuffer();
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      throw new ApiError("The file is not a UTF-8 text.", 400, "unsupported_file");
    }
    const added = await call(() => this.engine.addDocument(key, file.name, text), signal);
    onProgress(1);
    return added;
  }

  file(id: string, signal?: AbortSignal): Promise<UploadedFile> {
    return call(() => this.engine.document(id), signal);
  }

  deleteFile(id: string): Promise<void> {
    return call(() => this.engine.removeDocument(id));
  }

  analytics(thread?: string): Promise<Analytics> {
    return call(() => this.engine.analytics(thread));
  }

  async importFile(file: Blob): Promise<Imported> {
    const bytes = new Uint8Array(await file.arrayBuffer());
    return call(() => this.engine.import(bytes));
  }

  async exportFile(thread?: string): Promise<Blob> {
    const lines: string[] = [];
    await call(() => this.store.export((line) => lines.push(line, "\n"), thread));
    return new Blob(lines, { type: "application/jsonl" });
  }

  eraseUser(user: string): Promise<Erased> {
    return call(() => this.engine.eraseUser(user));
  }
}

/** Calls the engine. An aborted call rejects at once; what the engine has begun is completed. */
async function call<T>(run: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
  signal?.throwIfAborted();
  try {
    const result = await run();
    signal?.throwIfAborted();
    return result;
  } catch (error) {
    throw apiError(error);
  }
}

/** Runs a turn. It continues if the page no longer follows it. */
async function* turnEvents(run: (listener: TurnListener) => Promise<void>, signal: AbortSignal): AsyncGenerator<TurnEvent> {
  const events = new Queue<TurnEvent>();
  const running = run((name, data) => {
    const event = turnEvent(name, data);
    if (event) events.push(event);
  });
  running.catch((error: unknown) => events.fail(apiError(error)));
  for await (const event of events.until(signal)) {
    yield event;
    if (event.type === "ended") return;
  }
}

function apiError(error: unknown): Error {
  if (error instanceof Error && "code" in error && typeof error.code === "string") {
    return new ApiError(error.message, STATUSES[error.code] ?? 400, error.code);
  }
  return error instanceof Error ? error : new Error(String(error));
}
