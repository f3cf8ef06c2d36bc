/** What assistants did and what is waiting: approvals, the turns of a thread, and the steps of one turn. */
import { useEffect, useState } from "preact/hooks";
import type { Approval, Message, Thread, Turn } from "../api/types";
import { conversation, threads } from "../app/open";
import { chatWith, formatRoute, navigate } from "../app/router";
import { assistantOf } from "../app/agents";
import { agents, client, messageOf, noteFailure } from "../app/session";
import { ApprovalCard, requestOf } from "../chat/approval";
import { metadata } from "../chat/items";
import { turnOf } from "../chat/turn";
import { titleOf } from "../chat/header";
import { dateTime, dollars, duration, number, shortTime, t } from "../i18n";
import type { Key } from "../i18n";
import { assistantName, isBuiltIn, modelName, speakerName } from "../text/names";
import { visibleLine } from "../text/visible";
import { Empty, Loading, Parts, Problem, toast } from "../ui/controls";
import { Icon } from "../ui/icons";
import { Timeline } from "./timeline";

export function ActivityView({ thread, turn }: { thread: string | null; turn: string | null }) {
  if (thread !== null && turn !== null) return <TurnPage key={turn} thread={thread} turn={turn} />;
  return <Overview thread={thread} />;
}

function Overview({ thread }: { thread: string | null }) {
  const approvals = useApprovals();
  return (
    <section class="page activity" aria-label={t("activity")}>
      <header class="page-header">
        <h1>{t("activity")}</h1>
      </header>
      {thread === null && <Waiting {...approvals} />}
      <Turns key={thread ?? "all"} thread={thread} waiting={new Set(approvals.list?.filter(({ state }) => state === "pending").map(({ turn }) => turn))} />
    </section>
  );
}

interface Approvals {
  list: Approval[] | null;
  problem: string | null;
  reload: () => Promise<void>;
}

