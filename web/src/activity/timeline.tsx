/** The steps of a turn, as bars on a time axis. */
import type { Message, Turn } from "../api/types";
import { duration, number, t } from "../i18n";
import type { Key } from "../i18n";
import { modelName } from "../text/names";
import { visibleLine } from "../text/visible";
import { requestOf } from "../chat/approval";
import { pretty } from "../ui/controls";

export interface Step {
  kind: "question" | "model" | "tool" | "approval" | "answer";
  name: string;
  startMs: number;
  durationMs: number;
  isError: boolean;
  detail: { title: string; text: string }[];
}

/**
 * Returns the steps of a turn. The server stores the durations of the turn and of its tool calls. The rest is the model's time, which is
 * divided evenly among the model calls. Pure.
 */
export function stepsOf(turn: Turn, question: string | null): Step[] {
  const steps: Step[] = [];
  if (question !== null) steps.push({ kind: "question", name: question, startMs: 0, durationMs: 0, isError: false, detail: routeOf(turn) });
  const toolMs = turn.tool_calls.reduce((sum, call) => sum + call.duration_ms, 0);
  const modelCalls = Math.max(turn.usage.model_calls, turn.tool_calls.length > 0 ? 1 : 0);
  const modelMs = Math.max(0, turn.duration_ms - toolMs);
  const callMs = modelCalls > 0 ? modelMs / modelCalls : 0;
  let at = 0;
  let used = 0;
  const model = () => {
    if (used >= modelCalls) return;
    steps.push({ kind: "model", name: modelName(turn.model), startMs: at, durationMs: callMs, isError: false, detail: [] });
    at += callMs;
    used += 1;
  };
  // A model call precedes each tool call, as long as one remains for the answer.
  turn.tool_calls.forEach((call, index) => {
    const left = modelCalls - used - 1;
    if (left > 0 || index === 0) model();
    const detail = [{ title: "arguments", text: pretty(call.arguments) }];
    if (call.error != null) detail.push({ title: "error", text: call.error });
    else if (call.result != null) detail.push({ title: "result", text: pretty(call.result) });
    steps.push({ kind: "tool", name: call.name + (call.cached ? " ⤺" : ""), startMs: at, durationMs: call.duration_ms, isError: !call.ok, detail });
    at += call.duration_ms;
  });
  for (const approval of turn.approvals) {
    steps.push({ kind: "approval", name: requestOf(approval), startMs: at, durationMs: 0, isError: false, detail: [{ title: "arguments", text: pretty(approval.arguments) }] });
  }
  while (used < modelCalls) model();
  steps.push({ kind: "answer", name: turn.reply, startMs: turn.duration_ms, durationMs: 0, isError: turn.status === "failed", detail: [] });
  return steps;
}

/** Returns where the question was routed to, for the details of its step. */
function routeOf({ routed_agent: agent, confidence }: Turn): Step["detail"] {
  if (!agent) return [];
  const share = confidence == null ? "" : ` (${t("confidence", { percent: number(confidence * 100) })})`;
  return [{ title: "routed_to", text: visibleLine(agent) + share }];
}

/** Returns a key that does not change when the question is loaded later and inserted first, so that an open step stays open. */
function keyOf({ kind }: Step, before: Step[]): string {
  return `${kind}-${before.filter((step) => step.kind === kind).length}`;
}

/** Returns how long a step took. A question and an answer take no time: they are the ends of the turn. */
function timeOf({ kind, durationMs }: Step): string {
  if (kind === "question") return t("step_start");
  if (kind === "answer") return t("step_end");
  return durationMs > 0 ? (kind === "model" ? "≈ " : "") + duration(Math.round(durationMs)) : "";
}

export function Timeline({ turn, question }: { turn: Turn; question: Message | null }) {
  const steps = stepsOf(turn, question?.text ?? null);
  const totalMs = Math.max(1, turn.duration_ms);
  return (
    <>
      <ol class="timeline">
        {steps.map((step, index) => (
          <li key={keyOf(step, steps.slice(0, index))} class={`${step.kind}${step.isError ? " error" : ""}`}>
            <details>
              <summary>
                <span class="kind">{t(`step_${step.kind}` as Key)}</span>
                <span class="name" title={visibleLine(step.name, 1000)}>
                  {visibleLine(step.name, 160)}
                </span>
                <span class="time">{timeOf(step)}</span>
                <span class="track" aria-hidden="true">
                  <i style={{ left: `${Math.min(99, (100 * step.startMs) / totalMs)}%`, width: `${Math.max(0.7, (100 * step.durationMs) / totalMs)}%` }} />
                </span>
              </summary>
              {(step.kind === "question" || step.detail.length === 0) && <p class="text">{step.name}</p>}
              {step.detail.map(({ title, text }) => (
                <div key={title}>
                  <p class="label">{t(title as Key)}</p>
                  <pre tabIndex={0}>{text}</pre>
                </div>
              ))}
            </details>
          </li>
        ))}
      </ol>
      <p class="timeline-axis" aria-hidden="true">
        <span>0</span>
        <span>{duration(turn.duration_ms)}</span>
      </p>
      <p class="note">{t("timeline_note", { calls: number(turn.usage.model_calls) })}</p>
    </>
  );
}
