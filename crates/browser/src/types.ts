/** Options of `Threadkeep.open`. */
export interface OpenOptions {
  /** The name of the database. Default: `threadkeep`. */
  database?: string;
  /** Default: `local`. */
  tenant?: string;
  /** The user whose conversations are used. Default: those of the tenant, with all of its users. */
  user?: string;
  /** What an acknowledged write survives: `strict` (default) a power failure, `relaxed` a crash of the browser. */
  durability?: "strict" | "relaxed";
}

/** An error of this package. */
export interface ThreadkeepError extends Error {
  code:
    | "not_found"
    | "denied"
    | "changed_meanwhile"
    | "seq_conflict"
    | "idempotency_key_reused"
    | "message_id_taken"
    | "external_id_taken"
    | "conflict"
    | "invalid_request"
    | "invalid_policy"
    | "unsupported"
    | "limit_exceeded"
    | "unavailable"
    | "corrupt"
    | "incompatible"
    | "internal_error";
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Metadata = { [name: string]: Json };
export type Role = "system" | "user" | "assistant" | "tool";

export interface OpenThreadOptions {
  /** The id of a new thread. Default: a new id. */
  id?: string;
  /** Your own name for the thread, such as `notes:7`. */
  key?: string;
  title?: string;
  metadata?: Metadata;
}

/** A conversation, without its messages. */
export interface Thread {
  id: string;
  key?: string;
  title?: string;
  metadata: Metadata;
  /** The number of messages. */
  messages: number;
  /** The positions of the first retained message and of the last message that was ever appended. */
  first_seq: number;
  seq: number;
  /** The number of changes to the thread. */
  change: number;
  created_at: string;
  updated_at: string;
}

export interface OpenedThread extends Thread {
  /** Whether the call created the thread. */
  created: boolean;
}

export interface ThreadsOptions {
  /** Default: `recent`, the most recently changed first. */
  order?: "recent" | "created";
  /** Default: 50. */
  limit?: number;
  /** The `next` of the previous page. */
  after?: string;
  /** Only threads with these values in their metadata. */
  metadata?: { [name: string]: string | number | boolean };
}

export interface ThreadPage {
  threads: Thread[];
  next: string | null;
}

export type Part =
  | { text: string }
  | { reasoning: string }
  | { tool_call: { id: string; name: string; arguments: Json } }
  | { tool_result: { call_id: string; output: string; is_error?: boolean } }
  | { image: { url: string; description?: string } }
  | { raw: { format: string; json: Json } };

/** A message to append. */
export interface NewMessage {
  role: Role;
  /** Short for a single text part. */
  text?: string;
  parts?: Part[];
  author?: string;
  agent?: string;
  metadata?: Metadata;
  /** A UUID. Default: a new id. */
  id?: string;
  /** The id in the system that the message comes from, unique in the thread. */
  external_id?: string;
  /** Default: now. */
  created_at?: string;
}

export interface Message {
  /** The position in the thread, from 1 and without gaps. */
  seq: number;
  id: string;
  external_id?: string;
  role: Role;
  author?: string;
  parts: Part[];
  agent?: string;
  data?: Json;
  sources?: Json[];
  usage?: Json;
  metadata?: Metadata;
  /** How often the content was replaced. */
  revision: number;
  created_at: string;
}

export interface AppendOptions {
  /** Identifies a repeated request, so that it is stored once. */
  idempotency_key?: string;
  /** The position at which the thread must be. */
  expected_seq?: number;
}

export interface Appended {
  change: number;
  first_seq: number;
  messages: { seq: number; id: string }[];
  /** Whether an earlier request with the same idempotency key stored the messages. */
  replayed: boolean;
}

export interface MessagesOptions {
  /** Default: 50. */
  limit?: number;
  /** Only messages before this position. */
  before?: number;
  /** Only messages after this position. The page then contains the first ones, otherwise the newest ones. */
  after?: number;
  roles?: Role[];
}

export interface MessagePage {
  messages: Message[];
  /** The positions of messages that cannot be decoded. */
  unreadable: number[];
  /** Whether more messages match. */
  more: boolean;
  seq: number;
  change: number;
}

/** What a context contains; every field has a default. The server's API documents all fields. */
export interface ContextPolicy {
  system_prompt?: string | null;
  /** The maximum number of messages. Default: 20. */
  window?: number | null;
  /** The maximum number of tokens. Default: none. */
  budget?: number | null;
  [field: string]: unknown;
}

export interface Context {
  /** The messages for the model. */
  messages: { role: Role; author?: string; parts: Part[]; seq?: number }[];
  /** What happened to every message, and the tokens of each part. */
  report: { [field: string]: Json };
  unreadable: number[];
  seq: number;
  change: number;
}

export interface RecallOptions {
  /** Only this thread. Default: all threads. */
  thread?: string;
  /** Default: 10. */
  limit?: number;
}

export interface RecalledMessage {
  thread: string;
  message: Message;
  score: number;
}

export interface SearchOptions extends RecallOptions {
  roles?: Role[];
  /** Only messages created at or after this time. */
  since?: string;
  /** Only messages created before this time. */
  until?: string;
}

export interface SearchResults {
  hits: {
    thread: string;
    message: Message;
    score: number;
    snippet: {
      text: string;
      /** Ranges of bytes of the UTF-8 text. */
      matches: { start: number; end: number }[];
      cut_before: boolean;
      cut_after: boolean;
    };
  }[];
  truncated: boolean;
  /** Words that occur nowhere, and what was searched for instead. */
  corrections: { word: string; instead: string }[];
}

export interface SubscribeOptions {
  /** Begin with this many of the newest messages. */
  last?: number;
  /** Begin after this change, to resume. */
  after?: number;
}

export type Update =
  | { type: "history"; messages: Message[]; unreadable: number[]; seq: number; change: number }
  | { type: "commit"; change: number; at: string; events: ThreadEvent[] }
  | { type: "reset"; seq: number; change: number }
  | { type: "deleted" };

export type ThreadEvent =
  | { type: "appended"; messages: Message[]; unreadable: number[] }
  | { type: "replaced"; message: Message }
  | { type: "erased"; seq: number; id: string }
  | { type: "trimmed"; first_seq: number }
  | { type: "record"; namespace: string; key: string }
  | { type: "patched" };

export interface ImportReport {
  threads_created: number;
  threads_found: number;
  messages_added: number;
  messages_already_there: number;
  records_added: number;
  /** What could not be read or stored, and why. */
  problems: string[];
}
