/** The tokens of a context by part, as one bar relative to the budget. */
import { useRef } from "preact/hooks";
import { PARTS } from "../api/types";
import type { PartName, Report } from "../api/types";
import { number, t } from "../i18n";
import type { Key } from "../i18n";
import { useWidth } from "../ui/width";

export interface Segment {
  part: PartName;
  tokens: number;
  /** The width in percent. */
  width: number;
}

/** Returns the shares of the parts. The bar is as wide as the budget, or as the context if that is larger. Pure. */
export function segmentsOf(report: Report, scale = scaleOf(report)): Segment[] {
  const segments = PARTS.map((part) => ({ part, tokens: report.tokens[part] })).filter(({ tokens }) => tokens > 0);
  return segments.map(({ part, tokens }) => ({ part, tokens, width: scale > 0 ? (100 * tokens) / scale : 0 }));
}

export function scaleOf(report: Report): number {
  return Math.max(report.budget ?? 0, report.tokens.total);
}

export function partName(part: PartName): string {
  return t(`part_${part}` as Key);
}

/** The room that a name takes in the bar, in pixels: that of each character, and around the name. */
const CHARACTER = 7.4;
const AROUND = 12;

/** Returns the parts whose names are in the bar: the widest ones, until the name of one does not fit, so that no part without a name is wider than one with a name. Pure. */
export function namedParts(segments: Segment[], barWidth: number, nameOf: (part: PartName) => string): Set<PartName> {
  const widest = [...segments].sort((a, b) => b.width - a.width);
  const end = widest.findIndex(({ part, width }) => (barWidth * width) / 100 < nameOf(part).length * CHARACTER + AROUND);
  return new Set(widest.slice(0, end < 0 ? undefined : end).map(({ part }) => part));
}

export function TokenBar({ report, scale, slim }: { report: Report; scale?: number; slim?: boolean }) {
  const bar = useRef<HTMLDivElement>(null);
  const barWidth = useWidth(bar);
  const whole = scale ?? scaleOf(report);
  const segments = segmentsOf(report, whole);
  // A sliver of a slim bar would look like a fault in its round end.
  const shown = slim ? segments.filter(({ width }) => width >= 2) : segments;
  const named = slim ? new Set<PartName>() : namedParts(segments, barWidth, partName);
  const partList = segments.map(({ part, tokens }) => `${partName(part)} ${number(tokens)}`).join(", ");
  const label =
    report.budget === undefined
      ? t("bar_label", { total: report.tokens.total, parts: partList })
      : t("bar_label_budget", { total: report.tokens.total, budget: report.budget, parts: partList });
  return (
    <div ref={bar} class={`token-bar${slim ? " slim" : ""}`} role="img" aria-label={label}>
      {shown.map(({ part, tokens, width }) => (
        <span key={part} class={`part ${part}`} style={{ width: `${width}%` }} title={`${partName(part)}: ${number(tokens)}`}>
          {named.has(part) && <em>{partName(part)}</em>}
        </span>
      ))}
      {report.budget !== undefined && report.budget < whole && (
        <span class="budget" style={{ left: `${(100 * report.budget) / whole}%` }} />
      )}
    </div>
  );
}

export function Legend({ report, other }: { report: Report; other?: Report | null | undefined }) {
  const shown = PARTS.filter((part) => report.tokens[part] !== 0 || (other && other.tokens[part] !== 0));
  return (
    <dl class={`legend${other ? " compared" : ""}`}>
      {shown.map((part) => (
        <div key={part}>
          <dt>
            <span class={`swatch part ${part}`} aria-hidden="true" /> {partName(part)}
          </dt>
          <dd>{number(report.tokens[part])}</dd>
          {other && <Delta value={report.tokens[part] - other.tokens[part]} />}
        </div>
      ))}
      <div class="total">
        <dt>{t("total")}</dt>
        <dd>
          {number(report.tokens.total)}
          {report.budget !== undefined && <span class="of"> / {number(report.budget)}</span>}
        </dd>
        {other && <Delta value={report.tokens.total - other.tokens.total} />}
      </div>
    </dl>
  );
}

function Delta({ value }: { value: number }) {
  return <dd class={`delta ${value > 0 ? "more" : "less"}`}>{value === 0 ? "" : value > 0 ? `+${number(value)}` : `−${number(-value)}`}</dd>;
}
