/**
 * The trains that approach a station. Their positions follow from the times in the answer and the present time, until the answer is too
 * old to be trusted.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import { number, timeOf, t } from "../i18n";
import { visibleLine } from "../text/visible";
import { LineBadge } from "./drawing";
import { colours } from "./network";
import type { Network } from "./network";
import type { Arrivals, Train } from "./results";
import { MAX_AGE_MS, SPAN_MINUTES, groupsOf, lanesOf, stateOf } from "./strip";

/** How often trains move; less often for users who prefer less motion. */
const STEP_MS = 1_000;
const CALM_STEP_MS = 20_000;

export function ArrivalsStrip({ arrivals, network }: { arrivals: Arrivals; network: Network | null }) {
  const groups = useMemo(() => groupsOf(arrivals.trains), [arrivals]);
  const lastDueMs = arrivals.trains.at(-1)?.dueMs ?? 0;
  const now = useNow(Math.min(arrivals.atMs + MAX_AGE_MS, lastDueMs));
  const state = stateOf(arrivals, now);
  const looked = timeOf(new Date(arrivals.atMs).toISOString());
  if (state !== "current") {
    return <p class="note strip-note">{t(state === "old" ? "arrivals_old" : "arrivals_gone", { time: looked })}</p>;
  }
  const span = SPAN_MINUTES;
  return (
    <>
      <ul class="strips" aria-label={t("trains_at", { station: visibleLine(arrivals.station, 60) })}>
        {groups.map(({ line, towards, trains }) => {
          const coming = trains.filter(({ dueMs }) => dueMs > now - STEP_MS * 20);
          const known = network?.lineNamed(line, arrivals.ids);
          const colour = known?.colour ?? network?.linesNamed(line)[0]?.colour ?? "#808183";
          const placed = lanesOf(coming, now);
          const isTall = placed.some(({ lane }) => lane === 1);
          return (
            coming.length > 0 && (
              <li key={`${line} ${towards}`}>
                <p class="strip-head">
                  <LineBadge name={known?.label ?? line} colour={colour} /> <span>→ {visibleLine(towards, 60)}</span>
                </p>
                <div class={`strip${isTall ? " tall" : ""}`} style={colours(colour)}>
                  <ol>
                    {placed.map(({ train, lane, share }) => (
                      <li key={`${train.dueMs} ${train.destination}`} class={lane === 0 ? undefined : "lower"} style={{ left: `${share * 100}%` }} title={titleOf(train)}>
                        <span aria-hidden="true">{isDue(train, now) ? t("due") : minutesLeft(train, now)}</span>
                        <span class="visually-hidden">
                          {isDue(train, now) ? t("due") : `${minutesLeft(train, now)} min`}, {titleOf(train)}
                        </span>
                      </li>
                    ))}
                  </ol>
                </div>
              </li>
            )
          );
        })}
      </ul>
      <p class="strip-axis" aria-hidden="true">
        <span>{t("now")}</span>
        {[10, 20].map((minutes) => (
          <span key={minutes} style={{ left: `${(minutes / span) * 100}%` }}>
            {number(minutes)} min
          </span>
        ))}
      </p>
      <p class="note strip-note">{t("arrivals_as_of", { time: looked, now: timeOf(new Date(now).toISOString()) })}</p>
    </>
  );
}

/** Returns the minutes from the present time to the announced one, as clocks show them: both without their seconds. */
function minutesBetween(now: number, dueMs: number): number {
  return Math.floor(dueMs / 60_000) - Math.floor(now / 60_000);
}

function minutesLeft(train: Train, now: number): string {
  return number(Math.max(0, minutesBetween(now, train.dueMs)));
}

function isDue(train: Train, now: number): boolean {
  return train.dueMs - now < 30_000 || minutesBetween(now, train.dueMs) <= 0;
}

function titleOf(train: Train): string {
  return [train.destination, train.clock].filter((part) => part !== "").map((part) => visibleLine(part, 60)).join(", ");
}

/** Returns the present time, which advances until `untilMs`. */
function useNow(untilMs: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (Date.now() > untilMs) return;
    const step = matchMedia("(prefers-reduced-motion: reduce)").matches ? CALM_STEP_MS : STEP_MS;
    const timer = setInterval(() => {
      setNow(Date.now());
      if (Date.now() > untilMs + step) clearInterval(timer);
    }, step);
    return () => clearInterval(timer);
  }, [untilMs]);
  return now;
}
