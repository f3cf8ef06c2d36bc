/** The client for the server's HTTP API. */
import { ApiError } from "./client";
import type { Client, Decision, MessagePage, MessageQuery, Passage, Question, ThreadPage, TurnState } from "./client";
import { readEvents } from "./sse";
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
  ThreadEvent,
  ThreadUpdate,
  Turn,
  TurnEvent,
  UploadedFile,
} from "./types";

/** The silence after which a connection counts as lost. The server sends a heartbeat every 15 s. */
const SILENCE_MS = 40_000;
const KEY_STORAGE = "threadkeep.key";
const USER_STORAGE = "threadkeep.user";

interface Request {
  method?: string;
  body?: unknown;
  raw?: Blob;
  headers?: Record<string, string>;
  cache?: RequestCache;
  signal?: AbortSignal | undefined;
}

export class HttpClient implements Client {
  /** @param base The base URL of the server, which ends with a slash. */
  constructor(private readonly base: string) {}

  // A key is kept in this tab only. The server's own token is exchanged for a cookie that scripts cannot read.
  private credentials(): Record<string, string> {
    const key = sessionStorage.getItem(KEY_STORAGE);
    const user = sessionStorage.getItem(USER_STORAGE);
    return { ...(key ? { authorization: `Bearer ${key}` } : {}), ...(user ? { "threadkeep-user": user } : {}) };
  }

  private async send(path: string, request: Request = {}): Promise<Response> {
    const { method = request.body === undefined && !request.raw ? "GET" : "POST", cache = "no-store", signal } = request;
    const headers: Record<string, string> = { ...this.credentials(), ...request.headers };
    let body: BodyInit | null = request.raw ?? null;
    if (request.body !== undefined) {
      headers["content-type"] ??= "application/json";
      body = JSON.stringify(request.body);
    }
    let response: Response;
    try {
      const init: RequestInit = { method, headers, body, credentials: "same-origin", cache, redirect: "error" };
      response = await fetch(this.base + path, signal ? { ...init, signal } : init);
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new ApiError("The server cannot be reached.", 0, "unreachable");
    }
    if (!response.ok) throw await readError(response);
    return response;
  }

  private async json<T>(path: string, request: Request = {}): Promise<T> {
    const response = await this.send(path, request);
    return (await response.json()) as T;
  }

  caller(signal?: AbortSignal): Promise<Caller> {
    return this.json("v1/caller", { signal });
  }

  async signIn(secret: string, user?: string): Promise<void> {
    this.signOut();
    // A key or a short-lived token is sent with each request.
    if (/^(tk_|tkb_|eyJ)/.test(secret)) {
      sessionStorage.setItem(KEY_STORAGE, secret);
      if (user) sessionStorage.setItem(USER_STORAGE, user);
      try {
        await this.caller();
      } catch (error) {
        this.signOut();
        throw error;
      }
      return;
    }
    await this.send("v1/session", { body: { token: secret } });
  }

  signOut(): void {
    sessionStorage.removeItem(KEY_STORAGE);
    sessionStorage.removeItem(USER_STORAGE);
  }

  async agents(): Promise<Agent[]> {
    return (await this.json<{ data: Agent[] }>("v1/agents")).data;
  }

  agent(name: string): Promise<AgentDetail> {
    return this.json(`v1/agents/${encodeURIComponent(name)}`);
  }

  networkMap(agent: string): Promise<NetworkMap> {
    // The browser keeps the map, and asks the server whether it has changed.
    return this.json(`v1/agents/${encodeURIComponent(agent)}/map`, { cache: "no-cache" });
  }

