/** The messages of a thread as they change. Pure: a state and an event yield the next state. */
import type { Message, ThreadEvent } from "../api/types";

export interface Feed {
  /** Ascending by position, without gaps within the loaded range, each position once. */
  messages: Message[];
  hasOlder: boolean;
  /** Whether there are newer messages that are not loaded, because the view shows an earlier part. */
  hasNewer: boolean;
}

export const EMPTY: Feed = { messages: [], hasOlder: false, hasNewer: false };

export function lastSeq(feed: Feed): number {
  return feed.messages.at(-1)?.seq ?? 0;
}

/** Adds messages. A message that is already loaded is replaced, so that an update that arrives twice changes nothing. */
export function merge(messages: Message[], added: Message[]): Message[] {
  if (added.length === 0) return messages;
  const bySeq = new Map(messages.map((message) => [message.seq, message]));
  for (const message of added) {
    const known = bySeq.get(message.seq);
    if (!known || known.revision <= message.revision) bySeq.set(message.seq, message);
  }
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq);
}

export function apply(feed: Feed, event: ThreadEvent): Feed {
  switch (event.type) {
    case "appended":
      // The view shows an earlier part: the new messages follow messages that are not loaded.
      if (feed.hasNewer) return feed;
      return { ...feed, messages: merge(feed.messages, event.messages) };
    case "replaced":
      if (!feed.messages.some((message) => message.seq === event.message.seq)) return feed;
      return { ...feed, messages: merge(feed.messages, [event.message]) };
    case "erased":
      return { ...feed, messages: feed.messages.filter((message) => message.seq !== event.seq) };
    case "trimmed": {
      const messages = feed.messages.filter((message) => message.seq >= event.first_seq);
      return { ...feed, messages, hasOlder: feed.hasOlder && messages.length === feed.messages.length };
    }
    default:
      return feed;
  }
}
