/** Statistics of all threads, or of one. */
import { useEffect, useState } from "preact/hooks";
import type { Analytics } from "../api/types";
import { Tile } from "../activity/view";
import { threads } from "../app/open";
import { client, messageOf, noteFailure } from "../app/session";
import { titleOf } from "../chat/header";
import { dateTime, duration, number, t } from "../i18n";
import type { Key } from "../i18n";
import { useLineNames } from "../maps/load";
import { agentName, isBuiltIn, modelName } from "../text/names";
import { heading, visibleLine } from "../text/visible";
import { Loading, Problem } from "../ui/controls";
import { costOf } from "./cost";

export function AnalyticsView() {
  const [thread, setThread] = useState("");
  const [figures, setFigures] = useState<Analytics | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let isCurrent = true;
    setFigures(null);
    setProblem(null);
    client.analytics(thread || undefined).then(
      (found) => isCurrent && setFigures(found),
      (error: unknown) => {
        noteFailure(error);
        if (isCurrent) setProblem(messageOf(error));
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [thread]);
  const lines = useLineNames();
  return (
    <section class="page analytics" aria-label={t("analytics")}>
      <header class="page-header">
        <h1>{t("analytics")}</h1>
        <label>
          <span class="visually-hidden">{t("thread")}</span>
          <select value={thread} onChange={(event) => setThread(event.currentTarget.value)}>
            <option value="">{t("all_threads")}</option>
            {threads.value.map((each) => (
              <option key={each.id} value={each.id}>
                {visibleLine(titleOf(each), 60)}
              </option>
            ))}
          </select>
        </label>
      </header>
      {problem && <Problem text={problem} />}
      {!figures && !problem && <Loading />}
      {figures && (
        <>
          {figures.first_message_at && figures.last_message_at && (
            <p class="lead">{t("from_to", { from: dateTime(figures.first_message_at), to: dateTime(figures.last_message_at) })}</p>
          )}
          <dl class="tiles">
            <Tile name={t("threads")} value={number(figures.threads)} />
            <Tile name={t("messages")} value={number(figures.messages)} />
            <Tile name={t("answered_questions")} value={number(figures.turns)} note={t("imported_too")} />
            <Tile name={t("input_tokens")} value={tokensOf(figures, figures.input_tokens)} />
            <Tile name={t("output_tokens")} value={tokensOf(figures, figures.output_tokens)} />
            <Tile name={t("cost")} {...costOf(figures)} />
          </dl>
          <div class="charts">
            <Bars title={t("by_role")} values={mapValues(figures.roles, (role) => heading(t(`role_${role}` as Key)))} />
            <Bars title={t("by_agent")} note={t("by_agent_note")} values={ofAnswers(figures, figures.agents, (name) => agentName(name, lines))} />
            <Bars title={t("by_model")} note={t("by_model_note")} values={ofAnswers(figures, figures.models, (name) => (isBuiltIn(name) ? heading(modelName(name)) : modelName(name)))} />
            {figures.durations && (
              <Bars
                title={t("answer_times", { count: figures.durations.count })}
                values={[
                  [t("min"), figures.durations.min_ms],
                  [t("median"), figures.durations.median_ms],
                  [t("p95"), figures.durations.p95_ms],
                  [t("max"), figures.durations.max_ms],
                ]}
                format={duration}
              />
            )}
            <Bars
              title={t("sources")}
              values={[
                [heading(t("citations")), figures.sources.citations],
                [heading(t("distinct_sources")), figures.sources.distinct],
                [heading(t("reused_sources")), figures.sources.reused],
              ]}
            />
          </div>
          {figures.corrupt_messages > 0 && <Problem text={t("corrupt_messages", { count: figures.corrupt_messages })} />}
        </>
      )}
    </section>
  );
}

function tokensOf(figures: Analytics, tokens: number): string {
  if (tokens > 0 || figures.turns === 0) return number(tokens);
  return t("not_reported");
}

/** Returns counts of assistant messages, and how many messages the counts leave out. */
function ofAnswers({ roles }: Analytics, counts: Record<string, number>, name: (key: string) => string): [string, number][] {
  const left = (roles["assistant"] ?? 0) - Object.values(counts).reduce((sum, count) => sum + count, 0);
  const bars: [string, number][] = [...mapValues(counts, name), ...(left > 0 ? [[heading(t("not_recorded")), left] as [string, number]] : [])];
  return bars.sort((one, other) => other[1] - one[1]);
}

function mapValues(counts: Record<string, number>, name: (key: string) => string): [string, number][] {
  return Object.entries(counts)
    .sort((one, other) => other[1] - one[1])
    .slice(0, 12)
    .map(([key, count]) => [name(key), count]);
}

function Bars({ title, note, values, format = number }: { title: string; note?: string; values: [string, number][]; format?: (value: number) => string }) {
  const largest = Math.max(1, ...values.map(([, value]) => value));
  return (
    <section class="panel">
      <header>
        <h2>{title}</h2>
      </header>
      {note && <p class="note">{note}</p>}
      {values.length === 0 ? (
        <p class="note">{t("none_yet")}</p>
      ) : (
        <dl class="bars">
          {values.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <i aria-hidden="true" style={{ "--share": `${value === 0 ? 0 : Math.max(1, (100 * value) / largest)}%` }} />
                <span>{format(value)}</span>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}