  async sourceText(agent: string, kind: string, id: string): Promise<string | null> {
    const query = new URLSearchParams({ kind, id });
    try {
      return (await this.json<{ text: string }>(`v1/agents/${encodeURIComponent(agent)}/source?${query.toString()}`)).text;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  threads(after?: string, limit = 50): Promise<ThreadPage> {
    const query = new URLSearchParams({ limit: String(limit), ...(after ? { after } : {}) });
    return this.json(`v1/threads?${query.toString()}`);
  }

  thread(id: string, signal?: AbortSignal): Promise<Thread> {
    return this.json(threadPath(id), { signal });
  }

  createThread(id: string, metadata: Record<string, unknown>): Promise<Thread> {
    return this.json("v1/threads", { body: { id, metadata } });
  }

  renameThread(id: string, title: string | null): Promise<Thread> {
    return this.json(threadPath(id), { method: "PATCH", body: { title } });
  }

  async deleteThread(id: string): Promise<void> {
    await this.send(threadPath(id), { method: "DELETE" });
  }

  forkThread(id: string, throughSeq: number, key: string): Promise<Thread> {
    return this.json(`${threadPath(id)}/fork`, { body: { through_seq: throughSeq }, headers: { "idempotency-key": key } });
  }

  async messages(thread: string, { before, after, limit }: MessageQuery): Promise<MessagePage> {
    const query = new URLSearchParams({ limit: String(limit), order: after === undefined ? "desc" : "asc" });
    if (before !== undefined) query.set("before", String(before));
    if (after !== undefined) query.set("after", String(after));
    const response = await this.send(`${threadPath(thread)}/messages?${query.toString()}`);
    const page = (await response.json()) as { data: Message[]; has_more: boolean };
    const messages = after === undefined ? page.data.reverse() : page.data;
    const position = (response.headers.get("etag") ?? "").replace(/^"|"$/g, "");
    return { messages, hasMore: page.has_more, position };
  }

  message(thread: string, seq: number): Promise<Message> {
    return this.json(`${threadPath(thread)}/messages/${seq}`);
  }

  async eraseMessage(thread: string, seq: number): Promise<void> {
    await this.send(`${threadPath(thread)}/messages/${seq}`, { method: "DELETE" });
  }

  async *follow(thread: string, position: string, signal: AbortSignal): AsyncGenerator<ThreadUpdate> {
    const response = await this.send(`${threadPath(thread)}/events?after=${encodeURIComponent(position)}`, {
      headers: { accept: "text/event-stream" },
      signal,
    });
    if (!response.body) return;
    for await (const { id, event, data } of readEvents(response.body, SILENCE_MS)) {
      const update = JSON.parse(data) as { change?: number; events?: ThreadEvent[]; reason?: string };
      if (event === "commit") {
        yield { type: "commit", position: id ?? String(update.change), change: update.change ?? 0, events: update.events ?? [] };
      } else if (event === "reset") yield { type: "reset", position: id ?? String(update.change) };
      else if (event === "deleted") yield { type: "deleted" };
      else if (event === "end") yield { type: "end", reason: update.reason ?? "" };
    }
  }

  ask({ agent, thread, text, key }: Question, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    const body = { text, thread, stream: true };
    return this.turnEvents(`v1/agents/${encodeURIComponent(agent)}/turns`, body, key, signal);
  }

  decide({ thread, approval, key, ...decision }: Decision, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    const path = `${threadPath(thread)}/approvals/${encodeURIComponent(approval)}`;
    return this.turnEvents(path, { ...decision, stream: true }, key, signal);
  }

  private async *turnEvents(path: string, body: unknown, key: string, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    const response = await this.send(path, { body, headers: { "idempotency-key": key, accept: "text/event-stream" }, signal });
    if (!response.body) return;
    for await (const { event, data } of readEvents(response.body, SILENCE_MS)) {
      if (event === "end") throw new ApiError("The server is stopping.", 503, "shutdown");
      if (event === "error") {
        const { message, code } = JSON.parse(data) as { message: string; code: string };
        throw new ApiError(message, 500, code);
      }
      const update = turnEvent(event, JSON.parse(data));
      if (update) yield update;
      if (update?.type === "ended") return;
    }
    throw new ApiError("The connection was lost.", 0, "connection_lost");
  }

  async turn(thread: string, turn: string): Promise<TurnState> {
    const response = await this.send(`${threadPath(thread)}/turns/${encodeURIComponent(turn)}`);
    if (response.status === 202) return { running: true };
    return { running: false, turn: (await response.json()) as Turn };
  }

  stopTurn(thread: string, turn: string): Promise<Turn> {
    return this.json(`${threadPath(thread)}/turns/${encodeURIComponent(turn)}/cancel`, { method: "POST" });
  }

  async approvals(all: boolean): Promise<Approval[]> {
    return (await this.json<{ data: Approval[] }>(`v1/approvals?limit=100${all ? "&all=true" : ""}`)).data;
  }

  async approvalsOf(thread: string): Promise<Approval[]> {
    const query = new URLSearchParams({ thread, all: "true" });
    return (await this.json<{ data: Approval[] }>(`v1/approvals?${query.toString()}`)).data;
  }

  context(thread: string, question: string, policy: Policy, signal: AbortSignal): Promise<AssembledContext> {
    const body = { policy, ...(question.trim() ? { question } : {}) };
    return this.json(`${threadPath(thread)}/context`, { body, signal });
  }

  async contextReport(thread: string, turn: string): Promise<Report | null> {
    try {
      return await this.json(`${threadPath(thread)}/context/${encodeURIComponent(turn)}`);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  recall(question: string, thread: string | null, limit: number, signal?: AbortSignal): Promise<Recalled> {
    return this.json("v1/recall", { body: { question, limit, ...(thread ? { thread } : {}) }, signal });
  }

  search(query: string, options: { thread?: string; after?: string }, signal?: AbortSignal): Promise<Hits> {
    return this.json("v1/search", { body: { query, ...options }, signal });
  }

  async passages(query: string, limit: number): Promise<Passage[]> {
    type Found = { data: { filename: string; place: string; text: string }[] };
    const { data } = await this.json<Found>("v1/files/search", { body: { query, limit } });
    return data.map(({ filename, place, text }) => ({ title: place ? `${filename}, ${place}` : filename, text }));
  }

  uploadFile(file: File, key: string, onProgress: (share: number) => void, signal: AbortSignal): Promise<UploadedFile> {
    const form = new FormData();
    form.set("purpose", "assistants");
    form.set("file", file, file.name);
    // `fetch` does not report the progress of an upload.
    const request = new XMLHttpRequest();
    return new Promise((resolve, reject) => {
      request.open("POST", `${this.base}v1/files`);
      for (const [name, value] of Object.entries({ ...this.credentials(), "idempotency-key": key })) request.setRequestHeader(name, value);
      request.upload.addEventListener("progress", ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0));
      request.addEventListener("load", () => {
        try {
          if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText) as UploadedFile);
          else reject(errorOf(request.status, request.responseText, request.getResponseHeader("retry-after")));
        } catch {
          reject(errorOf(request.status, "", null));
        }
      });
      request.addEventListener("error", () => reject(new ApiError("The server cannot be reached.", 0, "unreachable")));
      request.addEventListener("abort", () => reject(new DOMException("The upload was stopped.", "AbortError")));
      signal.addEventListener("abort", () => request.abort(), { once: true });
      request.send(form);
    });
  }

  file(id: string, signal?: AbortSignal): Promise<UploadedFile> {
    return this.json(`v1/files/${encodeURIComponent(id)}`, { signal });
  }

  async deleteFile(id: string): Promise<void> {
    await this.send(`v1/files/${encodeURIComponent(id)}`, { method: "DELETE" });
  }

  analytics(thread?: string): Promise<Analytics> {
    return this.json(`v1/analytics${thread ? `?${new URLSearchParams({ thread }).toString()}` : ""}`);
  }

  importFile(file: Blob): Promise<Imported> {
    return this.json("v1/import", { raw: file, headers: { "content-type": "application/octet-stream" } });
  }

  async exportFile(thread?: string): Promise<Blob> {
    const query = thread ? `?${new URLSearchParams({ thread }).toString()}` : "";
    return (await this.send(`v1/export${query}`)).blob();
  }

  eraseUser(user: string): Promise<Erased> {
    return this.json("v1/erase", { body: { user } });
  }
}

function threadPath(id: string): string {
  return `v1/threads/${encodeURIComponent(id)}`;
}

async function readError(response: Response): Promise<ApiError> {
  return errorOf(response.status, await response.text().catch(() => ""), response.headers.get("retry-after"));
}

function errorOf(status: number, body: string, retryAfter: string | null): ApiError {
  const seconds = Number(retryAfter);
  const retryAfterMs = Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : null;
  try {
    const { error } = JSON.parse(body) as { error: { message: string; code: string } };
    return new ApiError(error.message, status, error.code, retryAfterMs);
  } catch {
    return new ApiError(`The server responded with status ${status}.`, status, "unknown", retryAfterMs);
  }
}