/** Loads the approvals again and again while the page is visible. */
function useApprovals(): Approvals {
  const [list, setApprovals] = useState<Approval[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const reload = async () => {
    try {
      setApprovals(await client.approvals(true));
    } catch (error) {
      noteFailure(error);
      setProblem(messageOf(error));
    }
  };
  useEffect(() => {
    void reload();
    const timer = setInterval(() => !document.hidden && void reload(), 5000);
    return () => clearInterval(timer);
  }, []);
  return { list, problem, reload };
}

function Waiting({ list: approvals, problem, reload }: Approvals) {
  const [isBusy, setBusy] = useState(false);
  const decide = async (approval: Approval, decision: "approve" | "deny", reason: string) => {
    setBusy(true);
    const open = conversation(approval.thread);
    if (!open.loaded.peek()) await open.open(null);
    open.decide(approval, decision, reason);
    const stop = open.pending.subscribe((pending) => {
      if (pending && pending.state !== "failed") return;
      if (pending?.problem) toast(pending.problem);
      queueMicrotask(() => stop());
      setBusy(false);
      void reload();
    });
  };
  if (problem) return <Problem text={problem} />;
  if (!approvals) return <Loading />;
  const open = approvals.filter(({ state }) => state === "pending");
  const closed = approvals.filter(({ state }) => state !== "pending");
  return (
    <section class="panel">
      <header>
        <h2>{t("waiting_for_decision")}</h2>
        <p class="figure">
          <b>{number(open.length)}</b>
        </p>
      </header>
      {open.length === 0 && <p class="note">{t("nothing_waits")}</p>}
      {open.map((approval) => (
        <div key={approval.id}>
          <ApprovalCard approval={approval} isBusy={isBusy} onDecide={(...decision) => void decide(...decision)} />
          <p class="note approval-where">
            <Parts>
              <a href={formatRoute(chatWith(approval.thread))}>{threadName(approval.thread)}</a>
              {dateTime(approval.requested_at)}
            </Parts>
          </p>
        </div>
      ))}
      {closed.length > 0 && (
        <details>
          <summary>{t("decided_before", { count: closed.length })}</summary>
          <ul class="closed-approvals">
            {closed.slice(0, 50).map((approval) => (
              <li key={approval.id}>
                <span class={`badge approval-${approval.state}`}>{t(`approval_${approval.state}` as Key)}</span> <span>{visibleLine(requestOf(approval), 200)}</span>
                <small>
                  {approval.by && `${visibleLine(approval.by)} · `}
                  {shortTime(approval.decided_at ?? approval.requested_at)}
                </small>
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function threadName(id: string): string {
  const found = threads.value.find((thread) => thread.id === id);
  return found ? titleOf(found) : t("thread");
}

interface Row {
  thread: string;
  turn: string;
  question: Message | null;
  last: Message;
  calls: number;
}

const MAX_THREADS = 12;
const MAX_MESSAGES = 60;

/** Returns the turns that stored messages, newest first. */
export function rowsOf(thread: string, messages: Message[]): Row[] {
  const rows = new Map<string, Row>();
  // A question does not name its turn; the messages of the turn follow it.
  let asked: Message | null = null;
  for (const message of messages) {
    const turn = turnOf(message);
    if (turn === null) {
      if (message.role === "user") asked = message;
      continue;
    }
    const row = rows.get(turn) ?? { thread, turn, question: asked, last: message, calls: 0 };
    row.calls += message.parts.filter((part) => "tool_call" in part).length;
    row.last = message;
    rows.set(turn, row);
  }
  return [...rows.values()].reverse();
}

/** Whether the title of a turn's thread, which may be shortened, is its question. */
function isTitle({ thread, question }: Row): boolean {
  const title = threadName(thread).replace(/…$/, "");
  return question !== null && visibleLine(question.text).startsWith(title);
}

/** Returns what a row says about the state of its turn: nothing if it is completed. */
function stateOf({ turn, last }: Row, waiting: Set<string>): "waiting_for_approval" | "failed" | null {
  if (waiting.has(turn)) return "waiting_for_approval";
  return metadata(last)["error"] ? "failed" : null;
}

function Turns({ thread, waiting }: { thread: string | null; waiting: Set<string> }) {
  const [rows, setRows] = useState<Row[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [shown, setShown] = useState<Thread | null>(null);
  useEffect(() => {
    let isCurrent = true;
    const load = async () => {
      const ids = thread === null ? (await client.threads(undefined, MAX_THREADS)).data.map(({ id }) => id) : [thread];
      if (thread !== null) setShown(await client.thread(thread));
      const limit = thread === null ? MAX_MESSAGES : 400;
      const pages = await Promise.all(ids.map(async (id) => rowsOf(id, (await client.messages(id, { limit })).messages)));
      if (isCurrent) setRows(pages.flat().sort((one, other) => (one.last.created_at < other.last.created_at ? 1 : -1)));
    };
    load().catch((error: unknown) => {
      noteFailure(error);
      if (isCurrent) setProblem(messageOf(error));
    });
    return () => {
      isCurrent = false;
    };
  }, [thread]);
  if (problem) return <Problem text={problem} />;
  if (!rows) return <Loading />;
  return (
    <section class="panel">
      <header>
        <h2>{thread === null ? t("recent_turns") : t("turns_of", { title: titleOf(shown) })}</h2>
        <p class="figure">
          <b>{number(rows.length)}</b>
        </p>
      </header>
      <p class="note">{t("turns_note")}</p>
      {rows.length === 0 ? (
        <Empty icon="activity" title={t("no_turns")} />
      ) : (
        <ol class="turns">
          {rows.map((row) => ({ row, state: stateOf(row, waiting) })).map(({ row, state }) => (
            <li key={row.turn}>
              <a href={formatRoute({ view: "activity", thread: row.thread, turn: row.turn })}>
                <p class="asked">
                  <b>{visibleLine(row.question?.text ?? row.last.text, 140)}</b>
                  {state && <span class={`badge ${state}`}>{t(`status_${state}`)}</span>}
                  <Icon name="right" size={16} />
                </p>
                <p class="where">
                  <Parts>
                    {speakerName(row.last, assistantOf(threads.value.find(({ id }) => id === row.thread) ?? shown), agents.value.map(({ name }) => name))}
                    {thread === null && !isTitle(row) && threadName(row.thread)}
                    {row.calls > 0 && t("n_calls", { count: row.calls })}
                    <time dateTime={row.last.created_at}>{shortTime(row.last.created_at)}</time>
                  </Parts>
                </p>
              </a>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function TurnPage({ thread, turn }: { thread: string; turn: string }) {
  const [found, setFound] = useState<Turn | null>(null);
  const [question, setQuestion] = useState<Message | null>(null);
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isCurrent = true;
    const load = async () => {
      const state = await client.turn(thread, turn);
      if (!isCurrent) return;
      setRunning(state.running);
      if (state.running) {
        timer = setTimeout(() => void load().catch(report), 700);
        return;
      }
      setFound(state.turn);
      const asked = state.turn.stored.find(({ role }) => role === "user");
      if (asked) setQuestion(await client.message(thread, asked.seq));
    };
    const report = (error: unknown) => {
      noteFailure(error);
      if (isCurrent) setProblem(messageOf(error));
    };
    load().catch(report);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [thread, turn]);
  return (
    <section class="page activity" aria-label={t("trace_of_turn")}>
      <header class="page-header">
        <p class="crumb">
          <a href={formatRoute(chatWith(thread))}>
            <Icon name="chat" size={15} />
            <span>{threadName(thread)}</span>
          </a>
          <a href={formatRoute({ view: "activity", thread, turn: null })}>{t("all_turns")}</a>
        </p>
        <h1>{t("trace_of_turn")}</h1>
      </header>
      {problem && <Problem text={problem} />}
      {!found && !problem && (isRunning ? <p role="status">{t("turn_is_running")}</p> : <Loading />)}
      {found && (
        <>
          <section class="panel facts-panel">
            {question && <q class="question">{visibleLine(question.text, 400)}</q>}
            <dl class="tiles">
              <Tile name={t("status")} value={t(`status_${found.status}` as Key)} tone={found.status} />
              <Tile name={t("took")} value={duration(found.duration_ms)} />
              {found.usage.input_tokens + found.usage.output_tokens === 0 ? (
                <Tile name={t("tokens_used")} value={t("not_reported")} note={t("tokens_not_reported")} />
              ) : (
                <Tile name={t("tokens_used")} value={`${number(found.usage.input_tokens)} → ${number(found.usage.output_tokens)}`} note={t("tokens_reported")} />
              )}
              <Tile name={t("cost")} value={isBuiltIn(found.model) ? t("free") : found.usage.cost_usd == null ? t("unknown") : dollars(found.usage.cost_usd)} />
              <Tile name={t("model_calls")} value={number(found.usage.model_calls)} />
              <Tile name={t("context_tokens")} value={`≈ ${number(found.context.tokens)}`} note={found.context.messages === 0 ? t("context_alone") : t("context_with", { count: found.context.messages })} />
            </dl>
            <p class="note">
              <Parts>
                <b>{assistantName(found.agent)}</b>
                {`${t("model")}: ${modelName(found.model)}`}
                {dateTime(found.started_at)}
              </Parts>
            </p>
            {found.error && <Problem text={`${visibleLine(found.error.message, 500)} (${visibleLine(found.error.code)})`} />}
            <p class="data-actions">
              <button type="button" onClick={() => navigate({ view: "context", thread, turn, question: null })}>
                <Icon name="eye" /> {t("why_this_answer")}
              </button>
              <button type="button" onClick={() => navigate({ view: "assistants", agent: found.agent })}>
                <Icon name="graph" /> {t("graph_of_assistant")}
              </button>
            </p>
          </section>
          <section class="panel">
            <header>
              <h2>{t("steps")}</h2>
            </header>
            <Timeline turn={found} question={question} />
          </section>
        </>
      )}
    </section>
  );
}

export function Tile({ name, value, tone, note }: { name: string; value: string; tone?: string; note?: string }) {
  return (
    <div class={`tile${tone ? ` ${tone}` : ""}${[t("not_reported"), t("not_known")].includes(value) ? " unreported" : ""}`}>
      <dt>{name}</dt>
      <dd>
        {value}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}
