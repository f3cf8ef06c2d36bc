/** A conversation with an assistant. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Message } from "../api/types";
import { chooseAgent, defaultAgent } from "../app/agents";
import { randomId } from "../app/ids";
import { conversation, forget, loadThreads, show } from "../app/open";
import { chatWith, navigate } from "../app/router";
import { agents, client, may, messageOf, noteFailure } from "../app/session";
import { useAgentDetail } from "../context/assembled";
import { t } from "../i18n";
import { Markdown } from "../text/markdown";
import { assistantName } from "../text/names";
import { visibleLine } from "../text/visible";
import { Confirm, Empty, Loading, Problem, toast } from "../ui/controls";
import { Icon } from "../ui/icons";
import { useAttachments, withAttachments } from "./attachments";
import { Composer, loadDraft, storeDraft } from "./composer";
import type { Conversation, Pending } from "./conversation";
import { lastSeq } from "./feed";
import { itemsOf, metadata, questionBefore, withoutAsked } from "./items";
import type { Item } from "./items";
import { MessageItem, ToolCall } from "./messages";
import type { MessageActions } from "./messages";
import { ThreadHeader } from "./header";

export function ChatView({ thread, at, agent }: { thread: string | null; at: number | null; agent: string | null }) {
  const open = useMemo(() => (thread === null ? null : conversation(thread)), [thread]);
  useEffect(() => {
    show(thread);
    if (open && !open.loaded.peek()) void open.open(at);
    else if (open && at !== null && !open.feed.peek().messages.some(({ seq }) => seq === at)) void open.open(at);
    else open?.resume();
  }, [open, at, thread]);
  if (open === null) return <NewChat key="new" agent={agent} />;
  return <OpenChat key={open.id} open={open} at={at} />;
}

function NewChat({ agent }: { agent: string | null }) {
  const [text, setText] = useState(() => loadDraft(null));
  const [chosen, setChosen] = useState(() => (agent !== null && agents.value.some(({ name }) => name === agent) ? agent : defaultAgent(null)));
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const attachments = useAttachments(null);
  const write = (value: string) => {
    setText(value);
    storeDraft(null, value);
  };
  const choose = (name: string) => {
    setChosen(name);
    chooseAgent(null, name);
  };
  const send = async () => {
    if (!text.trim() || isBusy || attachments.isBusy) return;
    setBusy(true);
    try {
      const created = await client.createThread(randomId(), { assistant: chosen });
      const open = conversation(created.id);
      open.openNew(created);
      open.ask(chosen, withAttachments(text.trim(), attachments.list));
      attachments.clear();
      storeDraft(null, "");
      navigate(chatWith(created.id));
      void loadThreads();
    } catch (error) {
      noteFailure(error);
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <section class="chat" aria-label={t("new_chat")}>
      <div class="scroll" tabIndex={0}>
        <div class="welcome">
          <h1>{t("welcome")}</h1>
          <p>{t("welcome_hint")}</p>
          <ul class="agent-cards">
            {agents.value.map(({ name, description, tools }) => (
              <li key={name}>
                <button type="button" aria-pressed={name === chosen} onClick={() => choose(name)}>
                  <b>{assistantName(name)}</b>
                  <span>{visibleLine(description, 200)}</span>
                  <small>{t("n_tools", { count: tools.length })}</small>
                </button>
              </li>
            ))}
          </ul>
          {problem && <Problem text={problem} />}
        </div>
      </div>
      <Composer
        thread={null}
        text={text}
        onText={write}
        agents={agents.value}
        agent={chosen}
        onAgent={choose}
        policy={null}
        version={0}
        attachments={attachments}
        isBusy={isBusy}
        canStop={false}
        canWrite={may("write") && agents.value.length > 0}
        onSend={() => void send()}
        onStop={() => undefined}
        onEditLast={() => undefined}
      />
    </section>
  );
}

function OpenChat({ open, at }: { open: Conversation; at: number | null }) {
  const { id } = open;
  const feed = open.feed.value;
  const pending = open.pending.value;
  const thread = open.thread.value;
  const isDeleted = open.connection.value === "deleting" || open.connection.value === "deleted";
  const approvals = open.approvals.value;
  const [text, setText] = useState(() => loadDraft(id));
  const [editing, setEditing] = useState<Message | null>(null);
  const [erasing, setErasing] = useState<Message | null>(null);
  const [picked, setPicked] = useState<string | null>(null);
  const agent = picked ?? defaultAgent(thread);
  const detail = useAgentDetail(agent || null);
  const items = useMemo(() => itemsOf(feed.messages), [feed.messages]);
  const attachments = useAttachments(id);

  const write = (value: string) => {
    setText(value);
    storeDraft(id, value);
  };
  const choose = (name: string) => {
    setPicked(name);
    chooseAgent(id, name);
  };

  /** Forks the thread before a position, and asks a question in the fork if there is one. */
  const branch = async (before: number, question: string | null) => {
    try {
      const fork = await client.forkThread(id, before - 1, randomId());
      const forked = conversation(fork.id);
      await forked.open(null);
      if (question !== null) forked.ask(agent, question);
      chooseAgent(fork.id, agent);
      navigate(chatWith(fork.id));
      void loadThreads();
      toast(t("forked"));
    } catch (error) {
      noteFailure(error);
      toast(messageOf(error));
    }
  };
  const send = () => {
    if (!text.trim() || open.isBusy || attachments.isBusy) return;
    const question = withAttachments(text.trim(), attachments.list);
    attachments.clear();
    write("");
    if (editing) {
      setEditing(null);
      void branch(editing.seq, question);
    } else open.ask(agent, question);
  };
  const edit = (message: Message) => {
    setEditing(message);
    write(message.text);
    document.getElementById("composer")?.focus();
  };
  const canWrite = may("write");
  const actions: MessageActions = {
    thread: id,
    agent,
    onEdit: canWrite ? edit : null,
    onRetry: canWrite
      ? (message) => {
          const question = questionBefore(feed.messages, message.seq);
          if (!question) return;
          const isLast = lastSeq(feed) === message.seq;
          // A question whose turn failed is asked again in this thread. Any other answer is kept, and its question is asked in a new branch.
          if (metadata(message)["error"] && isLast) open.ask(agent, question.text);
          else void branch(question.seq, question.text);
        }
      : null,
    onFork: canWrite ? (message) => void branch(message.seq + 1, null) : null,
    onErase: canWrite ? setErasing : null,
    onContext: (turn) => navigate({ view: "context", thread: id, turn, question: null }),
    onTrace: (turn) => navigate({ view: "activity", thread: id, turn }),
  };

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
      if (editing) {
        setEditing(null);
        write("");
      } else if (pending?.turn) void open.stop();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });

  if (open.problem.value !== null) {
    return (
      <section class="chat">
        <Empty icon="warn" title={t("thread_not_available")}>
          <p>{open.problem.value}</p>
          <button type="button" onClick={() => navigate(chatWith(null))}>
            {t("new_chat")}
          </button>
        </Empty>
      </section>
    );
  }
  if (!open.loaded.value) {
    return (
      <section class="chat">
        <ConnectionLine open={open} />
        <Loading />
      </section>
    );
  }
  return (
    <section class="chat" aria-label={t("conversation")}>
      <ThreadHeader
        thread={thread}
        onDelete={async () => {
          await open.delete();
          forget(id);
          navigate(chatWith(null), "replace");
        }}
        onRenamed={(renamed) => {
          open.thread.value = renamed;
          void loadThreads();
        }}
      />
      <ConnectionLine open={open} />
      <Scroller open={open} at={at} items={items} pendingTokens={pending?.tokens.length ?? 0}>
        {withoutAsked(items, approvals.values()).map((item) => (
          <div class="entry" key={`${item.message.seq}${item.kind}`}>
            <MessageItem item={item} actions={actions} approvals={item.kind === "answer" ? item.approvals.flatMap((approval) => approvals.get(approval) ?? []) : []} isBusy={open.isBusy} onDecide={(...decision) => open.decide(...decision)} isHit={item.message.seq === at} question={questionBefore(feed.messages, item.message.seq)?.text ?? ""} />
          </div>
        ))}
        {items.length === 0 && !pending && <Empty icon="chat" title={t("no_messages")}>{detail && <p>{`${assistantName(detail.name)}: ${visibleLine(detail.description, 200)}`}</p>}</Empty>}
        {pending && <PendingTurn pending={pending} open={open} items={items} onDismiss={write} />}
      </Scroller>
      {editing && (
        <p class="editing" role="status">
          <Icon name="fork" size={15} /> {t("editing", { seq: editing.seq })}
          <button
            type="button"
            onClick={() => {
              setEditing(null);
              write("");
            }}
          >
            {t("cancel")}
          </button>
        </p>
      )}
      <Composer
        thread={id}
        text={text}
        onText={write}
        agents={agents.value}
        agent={agent}
        onAgent={choose}
        policy={isDeleted ? null : (detail?.context ?? null)}
        version={lastSeq(feed)}
        attachments={attachments}
        isBusy={open.isBusy}
        canStop={pending?.turn !== null && pending?.state !== "stopping"}
        canWrite={canWrite && !isDeleted && agents.value.length > 0}
        onSend={send}
        onStop={() => void open.stop()}
        onEditLast={() => {
          const last = feed.messages.findLast((message) => message.role === "user" && !metadata(message)["approval"]);
          if (last) edit(last);
        }}
      />
      {erasing && (
        <Confirm title={t("erase_message")} action={t("erase")} onConfirm={() => open.erase(erasing.seq)} onClose={() => setErasing(null)}>
          <p>{t("erase_message_explained", { seq: erasing.seq })}</p>
          <blockquote class="passage">{visibleLine(erasing.text, 200)}</blockquote>
        </Confirm>
      )}
    </section>
  );
}

