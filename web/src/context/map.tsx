/** A thread as a map: a cell for each message, with its fate in the context. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Fate, FateReason, Message, Report } from "../api/types";
import { chatWith, formatRoute } from "../app/router";
import { client, noteFailure } from "../app/session";
import { dateTime, number, t } from "../i18n";
import type { Key } from "../i18n";
import { visibleLine } from "../text/visible";
import { Parts } from "../ui/controls";
import { FATES, cellsOf, countFates } from "./fates";
import type { Cell } from "./fates";

const MAX_CELLS = 360;

export interface Messages {
  get: (seq: number) => Message | null | undefined;
  load: (seq: number, thread?: string) => void;
}

/** Loads messages of a thread one by one, on demand. A message that no longer exists is `null`. */
export function useMessages(thread: string): Messages {
  const [loaded, setLoaded] = useState<ReadonlyMap<number, Message | null>>(new Map());
  const requested = useRef(new Set<number>());
  useEffect(() => {
    requested.current = new Set();
    setLoaded(new Map());
  }, [thread]);
  return {
    get: (seq) => loaded.get(seq),
    load: (seq) => {
      if (requested.current.has(seq)) return;
      requested.current.add(seq);
      client.message(thread, seq).then(
        (message) => setLoaded((before) => new Map(before).set(seq, message)),
        (error: unknown) => {
          noteFailure(error);
          setLoaded((before) => new Map(before).set(seq, null));
        },
      );
    },
  };
}

/** Names the fate of a number of messages. */
export function fateName(fate: Fate, count = 1): string {
  return t(`fate_${fate}` as Key, { count });
}

export function whyText(why: FateReason | undefined): string {
  return why === undefined ? t("why_kept") : t(`why_${why}` as Key);
}

export function FateMap({ report, thread, messages, changed }: { report: Report; thread: string; messages: Messages; changed: Set<number> }) {
  const cells = useMemo(() => cellsOf(report, MAX_CELLS), [report]);
  const counts = useMemo(() => countFates(report), [report]);
  const maxTokens = useMemo(() => Math.max(1, ...cells.map(({ tokens }) => tokens)), [cells]);
  const [selected, setSelected] = useState<number | null>(null);
  const [only, setOnly] = useState<Fate | null>(null);
  const grid = useRef<HTMLDivElement>(null);
  const index = selected === null ? -1 : cells.findIndex(({ first, last }) => first <= selected && selected <= last);
  const [cell, last] = [cells[index], cells.at(-1)];
  const reachable = index >= 0 ? index : cells.length - 1;
  const move = (to: number) => {
    const target = cells[Math.max(0, Math.min(cells.length - 1, to))];
    if (!target) return;
    setSelected(target.last);
    grid.current?.querySelectorAll<HTMLElement>("button")[cells.indexOf(target)]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: reachable - 1, ArrowRight: reachable + 1, Home: 0, End: cells.length - 1 };
    const to = steps[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  };
  return (
    <>
      <ul class="fate-filter" aria-label={t("fates")}>
        {FATES.filter((fate) => (counts[fate] ?? 0) > 0).map((fate) => (
          <li key={fate}>
            <button type="button" aria-pressed={only === fate} onClick={() => setOnly(only === fate ? null : fate)}>
              <span class={`swatch fate ${fate}`} aria-hidden="true" />
              <b>{number(counts[fate] ?? 0)}</b> {fateName(fate, counts[fate])}
            </button>
          </li>
        ))}
      </ul>
      <div class="fate-map" ref={grid} role="group" aria-label={t("map_label", { count: cells.length })} onKeyDown={onKeyDown}>
        {cells[0] && (
          <span class="map-end" aria-hidden="true">
            #{number(cells[0].first)}
          </span>
        )}
        {cells.map((each, position) => (
          <button
            key={each.first}
            type="button"
            tabIndex={position === reachable ? 0 : -1}
            class={`cell fate ${each.fate}${only !== null && (each.counts[only] ?? 0) === 0 ? " dim" : ""}${isChanged(each, changed) ? " changed" : ""}`}
            style={{ "--fill": `${Math.max(18, (100 * each.tokens) / maxTokens)}%` }}
            aria-label={cellLabel(each)}
            aria-pressed={position === index}
            title={cellLabel(each)}
            onClick={() => setSelected(position === index ? null : each.last)}
          />
        ))}
        {last && (
          <span class="map-end newest" aria-hidden="true">
            #{number(last.last)} {t("newest")}
          </span>
        )}
      </div>
      {cell ? <CellDetail cell={cell} report={report} thread={thread} messages={messages} /> : <p class="note">{t("map_hint")}</p>}
    </>
  );
}

function isChanged({ first, last }: Cell, changed: Set<number>): boolean {
  if (first === last) return changed.has(first);
  return [...changed].some((seq) => first <= seq && seq <= last);
}

function cellLabel(cell: Cell): string {
  if (cell.first !== cell.last) {
    const parts = FATES.flatMap((fate) => (cell.counts[fate] ? [`${number(cell.counts[fate])} ${fateName(fate, cell.counts[fate])}`] : []));
    return `#${cell.first}–${cell.last}: ${parts.join(", ")}`;
  }
  const tokens = cell.tokens > 0 ? `, ${t("n_tokens", { count: cell.tokens })}` : "";
  return `#${cell.first}: ${fateName(cell.fate)}, ${whyText(cell.why)}${tokens}`;
}

function CellDetail({ cell, report, thread, messages }: { cell: Cell; report: Report; thread: string; messages: Messages }) {
  // For a cell with several messages, the first one with the cell's fate is shown.
  const seq = report.messages.find((span) => span.fate === cell.fate && span.last_seq >= cell.first && span.first_seq <= cell.last)?.first_seq ?? cell.first;
  const shown = Math.max(seq, cell.first);
  useEffect(() => messages.load(shown), [shown]);
  const message = messages.get(shown);
  return (
    <div class={`cell-detail fate ${cell.fate}`} role="status">
      <p>
        <b>#{number(shown)}</b> <span class={`badge fate ${cell.fate}`}>{fateName(cell.fate)}</span> {whyText(cell.why)}
        {cell.tokens > 0 && ` · ${t("n_tokens", { count: cell.tokens })}`}
        {cell.first !== cell.last && ` · ${t("cell_range", { first: cell.first, last: cell.last })}`}
      </p>
      {message === null ? (
        <p class="note">{t("message_gone")}</p>
      ) : (
        message && (
          <>
            <p class="who">
              <Parts>
                {t(`role_${message.role}` as Key)}
                {message.author && visibleLine(message.author)}
                {dateTime(message.created_at)}
              </Parts>
            </p>
            <p class="text" tabIndex={0}>
              {message.text || t("no_text")}
            </p>
          </>
        )
      )}
      <p>
        <a href={formatRoute(chatWith(thread, shown))}>{t("show_in_place")}</a>
      </p>
    </div>
  );
}
