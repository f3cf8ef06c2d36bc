/**
 * The context inspector: what a model receives for a question, and why. It shows either a live context, for the question that the user
 * is writing and for one or two policies, or the context of a past turn.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { AssembledContext, Policy, Report, Thread, Turn } from "../api/types";
import { defaultAgent } from "../app/agents";
import { loadThreads, threads, threadsLoaded } from "../app/open";
import { chatWith, formatRoute, navigate } from "../app/router";
import { agents, client, messageOf, noteFailure } from "../app/session";
import { titleOf } from "../chat/header";
import { dateTime, number, t } from "../i18n";
import { assistantName, modelName } from "../text/names";
import { visibleLine } from "../text/visible";
import { Empty, Loading, Parts, Problem } from "../ui/controls";
import { Icon } from "../ui/icons";
import { useAgentDetail, useAssembled } from "./assembled";
import { Legend, TokenBar, scaleOf } from "./bar";
import { countFates, differences, summarised } from "./fates";
import { FateMap, useMessages } from "./map";
import { PolicyForm } from "./policy";
import { RecalledList } from "./recalled";
import { RenderedContext } from "./rendered";

export function ContextView({ thread, turn, question }: { thread: string | null; turn: string | null; question: string | null }) {
  const [found, setFound] = useState<Thread | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let isCurrent = true;
    setProblem(null);
    setFound(null);
    if (thread === null) return;
    client.thread(thread).then(
      (loaded) => isCurrent && setFound(loaded),
      (error: unknown) => {
        noteFailure(error);
        if (isCurrent) setProblem(messageOf(error));
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [thread]);
  if (thread === null) return <ChooseThread />;
  return (
    <section class="page inspector" aria-label={t("context_inspector")}>
      <header class="page-header">
        <p class="crumb">
          <a href={formatRoute(chatWith(thread))}>
            <Icon name="chat" size={15} />
            <span>{found ? titleOf(found) : "…"}</span>
          </a>
        </p>
        <h1>{t(turn === null ? "context_inspector" : "context_of_turn")}</h1>
        <p class="lead">{t(turn === null ? "inspector_lead" : "inspector_turn_lead")}</p>
      </header>
      {problem && <Problem text={problem} />}
      {found && (turn === null ? <LiveContext key={thread} thread={found} question={question ?? ""} /> : <TurnContext key={turn} thread={found} turn={turn} />)}
    </section>
  );
}

function ChooseThread() {
  useEffect(() => {
    if (!threadsLoaded.peek()) void loadThreads();
  }, []);
  const list = threads.value;
  useEffect(() => {
    const first = list[0];
    if (first) navigate({ view: "context", thread: first.id, turn: null, question: null }, "replace");
  }, [list]);
  return (
    <section class="page">
      {threadsLoaded.value ? (
        <Empty icon="eye" title={t("context_inspector")}>
          <p>{t("no_threads_yet")}</p>
        </Empty>
      ) : (
        <Loading />
      )}
    </section>
  );
}

/** The counter that estimates. */
const APPROXIMATE = "approximate";
const BUILT_IN: Policy = { window: 20, summary: true, recall_from: "nowhere", preferences: true, rendering: "chat" };

