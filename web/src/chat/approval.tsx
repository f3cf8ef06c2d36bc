/** A tool call that is waiting for a decision: what it would do, and how it was decided. */
import { useEffect, useState } from "preact/hooks";
import type { Approval } from "../api/types";
import { may } from "../app/session";
import { dateTime, duration, t } from "../i18n";
import type { Key } from "../i18n";
import { visibleLine } from "../text/visible";
import { pretty } from "../ui/controls";
import { Icon } from "../ui/icons";

export type Decide = (approval: Approval, decision: "approve" | "deny", reason: string) => void;

export function ApprovalCard({ approval, isBusy, onDecide }: { approval: Approval; isBusy: boolean; onDecide: Decide }) {
  const [reason, setReason] = useState("");
  const remaining = useRemaining(approval);
  const isOpen = approval.state === "pending" && remaining > 0;
  const state = approval.state === "pending" && remaining <= 0 ? "expired" : approval.state;
  return (
    <section class={`approval ${state}`} aria-label={t("approval_of", { tool: visibleLine(approval.tool) })}>
      <header>
        <Icon name="key" />
        <b>{t(isOpen ? "approval_needed" : "approval")}</b>
        {!isOpen && <span class="badge">{t(`approval_${state}` as Key)}</span>}
      </header>
      <p class="preview">{visibleLine(approval.preview, 4000)}</p>
      <details>
        <summary>
          {t("exact_call")} <code>{visibleLine(approval.tool, 60)}</code>
        </summary>
        <pre tabIndex={0}>{pretty(approval.arguments)}</pre>
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
          {may("approve") ? (
            <>
              <input
                aria-label={t("reason_to_deny")}
                placeholder={t("reason_to_deny")}
                value={reason}
                maxLength={1000}
                onInput={(event) => setReason(event.currentTarget.value)}
              />
              <button type="button" disabled={isBusy} onClick={() => onDecide(approval, "deny", reason)}>
                {t("deny")}
              </button>
              <button type="button" class="primary" disabled={isBusy} onClick={() => onDecide(approval, "approve", "")}>
                {t("approve")}
              </button>
            </>
          ) : (
            <span>{t("needs_role_approve")}</span>
          )}
        </footer>
      )}
    </section>
  );
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
