/**
 * The storage adapter, the repository and the manager of conversations of the ART framework, on Threadkeep.
 *
 * An application of ART uses either `ThreadkeepStorageAdapter` below its own repository, or all three. The collection `conversations`
 * becomes threads whose key is `art:` and ART's thread id, and everything that the engine offers works on them: contexts, recall,
 * search, subscriptions, export.
 */

/** The collection in which ART keeps messages. */
export const COLLECTION = "conversations";
/** The names of roles in ART, and here. */
const ROLES = { USER: "user", AI: "assistant", SYSTEM: "system", TOOL: "tool" };
/** The field of a message's metadata that holds the fields of ART that have no place of their own. */
const FIELD = "art";
/** The number of messages that are read at a time. */
const PAGE = 1_000;

/** @param {string} name @param {unknown} value @returns {string} */
function text(name, value) {
  if (typeof value !== "string" || value === "") throw new TypeError(`${name} must be a text that is not empty`);
  return value;
}

/** @param {string} collection */
function checkCollection(collection) {
  if (collection !== COLLECTION) throw new TypeError(`unknown collection "${collection}": only "${COLLECTION}" is stored here`);
}

/** A storage adapter for messages: `set` and `query` on the collection `conversations`. */
export class ThreadkeepStorageAdapter {
  #store;
  /** The ids of threads by their keys. @type {Map<string, string>} */
  #threads = new Map();

  /** @param {import("./threadkeep_browser.js").Threadkeep} store */
  constructor(store) {
    this.#store = store;
  }

  /** The id of the thread here. @param {string} threadId ART's id. */
  async thread(threadId) {
    const key = `art:${text("threadId", threadId)}`;
    const known = this.#threads.get(key);
    if (known !== undefined) return known;
    const { id } = await this.#store.openThread({ key });
    this.#threads.set(key, id);
    return id;
  }

  /**
   * Stores a message. A message of the thread with the same id is replaced, and keeps its position.
   *
   * @param {string} collection @param {string} id @param {any} message
   */
  async set(collection, id, message) {
    checkCollection(collection);
    const { threadId, role, content, timestamp, metadata } = message;
    const known = /** @type {Record<string, import("./threadkeep_browser.js").Role>} */ (ROLES)[role];
    if (known === undefined) throw new TypeError(`role must be one of ${Object.keys(ROLES).join(", ")}, not ${String(role)}`);
    if (typeof content !== "string") throw new TypeError("content must be a text");
    if (!Number.isFinite(timestamp)) throw new TypeError("timestamp must be a number of milliseconds");
    await this.#store.upsert(await this.thread(threadId), {
      role: known,
      text: content,
      external_id: text("messageId", id),
      created_at: new Date(timestamp).toISOString(),
      metadata: { [FIELD]: metadata === undefined ? { timestamp } : { timestamp, metadata } },
    });
  }

  /**
   * Returns the messages of a thread, in the order in which they were stored.
   *
   * @param {string} collection @param {{ filter?: { threadId?: string } }} options
   * @returns {Promise<any[]>}
   */
  async query(collection, { filter } = {}) {
    checkCollection(collection);
    const threadId = text("filter.threadId", filter?.threadId);
    const thread = await this.thread(threadId);
    const found = [];
    for (let after = 0, more = true; more; ) {
      const page = await this.#store.messages(thread, { after, limit: PAGE });
      found.push(...page.messages.map((message) => toArt(threadId, message)));
      after = page.messages.at(-1)?.seq ?? after;
      more = page.more;
    }
    return found;
  }
}

/** @param {string} threadId @param {import("./threadkeep_browser.js").Message} message */
function toArt(threadId, message) {
  const [role] = Object.entries(ROLES).find(([, here]) => here === message.role) ?? ["SYSTEM"];
  const fields = /** @type {any} */ (message.metadata?.[FIELD] ?? {});
  const messageId = message.external_id ?? message.id;
  const content = message.parts.map((part) => ("text" in part ? part.text : "")).join("");
  const timestamp = fields.timestamp ?? Date.parse(message.created_at);
  const converted = { id: messageId, messageId, threadId, role, content, timestamp };
  return fields.metadata === undefined ? converted : { ...converted, metadata: fields.metadata };
}

/** Stores and reads messages through a storage adapter. */
export class ConversationRepository {
  #adapter;

  /** @param {{ set(collection: string, id: string, value: any): Promise<void>, query(collection: string, options: any): Promise<any[]> }} adapter */
  constructor(adapter) {
    this.#adapter = adapter;
  }

  /** @param {string} threadId @param {any[]} messages */
  async addMessages(threadId, messages) {
    for (const message of messages) {
      await this.#adapter.set(COLLECTION, message.messageId, { ...message, threadId, id: message.messageId });
    }
  }

  /**
   * Returns the messages of a thread by their timestamps, ascending: with `limit`, the most recent ones within the bounds, which are
   * exclusive.
   *
   * @param {string} threadId
   * @param {{ limit?: number, beforeTimestamp?: number, afterTimestamp?: number }} [options]
   */
  async getMessages(threadId, { limit, beforeTimestamp = Infinity, afterTimestamp = -Infinity } = {}) {
    const stored = await this.#adapter.query(COLLECTION, { filter: { threadId } });
    const messages = stored
      .filter(({ timestamp }) => timestamp > afterTimestamp && timestamp < beforeTimestamp)
      .sort((one, other) => one.timestamp - other.timestamp)
      .map(({ id: _, ...message }) => message);
    return limit === undefined ? messages : messages.slice(Math.max(0, messages.length - limit));
  }
}

/** Adds messages to threads and reads them, and notifies a socket of each message that was stored. */
export class ConversationManager {
  #repository;
  #socket;
  /** The last call on each thread. Calls on a thread run one after the other. @type {Map<string, Promise<void>>} */
  #pending = new Map();

  /**
   * @param {ConversationRepository} repository
   * @param {{ notify(message: any, options: { targetThreadId: string }): unknown }} [conversationSocket]
   */
  constructor(repository, conversationSocket) {
    this.#repository = repository;
    this.#socket = conversationSocket;
  }

  /**
   * Stores messages, then notifies the socket of each, in order. If storing fails, nothing is notified.
   *
   * @param {string} threadId @param {any[]} messages
   */
  async addMessages(threadId, messages) {
    text("threadId", threadId);
    if (!Array.isArray(messages) || messages.length === 0) return;
    const before = this.#pending.get(threadId) ?? Promise.resolve();
    const call = before.catch(() => {}).then(async () => {
      await this.#repository.addMessages(threadId, messages);
      for (const message of messages) this.#notify(message, threadId);
    });
    this.#pending.set(threadId, call);
    try {
      await call;
    } finally {
      if (this.#pending.get(threadId) === call) this.#pending.delete(threadId);
    }
  }

  /** @param {string} threadId @param {{ limit?: number, beforeTimestamp?: number, afterTimestamp?: number }} [options] */
  async getMessages(threadId, options) {
    return this.#repository.getMessages(text("threadId", threadId), options);
  }

  /** @param {any} message @param {string} threadId */
  #notify(message, threadId) {
    try {
      this.#socket?.notify(message, { targetThreadId: threadId });
    } catch (error) {
      // The message is stored, so an exception of a listener is not the caller's.
      reportError(error);
    }
  }
}
