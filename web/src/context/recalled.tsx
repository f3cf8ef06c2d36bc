/** The recalled messages of a context, with the components of their scores. */
import { useEffect, useState } from "preact/hooks";
import type { RecalledFate, RecalledTurn, Report } from "../api/types";
import { chatWith, formatRoute } from "../app/router";
import { client, isAbort } from "../app/session";
import { number, shortTime, t } from "../i18n";
import type { Key } from "../i18n";
import { visibleLine } from "../text/visible";
import { fateName } from "./map";
import type { Messages } from "./map";

const SHOWN = 12;
const SEARCHED = 200;
export const SCORE_PARTS = ["words", "passage", "neighbours", "speaker", "time"] as const;

export function RecalledList({ report, thread, question, messages }: { report: Report; thread: string; question: string; messages: Messages }) {
  const [isExpanded, setExpanded] = useState(false);
  const [scored, setScored] = useState<ReadonlyMap<string, RecalledTurn>>(new Map());
  const recalled = report.recalled ?? [];
  const isOwn = recalled.every((found) => found.thread === undefined || found.thread === thread);
  useEffect(() => {
    const stop = new AbortController();
    if (question.trim()) {
      client.recall(question, isOwn ? thread : null, SEARCHED, stop.signal).then(
        ({ turns }) => setScored(new Map(turns.map((turn) => [`${turn.thread} ${turn.message.seq}`, turn]))),
        (error: unknown) => {
          // Without the components, the list still shows the scores.
          if (!isAbort(error)) setScored(new Map());
        },
      );
    }
    return () => stop.abort();
  }, [question, thread, isOwn, report]);
  const maxScore = Math.max(...recalled.map(({ score }) => score), 1e-9);
  const shown = isExpanded ? recalled : recalled.slice(0, SHOWN);
  return (
    <>
      <ol class="recalled">
        {shown.map((found) => (
          <Found key={`${found.thread ?? ""}${found.seq}`} found={found} maxScore={maxScore} own={thread} scored={scored.get(`${found.thread ?? thread} ${found.seq}`)} messages={messages} />
        ))}
      </ol>
      {recalled.length > SHOWN && (
        <button type="button" class="link" onClick={() => setExpanded(!isExpanded)}>
          {isExpanded ? t("show_fewer") : t("show_all_n", { count: recalled.length })}
        </button>
      )}
      <p class="score-legend" aria-hidden="true">
        {SCORE_PARTS.map((part) => (
          <span key={part}>
            <i class={`score ${part}`} /> {t(`score_${part}` as Key)}
          </span>
        ))}
      </p>
    </>
  );
}

function Found(props: { found: RecalledFate; maxScore: number; own: string; scored: RecalledTurn | undefined; messages: Messages }) {
  const { found, maxScore, own, scored, messages } = props;
  const thread = found.thread ?? own;
  const isOwn = thread === own;
  useEffect(() => {
    if (!scored && isOwn) messages.load(found.seq);
  }, [scored, isOwn, found.seq]);
  const message = scored?.message ?? (isOwn ? messages.get(found.seq) : undefined);
  const sum = scored ? SCORE_PARTS.reduce((total, part) => total + scored.parts[part], 0) : 0;
  const parts = scored ? SCORE_PARTS.filter((part) => scored.parts[part] > 0.005) : [];
  const partList = parts.map((part) => `${t(`score_${part}` as Key)} ${number(scored?.parts[part] ?? 0, 2)}`).join(", ");
  return (
    <li class={found.fate === "dropped" ? "left-out" : undefined}>
      <div class="score-bar" role="img" aria-label={`${t("score")} ${number(found.score, 2)}${partList ? `: ${partList}` : ""}`}>
        {scored && sum > 0 ? (
          parts.map((part) => (
            <i key={part} class={`score ${part}`} style={{ width: `${(100 * (found.score / maxScore) * scored.parts[part]) / sum}%` }} title={`${t(`score_${part}` as Key)}: ${number(scored.parts[part], 2)}`} />
          ))
        ) : (
          <i class="score words" style={{ width: `${(100 * found.score) / maxScore}%` }} />
        )}
        <span>{number(found.score, 2)}</span>
      </div>
      <p>
        <a href={formatRoute(chatWith(thread, found.seq))}>
          #{number(found.seq)}
          {!isOwn && ` · ${t("other_thread")}`}
        </a>{" "}
        <span class={`badge fate ${found.fate}`}>{found.fate === "kept" ? t("recalled_in_history") : fateName(found.fate)}</span>
        {message && <time dateTime={message.created_at}> {shortTime(message.created_at)}</time>}
      </p>
      <p class="text">{message ? visibleLine(message.text, 240) : ""}</p>
      {parts.length > 0 && <p class="parts">{partList}</p>}
    </li>
  );
}