function ConnectionLine({ open }: { open: Conversation }) {
  const connection = open.connection.value;
  // The notice appears after a delay, because a brief loss is over before anyone could read it.
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (connection !== "lost") {
      setShown(false);
      return;
    }
    const timer = setTimeout(() => setShown(true), 600);
    return () => clearTimeout(timer);
  }, [connection]);
  if (connection === "deleted") {
    return (
      <p class="connection" role="alert">
        {t("thread_deleted")}
      </p>
    );
  }
  return (
    <p class="connection" role="status" hidden={!isShown}>
      {isShown && (
        <>
          {t("connection_lost")}{" "}
          <button type="button" onClick={() => open.reconnect()}>
            {t("try_now")}
          </button>
        </>
      )}
    </p>
  );
}

/** Keeps the newest message in view while the user is at the end; otherwise, keeps the scroll position. */
function Scroller(props: { open: Conversation; at: number | null; items: Item[]; pendingTokens: number; children: preact.ComponentChildren }) {
  const { open, at } = props;
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const anchor = useRef<{ seq: string; top: number } | null>(null);
  const shownHit = useRef<number | null>(null);
  const feed = open.feed.value;
  const first = feed.messages[0]?.seq;

  const remember = useCallback(() => {
    const element = box.current;
    if (!element) return;
    isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 60;
    const top = element.getBoundingClientRect().top;
    const visible = [...element.querySelectorAll<HTMLElement>("[data-seq]")].find((entry) => entry.getBoundingClientRect().bottom > top);
    const seq = visible?.dataset["seq"];
    anchor.current = visible && seq ? { seq, top: visible.getBoundingClientRect().top - top } : null;
  }, []);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    if (at !== null && shownHit.current !== at) {
      const hit = element.querySelector<HTMLElement>(`[data-seq="${at}"]`);
      if (hit) {
        shownHit.current = at;
        hit.scrollIntoView({ block: "center" });
        isAtEnd.current = false;
        return;
      }
    }
    if (isAtEnd.current && !feed.hasNewer) element.scrollTop = element.scrollHeight;
  }, [props.items, props.pendingTokens, at, feed.hasNewer]);

  useLayoutEffect(() => {
    // Older messages were added above: the visible messages must not move.
    const element = box.current;
    const kept = anchor.current;
    if (!element || !kept || isAtEnd.current) return;
    const entry = element.querySelector<HTMLElement>(`[data-seq="${kept.seq}"]`);
    if (entry) element.scrollTop += entry.getBoundingClientRect().top - element.getBoundingClientRect().top - kept.top;
  }, [first]);

  const onScroll = () => {
    remember();
    const element = box.current;
    if (!element) return;
    if (element.scrollTop < 600) void open.loadOlder();
    if (feed.hasNewer && element.scrollHeight - element.scrollTop - element.clientHeight < 600) void open.loadNewer();
  };
  return (
    <div class="scroll" ref={box} onScroll={onScroll} tabIndex={0} role="log" aria-label={t("messages")}>
      <div class="column">
        {feed.hasOlder && (
          <button type="button" class="load" onClick={() => void open.loadOlder()}>
            {t("load_older")}
          </button>
        )}
        {props.children}
        {feed.hasNewer && (
          <button type="button" class="load" onClick={() => void open.showNewest()}>
            {t("show_newest")}
          </button>
        )}
      </div>
    </div>
  );
}

