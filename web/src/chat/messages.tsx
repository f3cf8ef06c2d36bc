/** Renders messages. */
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Approval, Message, Source } from "../api/types";
import { chatWith, formatRoute } from "../app/router";
import { agents } from "../app/session";
import { dateTime, duration, dollars, number, shortTime, t } from "../i18n";
import { AnswerMaps } from "../maps/answer";
import { Markdown } from "../text/markdown";
import { speakerName } from "../text/names";
import { visibleLine } from "../text/visible";
import { Icon } from "../ui/icons";
import { pretty } from "../ui/controls";
import { ApprovalCard } from "./approval";
import type { Decide } from "./approval";
import { SourceDialog, groupsOf, sourceTitle } from "./sources";
import type { Call, Item } from "./items";

export interface MessageActions {
  thread: string;
  /** The assistant of the conversation. */
  agent: string;
  onEdit: ((message: Message) => void) | null;
  onRetry: ((message: Message) => void) | null;
  onFork: ((message: Message) => void) | null;
  onErase: ((message: Message) => void) | null;
  onContext: ((turn: string) => void) | null;
  onTrace: ((turn: string) => void) | null;
}

export function MessageItem(props: {
  item: Item;
  actions: MessageActions;
  question: string;
  isHit: boolean;
  /** The approvals that the message asks for. Its text would repeat them, so it is hidden. */
  approvals: Approval[];
  isBusy: boolean;
  onDecide: Decide;
}) {
  const { item, actions, approvals, question, isHit } = props;
  const { message } = item;
  const place = { id: `m${message.seq}`, "data-seq": message.seq };
  const hit = isHit ? " hit" : "";
  switch (item.kind) {
    case "user":
      return (
        <article {...place} class={`message user${hit}`} aria-label={t("said_by", { name: message.author ? visibleLine(message.author) : t("you") })}>
          {message.author && <p class="author">{visibleLine(message.author)}</p>}
          <div class="bubble">
            <Markdown text={item.text} />
          </div>
          <Meta message={message} thread={actions.thread}>
            {actions.onEdit && <Action icon="edit" label={t("edit_and_fork")} onClick={() => actions.onEdit?.(message)} />}
            <CommonActions message={message} text={item.text} actions={actions} />
          </Meta>
        </article>
      );
    case "answer":
      return (
        <article {...place} class={`message assistant${item.error ? " failed" : ""}${hit}`} aria-label={t("said_by", { name: nameOf(message, actions.agent) })}>
          <p class="author">{nameOf(message, actions.agent)}</p>
          {item.reasoning && (
            <details class="reasoning">
              <summary>{t("reasoning")}</summary>
              <Markdown text={item.reasoning} />
            </details>
          )}
          {approvals.length > 0 ? <p class="note">{t("asks_for_decision")}</p> : <Answer text={item.text} sources={message.sources ?? []} question={question} agent={actions.agent} />}
          {approvals.map((approval) => (
            <ApprovalCard key={approval.id} approval={approval} isBusy={props.isBusy} onDecide={props.onDecide} />
          ))}
          {item.found.length > 0 && <AnswerMaps calls={item.found} agent={actions.agent} />}
          <Meta message={message} thread={actions.thread}>
            {item.turn !== null && actions.onContext && <Action icon="eye" label={t("why_this_answer")} onClick={() => actions.onContext?.(item.turn ?? "")} />}
            {item.turn !== null && actions.onTrace && <Action icon="activity" label={t("trace_of_turn")} onClick={() => actions.onTrace?.(item.turn ?? "")} />}
            {actions.onRetry && <Action icon="retry" label={t("try_again")} onClick={() => actions.onRetry?.(message)} />}
            <CommonActions message={message} text={item.text} actions={actions} />
          </Meta>
        </article>
      );
    case "calls":
      return (
        <div {...place} class={`message calls${hit}`}>
          {item.calls.map((call) => (
            <ToolCall key={call.id} call={call} seq={message.seq} isWaiting />
          ))}
        </div>
      );
    case "decision":
      return (
        <p {...place} class={`message decision${hit}`}>
          <Icon name="shield" /> {visibleLine(item.text, 2000)} <time dateTime={message.created_at}>{shortTime(message.created_at)}</time>
        </p>
      );
    case "note":
      return (
        <div {...place} class={`message note${hit}`}>
          <Markdown text={item.text} />
        </div>
      );
  }
}

function nameOf(message: Message, assistant: string): string {
  return speakerName(message, assistant, agents.value.map(({ name }) => name));
}

