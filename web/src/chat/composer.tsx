/** The field in which the user writes. A draft survives a reload. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Agent, Policy } from "../api/types";
import { load, store } from "../app/storage";
import { formatRoute } from "../app/router";
import { isOffline } from "../app/session";
import { TokenBar } from "../context/bar";
import { countFates } from "../context/fates";
import { useAssembled } from "../context/assembled";
import { number, t } from "../i18n";
import { assistantName } from "../text/names";
import { IconButton } from "../ui/controls";
import { AttachmentList } from "./attachments";
import type { Attachments } from "./attachments";

const MAX_CHARACTERS = 100_000;

export function loadDraft(thread: string | null): string {
  return load(`draft.${thread ?? "new"}`) ?? "";
}

export function storeDraft(thread: string | null, text: string): void {
  store(`draft.${thread ?? "new"}`, text);
}

export function Composer(props: {
  thread: string | null;
  text: string;
  onText: (text: string) => void;
  agents: Agent[];
  agent: string;
  onAgent: (agent: string) => void;
  policy: Policy | null;
  version: number;
  attachments: Attachments;
  isBusy: boolean;
  canStop: boolean;
  canWrite: boolean;
  onSend: () => void;
  onStop: () => void;
  onEditLast: () => void;
}) {
  const { text, attachments } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const isOver = useFileDrop(props.canWrite ? attachments.add : null);
  useLayoutEffect(() => {
    const element = area.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, 260)}px`;
  }, [text]);
  useEffect(() => {
    // On a touch screen, the keyboard would cover the conversation.
    if (matchMedia("(hover: hover)").matches) area.current?.focus();
  }, [props.thread]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      props.onSend();
    } else if (event.key === "ArrowUp" && text === "") {
      event.preventDefault();
      props.onEditLast();
    }
  };
  const onPaste = (event: ClipboardEvent) => {
    const { files, types } = event.clipboardData ?? {};
    // Text that was copied from a document may come with a picture of it.
    if (!files?.length || types?.includes("text/plain")) return;
    event.preventDefault();
    attachments.add(files);
  };
  return (
    <div class="composer">
      <ContextMeter thread={props.thread} question={text} policy={props.policy} version={props.version} />
      <div class={`field${isOver ? " over" : ""}`}>
        <AttachmentList attachments={attachments} agents={props.agents} agent={props.agent} />
        <textarea
          ref={area}
          id="composer"
          rows={1}
          value={text}
          maxLength={MAX_CHARACTERS}
          disabled={!props.canWrite}
          aria-label={t("your_message")}
          placeholder={props.canWrite ? t("ask", { agent: assistantName(props.agent) }) : t("needs_role_write")}
          onInput={(event) => props.onText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <div class="tools">
          <input
            ref={chooser}
            type="file"
            multiple
            hidden
            aria-hidden="true"
            tabIndex={-1}
            onChange={(event) => {
              attachments.add(event.currentTarget.files ?? []);
              event.currentTarget.value = "";
            }}
          />
          <IconButton icon="attach" label={t("attach_files")} disabled={!props.canWrite} onClick={() => chooser.current?.click()} />
          <label class="agent">
            <span class="visually-hidden">{t("assistant")}</span>
            <select value={props.agent} disabled={props.isBusy} onChange={(event) => props.onAgent(event.currentTarget.value)}>
              {props.agents.map(({ name }) => (
                <option key={name} value={name}>
                  {assistantName(name)}
                </option>
              ))}
            </select>
          </label>
          {props.isBusy ? (
            <IconButton icon="stop" class="primary" label={t("stop")} disabled={!props.canStop} onClick={props.onStop} />
          ) : (
            <IconButton icon="send" class="primary" label={t("send")} disabled={!props.canWrite || text.trim() === "" || attachments.isBusy} onClick={props.onSend} />
          )}
        </div>
      </div>
    </div>
  );
}

/** Takes files that are dropped anywhere on the page. Returns whether files are being dragged over it. */
function useFileDrop(onFiles: ((files: Iterable<File>) => void) | null): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    if (!onFiles) return;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") && !document.querySelector("dialog[open]");
    const onDragOver = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const onDragLeave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const onDrop = (event: DragEvent) => {
      setOver(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      onFiles(event.dataTransfer?.files ?? []);
    };
    addEventListener("dragover", onDragOver);
    addEventListener("dragleave", onDragLeave);
    addEventListener("drop", onDrop);
    return () => {
      removeEventListener("dragover", onDragOver);
      removeEventListener("dragleave", onDragLeave);
      removeEventListener("drop", onDrop);
    };
  });
  return isOver;
}

/** Shows in one line what the model would receive with the current draft. The line links to the inspector. */
function ContextMeter({ thread, question, policy, version }: { thread: string | null; question: string; policy: Policy | null; version: number }) {
  const { context, isStale } = useAssembled(thread, question, policy, version, 350);
  if (thread === null) return null;
  if (!context) return <div class="meter empty" />;
  const { report } = context;
  const counts = countFates(report);
  const included = (counts.kept ?? 0) + (counts.truncated ?? 0);
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const inspector = formatRoute({ view: "context", thread, turn: null, question: question.trim().slice(0, 2000) || null });
  return (
    <a class={`meter${isStale ? " stale" : ""}`} href={inspector} title={t("open_inspector")}>
      {report.budget !== undefined && <TokenBar report={report} slim />}
      <span class="words">
        {isOffline && (
          <span class="stored">
            {t("in_this_browser")}
            <span class="further"> · </span>
          </span>
        )}
        <span>
          {t("next_request")} <b>{number(report.tokens.total)}</b>
          {report.budget !== undefined && ` / ${number(report.budget)}`} {t("tokens")}
        </span>
        <span class="further">
          {total > 0 && ` · ${t("meter_kept", { count: included, total })}`}
          {(counts.summarised ?? 0) > 0 && ` · ${t("meter_summarised", { count: counts.summarised ?? 0 })}`}
          {(counts.recalled ?? 0) > 0 && ` · ${t("meter_recalled", { count: counts.recalled ?? 0 })}`}
        </span>
      </span>
      <span class="more">{t("show_context")}</span>
    </a>
  );
}
