/** Files that the user attaches to a question: they are added to the user's documents, which assistants can search. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Agent } from "../api/types";
import { randomId } from "../app/ids";
import { client, isAbort, messageOf, noteFailure } from "../app/session";
import { loadForTab, storeForTab } from "../app/storage";
import { number, t } from "../i18n";
import { assistantName } from "../text/names";
import { visibleLine } from "../text/visible";
import { toast } from "../ui/controls";
import { Icon } from "../ui/icons";
import { documentType } from "./document";

/** The tool by which an assistant searches documents. */
const SEARCH_TOOL = "search_documents";
const MAX_FILES = 20;
const MAX_BYTES = 16 * 1024 * 1024;
const POLL_MS = 700;

export interface Attachment {
  key: string;
  name: string;
  state: "uploading" | "processing" | "ready" | "failed";
  /** The progress of the present state, from 0 to 1. */
  share: number;
  problem: string | null;
  /** Whether it failed because it is an image. */
  isImage?: boolean;
  /** The id of the uploaded file. */
  id: string | null;
}

export interface Attachments {
  list: Attachment[];
  isBusy: boolean;
  add: (files: Iterable<File>) => void;
  remove: (key: string) => void;
  /** Empties the list; the documents stay. */
  clear: () => void;
}

export function useAttachments(thread: string | null): Attachments {
  const name = `attachments.${thread ?? "new"}`;
  const [list, setList] = useState<Attachment[]>(() => restored(name));
  const stops = useRef(new Map<string, AbortController>());
  useEffect(() => {
    const running = stops.current;
    return () => {
      for (const stop of running.values()) stop.abort();
    };
  }, []);
  useEffect(() => {
    const ready = list.filter(({ state }) => state === "ready");
    storeForTab(name, ready.length > 0 ? ready : null);
  }, [list, name]);

  const update = (key: string, changes: Partial<Attachment>) => setList((before) => before.map((each) => (each.key === key ? { ...each, ...changes } : each)));
  const upload = async (key: string, file: File) => {
    const stop = new AbortController();
    stops.current.set(key, stop);
    try {
      if (file.size > MAX_BYTES) throw new Error(t("file_too_large", { limit: number(MAX_BYTES / 1024 / 1024) }));
      const type = await documentType(file);
      if (type === "image") {
        update(key, { state: "failed", problem: t("image_not_usable"), isImage: true });
        return;
      }
      const sent = type === null ? file : new File([file], file.name, { type });
      let found = await client.uploadFile(sent, key, (share) => update(key, { share }), stop.signal);
      while (found.status === "uploaded") {
        update(key, { state: "processing", id: found.id, share: found.processed_passages / Math.max(1, found.passages) });
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        found = await client.file(found.id, stop.signal);
      }
      if (found.status === "error") update(key, { state: "failed", id: found.id, problem: found.status_details ?? t("call_failed") });
      else update(key, { state: "ready", id: found.id, share: 1 });
    } catch (error) {
      if (isAbort(error)) return;
      noteFailure(error);
      update(key, { state: "failed", problem: messageOf(error) });
    } finally {
      stops.current.delete(key);
    }
  };
  return {
    list,
    isBusy: list.some(({ state }) => state === "uploading" || state === "processing"),
    add: (files) => {
      const chosen = [...files];
      const room = Math.max(0, MAX_FILES - list.length);
      if (chosen.length > room) toast(t("too_many_files", { limit: MAX_FILES }));
      for (const file of chosen.slice(0, room)) {
        const key = randomId();
        setList((before) => [...before, { key, name: file.name, state: "uploading", share: 0, problem: null, id: null }]);
        void upload(key, file);
      }
    },
    remove: (key) => {
      stops.current.get(key)?.abort();
      const id = list.find((each) => each.key === key)?.id;
      setList((before) => before.filter((each) => each.key !== key));
      if (id) {
        client.deleteFile(id).catch((error: unknown) => {
          noteFailure(error);
          toast(messageOf(error));
        });
      }
    },
    clear: () => {
      setList([]);
      // The view may be replaced before its effects run.
      storeForTab(name, null);
    },
  };
}

/** Returns the attachments that were ready when the page was reloaded. */
function restored(name: string): Attachment[] {
  const kept = loadForTab(name);
  if (!Array.isArray(kept)) return [];
  return kept.filter((each: Partial<Attachment> | null): each is Attachment => typeof each?.key === "string" && typeof each.name === "string" && each.state === "ready");
}

/** Returns a question that names its attachments, so that the assistant knows of them. */
export function withAttachments(question: string, list: Attachment[]): string {
  const names = list.filter(({ state }) => state === "ready").map(({ name }) => `\`${visibleLine(name, 120).replaceAll("`", "'")}\``);
  return names.length === 0 ? question : `${question}\n\n${t("attached", { names: names.join(", ") })}`;
}

function canSearch(agent: Agent | undefined): boolean {
  return agent?.tools.some(({ name }) => name === SEARCH_TOOL) ?? false;
}

export function AttachmentList({ attachments, agents, agent }: { attachments: Attachments; agents: Agent[]; agent: string }) {
  const { list } = attachments;
  const ready = list.filter(({ state }) => state === "ready").length;
  const able = agents.filter(canSearch);
  // Many assistants have the tool; one that is described as a reader of documents is the better suggestion.
  const other = (able.find(({ description }) => /document/i.test(description)) ?? able[0])?.name;
  const isUsable = canSearch(agents.find(({ name }) => name === agent));
  return (
    <>
      {list.length > 0 && (
        <ul class="attachments" aria-label={t("attachments")}>
          {list.map(({ key, name, state, share, problem, isImage }) => (
            <li key={key} class={state === "ready" && !isUsable ? "ready unread" : state}>
              <Icon name={state === "failed" || (state === "ready" && !isUsable) ? "warn" : "document"} size={15} />
              <span class="about">
                <span class="name" title={visibleLine(name)}>
                  {visibleLine(name, 60)}
                </span>
                {(state === "uploading" || state === "processing") && (
                  <>
                    <progress max={1} value={share} aria-label={t(state === "uploading" ? "uploading" : "processing")} />
                    <small>{t(state === "uploading" ? "uploading" : "processing")}</small>
                  </>
                )}
                {problem && (
                  <small role="alert">
                    {visibleLine(problem)} {isImage && isUsable && t("attach_text")}
                  </small>
                )}
              </span>
              <button type="button" class="icon-button small" aria-label={t("remove_file", { name: visibleLine(name, 60) })} title={t("remove")} onClick={() => attachments.remove(key)}>
                <Icon name="close" size={14} />
              </button>
            </li>
          ))}
        </ul>
      )}
      {ready > 0 && !isUsable && (
        <p class="note warn" role="alert">
          {t("cannot_search_documents", { agent: assistantName(agent) })} {other !== undefined && t("choose_other", { agent: assistantName(other) })}
        </p>
      )}
      <p class="visually-hidden" role="status">
        {attachments.isBusy ? t("uploading") : ready > 0 ? t("n_attached", { count: ready }) : ""}
      </p>
    </>
  );
}