function LiveContext({ thread, question: initial }: { thread: Thread; question: string }) {
  const [question, setQuestion] = useState(initial);
  const [agent, setAgent] = useState(() => defaultAgent(thread));
  const detail = useAgentDetail(agent || null);
  const base = detail?.context ?? null;
  const [one, setOne] = useState<Policy | null>(null);
  const [other, setOther] = useState<Policy | null>(null);
  /** The column that a narrow window shows. */
  const [front, setFront] = useState<"A" | "B">("A");
  const policy = one ?? base;
  const first = useAssembled(thread.id, question, policy, thread.change);
  const second = useAssembled(other === null ? null : thread.id, question, other, thread.change);
  const otherContext = other === null ? null : second.context;
  const scale = Math.max(first.context ? scaleOf(first.context.report) : 0, otherContext ? scaleOf(otherContext.report) : 0);
  const changed = useMemo(
    () => (first.context && otherContext ? differences(first.context.report, otherContext.report) : new Set<number>()),
    [first.context, otherContext],
  );
  useEffect(() => {
    const timer = setTimeout(() => navigate({ view: "context", thread: thread.id, turn: null, question: question || null }, "replace"), 500);
    return () => clearTimeout(timer);
  }, [question, thread.id]);
  const compare = () => {
    if (other !== null) {
      setOther(null);
      return;
    }
    const from = policy ?? BUILT_IN;
    // The second policy differs from the first in recall, so that there is a difference to see.
    setOther({ ...from, recall_from: from.recall_from === "nowhere" ? "thread" : "nowhere" });
  };
  return (
    <>
      <div class="ask-bar">
        <label>
          <span>{t("question")}</span>
          <textarea rows={1} value={question} placeholder={t("question_placeholder")} maxLength={20_000} onInput={(event) => setQuestion(event.currentTarget.value)} />
        </label>
        <label>
          <span>{t("assistant")}</span>
          <select
            value={agent}
            onChange={(event) => {
              setAgent(event.currentTarget.value);
              setOne(null);
            }}
          >
            {agents.value.map(({ name }) => (
              <option key={name} value={name}>
                {assistantName(name)}
              </option>
            ))}
          </select>
        </label>
        <button type="button" aria-pressed={other !== null} onClick={compare}>
          <Icon name="compare" /> {t(other === null ? "compare" : "stop_comparing")}
        </button>
      </div>
      {other !== null && (
        <div class="choice column-choice" role="group" aria-label={t("compare")}>
          {(["A", "B"] as const).map((name) => (
            <button key={name} type="button" aria-pressed={name === front} onClick={() => setFront(name)}>
              {t("policy_n", { name })}
            </button>
          ))}
        </div>
      )}
      <div class={`columns${other === null ? "" : ` two front-${front}`}`}>
        <Column
          name={other === null ? null : "A"}
          thread={thread}
          question={question}
          policy={policy}
          onPolicy={setOne}
          onReset={one === null ? null : () => setOne(null)}
          assembled={first}
          against={otherContext?.report ?? null}
          scale={scale}
          changed={changed}
        />
        {other !== null && (
          <Column
            name="B"
            thread={thread}
            question={question}
            policy={other}
            onPolicy={setOther}
            onReset={null}
            assembled={second}
            against={first.context?.report ?? null}
            scale={scale}
            changed={changed}
          />
        )}
      </div>
    </>
  );
}

function Column(props: {
  name: string | null;
  thread: Thread;
  question: string;
  policy: Policy | null;
  onPolicy: (policy: Policy) => void;
  onReset: (() => void) | null;
  assembled: { context: AssembledContext | null; isStale: boolean; problem: string | null };
  against: Report | null;
  scale: number;
  changed: Set<number>;
}) {
  const { policy } = props;
  const { context, isStale, problem } = props.assembled;
  if (policy === null) return <Loading />;
  return (
    <div class={`column-view${isStale ? " stale" : ""}`} aria-busy={isStale}>
      {props.name !== null && <h2 class="policy-name">{t("policy_n", { name: props.name })}</h2>}
      <div class="column-policy">
        <PolicyForm policy={policy} onPolicy={props.onPolicy} onReset={props.onReset} />
        {problem && <Problem text={problem} />}
        {!context && !problem && <Loading />}
      </div>
      {context && (
        <ReportPanels
          thread={props.thread}
          report={context.report}
          against={props.against}
          scale={props.scale}
          changed={props.changed}
          question={props.question}
          rendered={<RenderedContext context={context} policy={policy} />}
          summaryText={summaryOf(context, policy)}
        />
      )}
    </div>
  );
}

/** Returns the summary in the text that the model receives. */
function summaryOf(context: AssembledContext, policy: Policy): string | null {
  if (context.report.tokens.summary === 0) return null;
  const first = context.messages[0];
  if (first?.role !== "system") return null;
  const text = first.parts.map((part) => ("text" in part ? part.text : "")).join("");
  const prompt = policy.system_prompt ?? "";
  return (text.startsWith(prompt) ? text.slice(prompt.length) : text).trim() || null;
}

