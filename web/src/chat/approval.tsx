/** A tool call that is waiting for a decision: what it would do, and how it was decided. */
import { useEffect, useState } from "preact/hooks";
import type { Approval } from "../api/types";
import { may } from "../app/session";
import { dateTime, duration, t } from "../i18n";
import type { Key } from "../i18n";
import { heading, visibleLine } from "../text/visible";
import { pretty } from "../ui/controls";
import { Icon } from "../ui/icons";

/** The lines of a preview that are shown: the request, and what it would change. */
const MAX_CHANGES = 100;

export type Decide = (approval: Approval, decision: "approve" | "deny", reason: string) => void;

type Requested = Pick<Approval, "tool" | "arguments" | "preview">;

/** Returns the lines of a call's preview; none if the preview only repeats the call. */
function previewOf({ tool, preview }: Requested): string[] {
  return preview && !preview.startsWith(`${tool}(`) ? preview.split("\n").filter((line) => line.trim() !== "") : [];
}

/** Says in words what a call would do: the first line of its preview if it has one, otherwise the name of the tool and its arguments. */
export function requestOf(requested: Requested): string {
  const { tool, arguments: args } = requested;
  const [line] = previewOf(requested);
  if (line !== undefined) return visibleLine(line, 4000);
  const given = (args as Record<string, unknown> | null) ?? {};
  const { name, value, ...others } = given;
  // A tool that sets something names it and gives its value.
  const pairs = Object.entries(name !== undefined && value !== undefined ? { [pretty(name)]: value, ...others } : given);
  const words = heading(tool);
  const list = pairs.map(([key, member]) => `${key} = ${typeof member === "string" ? member : JSON.stringify(member)}`).join(", ");
  return visibleLine(`${words}${list && `: ${list}`}`, 4000);
}

export function ApprovalCard({ approval, isBusy, onDecide }: { approval: Approval; isBusy: boolean; onDecide: Decide }) {
  /** The reason that is being written; `null` until the user chooses to deny. */
  const [reason, setReason] = useState<string | null>(null);
  const remaining = useRemaining(approval);
  const isOpen = approval.state === "pending" && remaining > 0;
  const state = approval.state === "pending" && remaining <= 0 ? "expired" : approval.state;
  const changes = previewOf(approval).slice(1, MAX_CHANGES);
  return (
    <section class={`approval ${state}`} aria-label={t("approval_of", { tool: visibleLine(approval.tool) })}>
      <header>
        <Icon name="shield" />
        <b>
          {/* A command breaks between its words only: `--` and what follows belong together. */}
          {requestOf(approval)
            .split(" ")
            .flatMap((word, index) => [index > 0 && " ", <span key={index}>{word}</span>])}
        </b>
        {!isOpen && <span class="badge">{t(`approval_${state}` as Key)}</span>}
      </header>
      {changes.length > 0 && (
        <ul class="changes" aria-label={t("would_change")}>
          {changes.map((line, index) => (
            <li key={index}>{visibleLine(line, 1000)}</li>
          ))}
        </ul>
      )}
      <details>
        <summary>{t("exact_call")}</summary>
        <pre tabIndex={0}>
          {visibleLine(approval.tool, 60)} {pretty(approval.arguments)}
        </pre>
      </details>
      {approval.by && (
        <p class="by">
          {t("decided_by", { name: visibleLine(approval.by) })} {approval.decided_at && dateTime(approval.decided_at)}
          {approval.reason && `: ${visibleLine(approval.reason, 500)}`}
        </p>
      )}
      {isOpen && (
        <footer>
          <span class="expires">{t("expires_in", { time: duration(remaining) })}</span>
          {!may("approve") ? (
            <span>{t("needs_role_approve")}</span>
          ) : reason === null ? (
            <>
              <button type="button" disabled={isBusy} onClick={() => setReason("")}>
                {t("deny")}
              </button>
              <button type="button" class="primary" disabled={isBusy} onClick={() => onDecide(approval, "approve", "")}>
                {t("approve")}
              </button>
            </>
          ) : (
            <>
              <input
                ref={focus}
                aria-label={t("reason_to_deny")}
                placeholder={t("reason_to_deny")}
                value={reason}
                maxLength={1000}
                onInput={(event) => setReason(event.currentTarget.value)}
              />
              <button type="button" disabled={isBusy} onClick={() => setReason(null)}>
                {t("cancel")}
              </button>
              <button type="button" class="danger" disabled={isBusy} onClick={() => onDecide(approval, "deny", reason)}>
                {t("deny")}
              </button>
            </>
          )}
        </footer>
      )}
    </section>
  );
}

/** A function of its own, so that the field takes the focus only when it appears. */
function focus(element: HTMLElement | null): void {
  element?.focus();
}

/** Returns the time that is left to decide on an approval, in milliseconds. */
function useRemaining(approval: Approval): number {
  const expires = new Date(approval.expires_at).getTime();
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (approval.state !== "pending") return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [approval.state, approval.expires_at]);
  return Math.max(0, Math.floor((expires - now) / 1000) * 1000);
}