function Meta({ message, thread, children }: { message: Message; thread: string; children: ComponentChildren }) {
  const { usage } = message;
  return (
    <div class="meta">
      <a class="seq" href={formatRoute(chatWith(thread, message.seq))} title={dateTime(message.created_at)}>
        #{message.seq} · <time dateTime={message.created_at}>{shortTime(message.created_at)}</time>
      </a>
      {usage && (usage.input_tokens ?? 0) > 0 && (
        <span class="usage">
          {number(usage.input_tokens ?? 0)} → {number(usage.output_tokens ?? 0)} {t("tokens")}
          {usage.cost_usd != null && usage.cost_usd > 0 && ` · ${dollars(usage.cost_usd)}`}
          {usage.duration_ms != null && ` · ${duration(usage.duration_ms)}`}
        </span>
      )}
      <span class="actions">{children}</span>
    </div>
  );
}

function Action({ icon, label, onClick }: { icon: Parameters<typeof Icon>[0]["name"]; label: string; onClick: () => void }) {
  return (
    <button type="button" class="icon-button small" aria-label={label} title={label} onClick={onClick}>
      <Icon name={icon} size={15} />
    </button>
  );
}

function CommonActions({ message, text, actions }: { message: Message; text: string; actions: MessageActions }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    // Only secure contexts may write to the clipboard.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    void clipboard?.writeText(text).then(() => setCopied(true));
  };
  return (
    <>
      <Action icon={isCopied ? "check" : "copy"} label={t("copy")} onClick={copy} />
      {actions.onFork && <Action icon="fork" label={t("fork_here")} onClick={() => actions.onFork?.(message)} />}
      {actions.onErase && <Action icon="erase" label={t("erase_message")} onClick={() => actions.onErase?.(message)} />}
    </>
  );
}

function Answer({ text, sources, question, agent }: { text: string; sources: Source[]; question: string; agent: string }) {
  const [open, setOpen] = useState<Source | null>(null);
  const numbered = new Map<number, Source>();
  sources.forEach((source, index) => {
    const number = (source.fields as Record<string, unknown> | undefined)?.["cited_as"];
    numbered.set(typeof number === "number" ? number : index + 1, source);
  });
  const cite = (number: number) => {
    const source = numbered.get(number);
    if (!source) return null;
    const title = sourceTitle(source);
    return (
      <button type="button" class="cite" title={title} aria-label={t("source_n", { n: number, title })} onClick={() => setOpen(source)}>
        {number}
      </button>
    );
  };
  return (
    <>
      <Markdown text={text} cite={numbered.size > 0 ? cite : undefined} />
      {numbered.size > 0 && (
        <ul class="sources" aria-label={t("sources")}>
          {groupsOf(numbered).map(({ title, sources: [first, ...others] }) => (
            <li key={title}>
              {first && others.length === 0 ? (
                <button type="button" onClick={() => setOpen(first.source)}>
                  <b>{first.numbers.join(", ")}</b> {title}
                </button>
              ) : (
                <span class="chip">
                  {[...(first ? [first] : []), ...others].map(({ source, numbers }) => (
                    <button key={numbers[0]} type="button" aria-label={t("source_n", { n: numbers.join(", "), title })} onClick={() => setOpen(source)}>
                      <b>{numbers.join(", ")}</b>
                    </button>
                  ))}
                  <span>{title}</span>
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {open && <SourceDialog source={open} question={question} agent={agent} onClose={() => setOpen(null)} />}
    </>
  );
}

export function ToolCall({ call, seq, isWaiting }: { call: Call; seq?: number; isWaiting?: boolean }) {
  const { result } = call;
  const state = result === null ? (isWaiting ? "waiting" : "running") : result.isError ? "error" : "done";
  return (
    <details class={`call ${state}`}>
      <summary>
        <Icon name="tool" size={15} />
        <b>{visibleLine(call.name, 60)}</b>
        <span class="arguments">{visibleLine(summaryOf(call.arguments), 120)}</span>
        {seq !== undefined && <span class="seq">{[seq, result?.seq].flatMap((each) => (each == null ? [] : `#${each}`)).join(", ")}</span>}
        <span class="state">
          {result === null ? t(isWaiting ? "call_waiting" : "call_running") : t(result.isError ? "call_failed" : "call_done")}
          {result?.durationMs != null && ` · ${duration(result.durationMs)}`}
        </span>
      </summary>
      <p class="label">{t("arguments")}</p>
      <pre tabIndex={0}>{pretty(call.arguments)}</pre>
      {result !== null && (
        <>
          <p class="label">{result.isError ? t("error") : t("result")}</p>
          <pre tabIndex={0}>{indented(result.output)}</pre>
        </>
      )}
    </details>
  );
}

/** Formats the arguments of a call in one line. */
function summaryOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  const entries = Object.entries(value as Record<string, unknown>);
  return entries.map(([name, member]) => `${name}: ${typeof member === "string" ? member : JSON.stringify(member)}`).join(", ");
}

/** Indents JSON; returns other text unchanged. */
function indented(text: string): string {
  if (!/^\s*[[{]/.test(text) || text.length > 200_000) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
