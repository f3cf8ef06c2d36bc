/** The title of a thread, and the actions on the whole thread. */
import { useState } from "preact/hooks";
import type { Thread } from "../api/types";
import { formatRoute } from "../app/router";
import { client, may, messageOf } from "../app/session";
import { t } from "../i18n";
import { visibleLine } from "../text/visible";
import { Confirm, IconButton, saveFile, toast } from "../ui/controls";
import { Icon } from "../ui/icons";
import type { IconName } from "../ui/icons";

export function titleOf(thread: Thread | null): string {
  return visibleLine(thread?.title ?? thread?.key ?? "", 200) || t("untitled");
}

export function ThreadHeader({ thread, onDelete, onRenamed }: { thread: Thread | null; onDelete: () => Promise<void>; onRenamed: (thread: Thread) => void }) {
  const [draft, setDraft] = useState<string | null>(null);
  const [isDeleting, setDeleting] = useState(false);
  if (!thread) return null;
  const rename = async () => {
    const title = draft?.trim() ?? "";
    setDraft(null);
    if (title === (thread.title ?? "")) return;
    try {
      onRenamed(await client.renameThread(thread.id, title || null));
    } catch (error) {
      toast(messageOf(error));
    }
  };
  const exportThread = async () => {
    try {
      saveFile(await client.exportFile(thread.id), `threadkeep-${thread.id}.jsonl`);
    } catch (error) {
      toast(messageOf(error));
    }
  };
  return (
    <header class="thread-header">
      {draft === null ? (
        <h1>
          <span>{titleOf(thread)}</span>
          {may("write") && <IconButton icon="edit" label={t("rename")} onClick={() => setDraft(thread.title ?? "")} />}
        </h1>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void rename();
          }}
        >
          <input
            aria-label={t("title")}
            value={draft}
            maxLength={200}
            ref={(element) => element?.focus()}
            onInput={(event) => setDraft(event.currentTarget.value)}
            onBlur={() => void rename()}
            onKeyDown={(event) => {
              if (event.key === "Escape") {
                event.stopPropagation();
                setDraft(null);
              }
            }}
          />
        </form>
      )}
      <button type="button" class="icon-button thread-menu-button" popovertarget="thread-menu" aria-label={t("actions")} title={t("actions")}>
        <Icon name="more" />
      </button>
      <nav id="thread-menu" popover="auto" aria-label={t("thread")}>
        <a class="button" href={formatRoute({ view: "context", thread: thread.id, turn: null, question: null })}>
          <Icon name="eye" /> <span>{t("context")}</span>
        </a>
        <a class="button" href={formatRoute({ view: "activity", thread: thread.id, turn: null })}>
          <Icon name="activity" /> <span>{t("activity")}</span>
        </a>
        <Action icon="download" label={t("export_thread")} onClick={() => void exportThread()} />
        {may("write") && <Action icon="erase" label={t("delete_thread")} onClick={() => setDeleting(true)} />}
      </nav>
      {isDeleting && (
        <Confirm
          title={t("delete_thread")}
          action={t("delete_for_good")}
          onClose={() => setDeleting(false)}
          onConfirm={onDelete}
        >
          <p>
            <b>{titleOf(thread)}</b>
          </p>
          <p>{t("delete_thread_explained", { count: thread.messages })}</p>
        </Confirm>
      )}
    </header>
  );
}

/** An icon in the header, and an item with its name in the menu of a narrow window. */
function Action({ icon, label, onClick }: { icon: IconName; label: string; onClick: () => void }) {
  return (
    <button type="button" class="icon-button" title={label} onClick={onClick}>
      <Icon name={icon} /> <span>{label}</span>
    </button>
  );
}
