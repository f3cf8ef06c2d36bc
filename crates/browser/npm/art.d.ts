import type { Threadkeep } from "./threadkeep_browser.js";

/** A message of ART. */
export interface ConversationMessage {
  messageId: string;
  threadId: string;
  role: "USER" | "AI" | "SYSTEM" | "TOOL";
  content: string;
  /** In milliseconds since 1970. */
  timestamp: number;
  metadata?: { [name: string]: unknown };
}

export interface MessageOptions {
  /** The number of messages: the most recent ones. */
  limit?: number;
  /** Exclusive. */
  beforeTimestamp?: number;
  /** Exclusive. */
  afterTimestamp?: number;
}

/** What a repository needs of a storage adapter. */
export interface StorageAdapter {
  set(collection: string, id: string, value: ConversationMessage & { id: string }): Promise<void>;
  query(collection: string, options: { filter: { threadId: string } }): Promise<(ConversationMessage & { id: string })[]>;
}

export interface ConversationSocket {
  notify(message: ConversationMessage, options: { targetThreadId: string }): unknown;
}

/** The collection in which ART keeps messages: `conversations`. */
export const COLLECTION: "conversations";

/** A storage adapter for messages: `set` and `query` on the collection `conversations`. */
export class ThreadkeepStorageAdapter implements StorageAdapter {
  constructor(store: Threadkeep);
  /** The id of a thread in the database, for `context`, `recall` and other calls of `Threadkeep`. */
  thread(threadId: string): Promise<string>;
  set(collection: string, id: string, message: ConversationMessage): Promise<void>;
  query(collection: string, options: { filter: { threadId: string } }): Promise<(ConversationMessage & { id: string })[]>;
}

/** Stores and reads messages through a storage adapter. */
export class ConversationRepository {
  constructor(adapter: StorageAdapter);
  addMessages(threadId: string, messages: ConversationMessage[]): Promise<void>;
  getMessages(threadId: string, options?: MessageOptions): Promise<ConversationMessage[]>;
}

/** Adds messages to threads and reads them, and notifies a socket of each message that was stored. */
export class ConversationManager {
  constructor(repository: ConversationRepository, conversationSocket?: ConversationSocket);
  addMessages(threadId: string, messages: ConversationMessage[]): Promise<void>;
  getMessages(threadId: string, options?: MessageOptions): Promise<ConversationMessage[]>;
}
