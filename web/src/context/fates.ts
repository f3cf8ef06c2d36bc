/** The fates of messages, counted and arranged. Pure. */
import type { Fate, FateReason, FateSpan, Report } from "../api/types";

export const FATES: Fate[] = ["kept", "truncated", "recalled", "summarised", "pruned", "dropped", "absent"];

export interface Cell {
  first: number;
  last: number;
  /** The number of messages with each fate. */
  counts: Partial<Record<Fate, number>>;
  /** The most important of these fates, so that an included message is not lost among many others. */
  fate: Fate;
  why: FateReason | undefined;
  tokens: number;
}

export function countFates(report: Report): Partial<Record<Fate, number>> {
  const counts: Partial<Record<Fate, number>> = {};
  for (const { first_seq, last_seq, fate } of report.messages) counts[fate] = (counts[fate] ?? 0) + last_seq - first_seq + 1;
  return counts;
}

export function fateAt(report: Report, seq: number): FateSpan | null {
  return report.messages.find(({ first_seq, last_seq }) => first_seq <= seq && seq <= last_seq) ?? null;
}

const IMPORTANCE: Record<Fate, number> = { recalled: 6, truncated: 5, kept: 4, summarised: 3, pruned: 2, dropped: 1, absent: 0 };

/** Divides a thread into at most `max` cells. A short thread has a cell for each message. */
export function cellsOf(report: Report, max: number): Cell[] {
  const first = report.messages[0]?.first_seq;
  const last = report.messages.at(-1)?.last_seq;
  if (first === undefined || last === undefined) return [];
  const size = Math.max(1, Math.ceil((last - first + 1) / max));
  const cells: Cell[] = [];
  let span = 0;
  for (let start = first; start <= last; start += size) {
    const end = Math.min(last, start + size - 1);
    const cell: Cell = { first: start, last: end, counts: {}, fate: "absent", why: undefined, tokens: 0 };
    let best = -1;
    while (span < report.messages.length) {
      const current = report.messages[span];
      if (!current || current.first_seq > end) break;
      const count = Math.min(end, current.last_seq) - Math.max(start, current.first_seq) + 1;
      if (count > 0) {
        cell.counts[current.fate] = (cell.counts[current.fate] ?? 0) + count;
        cell.tokens += current.tokens;
        if (IMPORTANCE[current.fate] > best) {
          best = IMPORTANCE[current.fate];
          cell.fate = current.fate;
          cell.why = current.why;
        }
      }
      if (current.last_seq > end) break;
      span += 1;
    }
    cells.push(cell);
  }
  return cells;
}

/** Returns the positions that the summary covers. */
export function summarised(report: Report): { first: number; last: number; count: number } | null {
  const spans = report.messages.filter(({ fate }) => fate === "summarised");
  const [first, last] = [spans[0]?.first_seq, spans.at(-1)?.last_seq];
  if (first === undefined || last === undefined) return null;
  return { first, last, count: spans.reduce((sum, span) => sum + span.last_seq - span.first_seq + 1, 0) };
}

export function isIncluded(fate: Fate): boolean {
  return fate === "kept" || fate === "truncated" || fate === "recalled";
}

/** Returns the positions that only one of two contexts includes. */
export function differences(one: Report, other: Report): Set<number> {
  const included = (report: Report) => new Set(report.messages.filter(({ fate }) => isIncluded(fate)).map(({ first_seq }) => first_seq));
  const [inOne, inOther] = [included(one), included(other)];
  return new Set([...inOne].filter((seq) => !inOther.has(seq)).concat([...inOther].filter((seq) => !inOne.has(seq))));
}
