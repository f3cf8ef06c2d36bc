/**
 * The interface through which views reach the server. `HttpClient` implements it with the server's HTTP API; another engine, for
 * example in the browser, could implement it too.
 */
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

export interface ThreadPage {
  data: Thread[];
  next: string | null;
}

/** Messages in ascending order, and the position from which to follow the thread. */
export interface MessagePage {
  messages: Message[];
  hasMore: boolean;
  position: string;
}

export interface MessageQuery {
  /** Only messages before this position, newest first. */
  before?: number;
  /** Only messages after this position, oldest first. */
  after?: number;
  limit: number;
}

export interface Question {
  agent: string;
  thread: string;
  text: string;
  /** A question that is sent again with the same key is not asked twice. */
  key: string;
}

export interface Decision {
  thread: string;
  approval: string;
  decision: "approve" | "deny";
  arguments?: Record<string, unknown>;
  reason?: string;
  key: string;
}

export interface Passage {
  /** The title of a source that cites the passage. */
  title: string;
  text: string;
}

export type TurnState = { running: false; turn: Turn } | { running: true };

export interface Client {
  caller(signal?: AbortSignal): Promise<Caller>;
  /** Signs in with the server's token, a key, or a short-lived token. */
  signIn(secret: string, user?: string): Promise<void>;
  signOut(): void;

  agents(): Promise<Agent[]>;
  agent(name: string): Promise<AgentDetail>;
  /** The network that an assistant's answers are about. */
  networkMap(agent: string): Promise<NetworkMap>;
  /** The text of a source from an assistant's own collection; `null` if it is not there. */
  sourceText(agent: string, kind: string, id: string): Promise<string | null>;

  threads(after?: string, limit?: number): Promise<ThreadPage>;
  thread(id: string, signal?: AbortSignal): Promise<Thread>;
  createThread(id: string, metadata: Record<string, unknown>): Promise<Thread>;
  renameThread(id: string, title: string | null): Promise<Thread>;
  deleteThread(id: string): Promise<void>;
  forkThread(id: string, throughSeq: number, key: string): Promise<Thread>;

  messages(thread: string, query: MessageQuery): Promise<MessagePage>;
  message(thread: string, seq: number): Promise<Message>;
  eraseMessage(thread: string, seq: number): Promise<void>;
  /** Follows a thread from a position until the connection ends, or throws. */
  follow(thread: string, position: string, signal: AbortSignal): AsyncIterable<ThreadUpdate>;

  ask(question: Question, signal: AbortSignal): AsyncIterable<TurnEvent>;
  decide(decision: Decision, signal: AbortSignal): AsyncIterable<TurnEvent>;
  turn(thread: string, turn: string): Promise<TurnState>;
  stopTurn(thread: string, turn: string): Promise<Turn>;
  approvals(all: boolean): Promise<Approval[]>;
  approvalsOf(thread: string): Promise<Approval[]>;

  context(thread: string, question: string, policy: Policy, signal: AbortSignal): Promise<AssembledContext>;
  contextReport(thread: string, turn: string): Promise<Report | null>;
  recall(question: string, thread: string | null, limit: number, signal?: AbortSignal): Promise<Recalled>;
  search(query: string, options: { thread?: string; after?: string }, signal?: AbortSignal): Promise<Hits>;
  /** Finds passages in documents that may answer a question. */
  passages(question: string, limit: number): Promise<Passage[]>;
  /** Uploads a document. Uploading it again with the same key does not add it twice. `onProgress` gets the share that was sent, from 0 to 1. */
  uploadFile(file: File, key: string, onProgress: (share: number) => void, signal: AbortSignal): Promise<UploadedFile>;
  file(id: string, signal?: AbortSignal): Promise<UploadedFile>;
  deleteFile(id: string): Promise<void>;

  analytics(thread?: string): Promise<Analytics>;
  importFile(file: Blob): Promise<Imported>;
  exportFile(thread?: string): Promise<Blob>;
  eraseUser(user: string): Promise<Erased>;
}

/** Why a call failed. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** The status of the response; 0 if there was none. */
    readonly status: number,
    readonly code: string,
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
  }

  /** Whether the server could not be reached, so the same call may succeed later. */
  get isUnreachable(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}
