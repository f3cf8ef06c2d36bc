/** The controls for a policy. */
import type { Policy } from "../api/types";
import { number, t } from "../i18n";

const MAX_WINDOW = 200;
const MIN_BUDGET = 200;
const MAX_BUDGET = 128_000;

export type Trim = "sliding" | "steps" | "relevance";

/** Returns how a policy selects messages if not all fit. */
export function trimOf(policy: Policy): Trim {
  if (policy.pruning_newest != null) return "relevance";
  return policy.keep_percent != null ? "steps" : "sliding";
}

export function PolicyForm({ policy, onPolicy, onReset }: { policy: Policy; onPolicy: (policy: Policy) => void; onReset: (() => void) | null }) {
  const set = (changes: Partial<Policy>) => onPolicy({ ...policy, ...changes });
  const window = policy.window ?? 20;
  return (
    <form class="policy" onSubmit={(event) => event.preventDefault()}>
      <label class="slider">
        <span>
          {t("window")} <b>{t("n_messages", { count: window })}</b>
        </span>
        <input type="range" aria-label={t("window")} min={1} max={MAX_WINDOW} value={Math.min(window, MAX_WINDOW)} onInput={(event) => set({ window: Number(event.currentTarget.value) })} />
        <Range from={number(1)} to={t("n_messages", { count: MAX_WINDOW })} />
      </label>
      <label class="slider">
        <span>
          {t("budget")} <b>{policy.budget == null ? t("unlimited") : t("n_tokens", { count: policy.budget })}</b>
        </span>
        <input
          type="range"
          aria-label={t("budget")}
          min={0}
          max={100}
          value={budgetToSlider(policy.budget ?? null)}
          aria-valuetext={policy.budget == null ? t("unlimited") : number(policy.budget)}
          onInput={(event) => set({ budget: sliderToBudget(Number(event.currentTarget.value)) })}
        />
        <Range from={t("n_tokens", { count: MIN_BUDGET })} to={t("unlimited")} />
      </label>
      <label class="choice-of">
        <span>{t("recall")}</span>
        <select value={policy.recall_from} onChange={(event) => set({ recall_from: event.currentTarget.value as NonNullable<Policy["recall_from"]> })}>
          <option value="nowhere">{t("recall_nowhere")}</option>
          <option value="thread">{t("recall_thread")}</option>
          <option value="user">{t("recall_user")}</option>
        </select>
      </label>
      <label class="choice-of">
        <span>{t("trimming")}</span>
        <select
          value={trimOf(policy)}
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            set({ pruning_newest: chosen === "relevance" ? 4 : null, keep_percent: chosen === "steps" ? 60 : null });
          }}
        >
          <option value="sliding">{t("trim_sliding")}</option>
          <option value="steps">{t("trim_steps")}</option>
          <option value="relevance">{t("trim_relevance")}</option>
        </select>
      </label>
      <label class="choice-of">
        <span>{t("rendering")}</span>
        <select value={policy.rendering} onChange={(event) => set({ rendering: event.currentTarget.value as NonNullable<Policy["rendering"]> })}>
          <option value="chat">{t("render_chat")}</option>
          <option value="transcript">{t("render_transcript")}</option>
        </select>
      </label>
      <span class="checks">
        <label>
          <input type="checkbox" checked={policy.summary ?? true} onChange={(event) => set({ summary: event.currentTarget.checked })} /> {t("part_summary")}
        </label>
        <label>
          <input type="checkbox" checked={policy.preferences ?? true} onChange={(event) => set({ preferences: event.currentTarget.checked })} /> {t("part_preferences")}
        </label>
      </span>
      {onReset && (
        <button type="button" class="link" onClick={onReset}>
          {t("as_the_assistant")}
        </button>
      )}
    </form>
  );
}


/** The ends of a slider, below it. */
function Range({ from, to }: { from: string; to: string }) {
  return (
    <small class="range" aria-hidden="true">
      <span>{from}</span>
      <span>{to}</span>
    </small>
  );
}

/** The slider is logarithmic, because budgets span several orders of magnitude. Its upper end means no limit. */
export function sliderToBudget(value: number): number | null {
  if (value >= 100) return null;
  const exact = MIN_BUDGET * (MAX_BUDGET / MIN_BUDGET) ** (value / 99);
  const step = 10 ** Math.max(1, Math.floor(Math.log10(exact)) - 1);
  return Math.round(exact / step) * step;
}

export function budgetToSlider(budget: number | null): number {
  if (budget === null) return 100;
  const share = Math.log(Math.max(budget, MIN_BUDGET) / MIN_BUDGET) / Math.log(MAX_BUDGET / MIN_BUDGET);
  return Math.min(99, Math.round(99 * share));
}
