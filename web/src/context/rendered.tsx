/** The exact text that the model receives, message by message. */
import { useMemo, useState } from "preact/hooks";
import type { AssembledContext, ContextMessage, PartName, Policy } from "../api/types";
import { number, t } from "../i18n";
import type { Key } from "../i18n";
import { toast, pretty } from "../ui/controls";
import { Icon } from "../ui/icons";
import { partName } from "./bar";

const FIRST = 8;
const LAST = 8;

export interface Section {
  part: PartName;
  text: string;
}

/** Returns the sections of a rendered message, with the part of the context that each belongs to. Pure. */
export function sectionsOf(message: ContextMessage, index: number, count: number, policy: Policy): Section[] {
  const text = textOf(message);
  if (message.seq != null) return [{ part: "history", text }];
  if (message.role === "user") return [{ part: index === count - 1 ? "question" : "history", text }];
  if (message.role !== "system") return [{ part: "history", text }];
  // Only the first message contains the instructions; a later one contains what was recalled for the question.
  if (index > 0) return [{ part: "recalled", text }];
  const prompt = policy.system_prompt ?? "";
  if (prompt && text.startsWith(prompt)) {
    const rest = text.slice(prompt.length);
    const sections: Section[] = [{ part: "system_prompt", text: prompt }];
    if (rest.trim()) sections.push({ part: policy.summary === false ? "preferences" : "summary", text: rest.trim() });
    return sections;
  }
  return [{ part: policy.summary === false ? "preferences" : "summary", text }];
}

export function textOf(message: ContextMessage): string {
  const parts = message.parts.map((part) => {
    if ("text" in part) return part.text;
    if ("reasoning" in part) return part.reasoning;
    if ("tool_call" in part) return `${part.tool_call.name}(${JSON.stringify(part.tool_call.arguments)})`;
    if ("tool_result" in part) return part.tool_result.output;
    if ("image" in part) return part.image.description ?? part.image.url;
    return pretty(part.raw.json);
  });
  return parts.join("\n");
}

export function RenderedContext({ context, policy }: { context: AssembledContext; policy: Policy }) {
  const [isExpanded, setExpanded] = useState(false);
  const { messages } = context;
  const all = useMemo(() => messages.map((message, index) => ({ message, sections: sectionsOf(message, index, messages.length, policy) })), [messages, policy]);
  const hidden = isExpanded || all.length <= FIRST + LAST + 1 ? 0 : all.length - FIRST - LAST;
  const copy = () => {
    const clipboard = navigator.clipboard as Clipboard | undefined;
    void clipboard?.writeText(JSON.stringify(messages, null, 2)).then(() => toast(t("copied")));
  };
  return (
    <section class="panel rendered">
      <header>
        <h2>{t("what_the_model_gets")}</h2>
        <button type="button" class="link" onClick={copy}>
          <Icon name="copy" size={14} /> {t("copy_json")}
        </button>
      </header>
      <ol>
        {all.map(({ message, sections }, index) =>
          hidden > 0 && index >= FIRST && index < all.length - LAST ? (
            index === FIRST && (
              <li key="hidden" class="hidden">
                <button type="button" class="link" onClick={() => setExpanded(true)}>
                  {t("show_n_more", { count: hidden })}
                </button>
              </li>
            )
          ) : (
            <li key={index}>
              <p class="who">
                {t(`role_${message.role}` as Key)}
                {message.seq != null && <span> #{number(message.seq)}</span>}
              </p>
              <div>
                {sections.map(({ part, text }, position) => (
                  <p key={position} class={`section part ${part}`} tabIndex={0}>
                    <span class="visually-hidden">{partName(part)}: </span>
                    {text}
                  </p>
                ))}
              </div>
            </li>
          ),
        )}
      </ol>
    </section>
  );
}
