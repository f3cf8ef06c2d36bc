/** Where trains are on their strip, and for how long. Pure. */
import type { Arrivals, Train } from "./results";

/** The age at which announced times are no longer shown as current. */
export const MAX_AGE_MS = 15 * 60_000;
/** The time that a strip covers; later trains are at its end. */
export const SPAN_MINUTES = 25;
const MAX_GROUPS = 12;
/** Trains that are closer to each other, as a share of the strip, are drawn below each other. */
const NEAR = 0.07;

export interface Group {
  line: string;
  towards: string;
  trains: Train[];
}

/** Groups trains by line and direction, soonest first. */
export function groupsOf(trains: Train[]): Group[] {
  const groups = new Map<string, Group>();
  for (const train of trains) {
    const towards = train.towards || train.destination;
    const key = JSON.stringify([train.line, towards]);
    const group = groups.get(key) ?? { line: train.line, towards, trains: [] };
    group.trains.push(train);
    groups.set(key, group);
  }
  return [...groups.values()].slice(0, MAX_GROUPS);
}

/** Returns whether arrivals are current, too old to be trusted, or all in the past. */
export function stateOf({ atMs, trains }: Arrivals, now: number): "current" | "old" | "gone" {
  if (now - atMs > MAX_AGE_MS) return "old";
  return trains.some(({ dueMs }) => dueMs > now - 20_000) ? "current" : "gone";
}

export interface Placed {
  train: Train;
  lane: 0 | 1;
  /** The position: 0 at the station, 1 at the end of the strip. */
  share: number;
}

export function lanesOf(trains: Train[], now: number): Placed[] {
  const placed: Placed[] = [];
  for (const train of trains) {
    const share = Math.max(0, Math.min(1, (train.dueMs - now) / (SPAN_MINUTES * 60_000)));
    const before = placed.at(-1);
    placed.push({ train, lane: before && before.lane === 0 && share - before.share < NEAR ? 1 : 0, share });
  }
  // Later trains than the strip covers would lie on each other.
  return placed.filter(({ share }, index) => share < 1 || placed.findIndex((other) => other.share === 1) === index);
}