function PendingTurn({ pending, open, items, onDismiss }: { pending: Pending; open: Conversation; items: Item[]; onDismiss: (text: string) => void }) {
  const isQuestionStored = items.some((item) => item.kind === "user" && item.message.seq > pending.since && item.text === pending.text);
  return (
    <div class={`turn-in-progress ${pending.state}`} aria-busy={pending.state !== "failed"}>
      {pending.text && !isQuestionStored && (
        <article class="message user">
          <div class="bubble">
            <Markdown text={pending.text} />
          </div>
        </article>
      )}
      {pending.calls.length > 0 && (
        <div class="message calls">
          {pending.calls.map(({ id, name, arguments: args, result }) => (
            <ToolCall
              key={id}
              call={{
                id,
                name,
                arguments: args,
                result: result && { seq: null, output: result.error ?? JSON.stringify(result.result), isError: !result.ok, durationMs: result.duration_ms, data: result.result, at: "" },
              }}
            />
          ))}
        </div>
      )}
      {pending.state === "failed" ? (
        <Problem text={pending.problem ?? ""}>
          <button type="button" onClick={() => onDismiss(open.dismiss())}>
            {t("back_to_draft")}
          </button>
        </Problem>
      ) : (
        <article class="message assistant">
          <p class="author">{assistantName(pending.agent)}</p>
          {pending.tokens ? <Markdown text={pending.tokens} /> : null}
          <p class="working" role="status">
            <i />
            {t(
              pending.state === "reconnecting"
                ? "reconnecting"
                : pending.state === "stopping"
                  ? "stopping"
                  : pending.calls.some(({ result }) => result === null)
                    ? "using_tools"
                    : pending.tokens
                      ? "writing"
                      : "thinking",
            )}
          </p>
          {pending.problem && <Problem text={pending.problem} />}
        </article>
      )}
    </div>
  );
}
