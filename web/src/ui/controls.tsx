/** Small controls that several views use. */
import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { t } from "../i18n";
import { Icon } from "./icons";
import type { IconName } from "./icons";

export function IconButton(props: {
  icon: IconName;
  label: string;
  onClick: () => void;
  disabled?: boolean | undefined;
  pressed?: boolean | undefined;
  class?: string;
}) {
  return (
    <button
      type="button"
      class={`icon-button ${props.class ?? ""}`}
      aria-label={props.label}
      title={props.label}
      aria-pressed={props.pressed}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  );
}

/** A dialog over the page. Escape closes it; the browser keeps the focus inside, and returns it afterwards. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean; size?: "large" }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={props.size ?? (props.wide ? "wide" : undefined)}
      aria-labelledby={title}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) props.onClose();
      }}
    >
      <div class="dialog-body">
        <header>
          <h2 id={title}>{props.title}</h2>
          <IconButton icon="close" label={t("close")} onClick={props.onClose} />
        </header>
        {props.children}
      </div>
    </dialog>
  );
}

/** Asks for confirmation of something that cannot be undone. The text says what is removed and what remains. */
export function Confirm(props: {
  title: string;
  children: ComponentChildren;
  action: string;
  onConfirm: () => Promise<void> | void;
  onClose: () => void;
}) {
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const confirm = async () => {
    setBusy(true);
    try {
      await props.onConfirm();
      props.onClose();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      {props.children}
      {problem && <Problem text={problem} />}
      <footer>
        <button type="button" onClick={props.onClose}>
          {t("cancel")}
        </button>
        <button type="button" class="danger" disabled={isBusy} onClick={() => void confirm()}>
          {props.action}
        </button>
      </footer>
    </Dialog>
  );
}

export function Problem({ text, children }: { text: string; children?: ComponentChildren }) {
  return (
    <div class="problem" role="alert">
      <Icon name="warn" />
      <p>{text}</p>
      {children}
    </div>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} size={40} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Parts of a line with dots between them. A dot that would be at the beginning of a line is hidden. */
export function Parts({ children }: { children: ComponentChildren[] }) {
  return (
    <span class="joined">
      {children.map((part, index) => part !== null && part !== undefined && part !== false && part !== "" && <span key={index}>{part}</span>)}
    </span>
  );
}

export function Loading() {
  return (
    <p class="loading" role="status">
      {t("loading")}
    </p>
  );
}

const toastText = signal<string | null>(null);
let toastTimer: ReturnType<typeof setTimeout> | undefined;

export function toast(text: string): void {
  toastText.value = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toastText.value = null), 5000);
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toastText.value && <p>{toastText.value}</p>}
    </div>
  );
}

/** Saves a file on the user's machine. */
export function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Formats data as indented JSON; returns text unchanged. */
export function pretty(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