function TurnContext({ thread, turn }: { thread: Thread; turn: string }) {
  const [report, setReport] = useState<Report | null | undefined>(undefined);
  const [found, setFound] = useState<Turn | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [question, setQuestion] = useState("");
  useEffect(() => {
    let isCurrent = true;
    const loading = async () => {
      const [loaded, state] = await Promise.all([client.contextReport(thread.id, turn), client.turn(thread.id, turn)]);
      if (!isCurrent) return;
      setReport(loaded);
      if (state.running) return;
      setFound(state.turn);
      const asked = state.turn.stored.find(({ role }) => role === "user");
      if (asked) setQuestion((await client.message(thread.id, asked.seq)).text);
    };
    loading().catch((error: unknown) => {
      noteFailure(error);
      if (isCurrent) setProblem(messageOf(error));
    });
    return () => {
      isCurrent = false;
    };
  }, [thread.id, turn]);
  if (problem) return <Problem text={problem} />;
  if (report === undefined) return <Loading />;
  if (report === null) return <Problem text={t("no_report")} />;
  return (
    <>
      {found && (
        <section class="panel facts-panel">
          {question && <q class="question">{visibleLine(question, 400)}</q>}
          <p class="note">
            <Parts>
              <b>{assistantName(found.agent)}</b>
              {`${t("model")}: ${modelName(found.model)}`}
              {dateTime(found.started_at)}
            </Parts>
          </p>
          <p class="data-actions">
            <a class="button" href={formatRoute({ view: "activity", thread: thread.id, turn })}>
              <Icon name="activity" /> {t("trace_of_turn")}
            </a>
            <a class="button" href={formatRoute({ view: "context", thread: thread.id, turn: null, question: question || null })}>
              <Icon name="eye" /> {t("ask_again_live")}
            </a>
          </p>
        </section>
      )}
      <p class="note">{t("turn_text_note")}</p>
      <div class="columns">
        <div class="column-view">
          <ReportPanels thread={thread} report={report} against={null} scale={scaleOf(report)} changed={new Set()} question={question} rendered={null} summaryText={null} isStored />
        </div>
      </div>
    </>
  );
}

function ReportPanels(props: {
  thread: Thread;
  report: Report;
  against: Report | null;
  scale: number;
  changed: Set<number>;
  question: string;
  rendered: preact.ComponentChildren;
  summaryText: string | null;
  /** Whether the report was stored with a turn, which stores no text. */
  isStored?: boolean;
}) {
  const { report, thread } = props;
  const counts = countFates(report);
  const summary = summarised(report);
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const included = (counts.kept ?? 0) + (counts.truncated ?? 0) + (counts.recalled ?? 0);
  const messages = useMessages(thread.id);
  const isOver = report.budget !== undefined && report.tokens.total > report.budget;
  return (
    <>
      <section class="panel tokens-panel">
        <header>
          <h2>{t("tokens_by_part")}</h2>
          <p class={`figure${isOver ? " over" : ""}`}>
            <b>{number(report.tokens.total)}</b>{" "}
            {report.budget === undefined ? t("no_budget") : t("of_budget", { budget: report.budget, percent: Math.round((100 * report.tokens.total) / report.budget) })}
          </p>
        </header>
        <TokenBar report={report} scale={props.scale} />
        <Legend report={report} other={props.against} />
        {report.question_was_cut && <p class="note warn">{t("question_was_cut")}</p>}
        <p class="note">
          {props.against && report.tokens.total < props.against.tokens.total && `${t("unused_tokens")} `}
          {props.against && `${t("compared_tokens")} `}
          {report.counter === APPROXIMATE ? t("counted_approximately") : t("counted_with", { counter: visibleLine(report.counter) })}
          {report.anchor !== undefined && ` ${t("anchor_at", { seq: report.anchor })}`}
        </p>
      </section>
      <section class="panel fates-panel">
        <header>
          <h2>{t("fate_of_messages")}</h2>
          <p class="figure">
            <b>{number(included)}</b> {t("of_messages", { total })}
          </p>
        </header>
        <FateMap report={report} thread={thread.id} messages={messages} changed={props.changed} />
        {props.changed.size > 0 && <p class="note">{t("compared_fates")}</p>}
      </section>
      {/* What only some contexts have is in one row of the columns. */}
      <div class="column-rest">
        {(report.recalled?.length ?? 0) > 0 && (
          <section class="panel">
            <header>
              <h2>{t("recalled_for_question")}</h2>
            </header>
            <RecalledList report={report} thread={thread.id} question={props.question} messages={messages} />
          </section>
        )}
        {summary && (
          <section class="panel">
            <header>
              <h2>{t("summary_covers")}</h2>
              <p class="figure">
                {t("summary_range", { first: summary.first, last: summary.last })}
                {summary.count < summary.last - summary.first + 1 && ` (${number(summary.count)})`}
              </p>
            </header>
            {props.isStored && <p class="note">{t("summary_not_stored")}</p>}
            {props.summaryText !== null && <blockquote class="summary-text" tabIndex={0}>{props.summaryText}</blockquote>}
          </section>
        )}
        {props.rendered}
      </div>
    </>
  );
}
