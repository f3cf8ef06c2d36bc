/** How models and assistants are named. */
import { t } from "../i18n";
import { visibleLine } from "./visible";

/** The model that answers without a language model. */
const BUILT_IN = "offline";

export function modelName(model: string): string {
  return model === BUILT_IN ? t("built_in_model") : visibleLine(model);
}

/** Names who answered: the assistant, and the agent that it chose, if this is not an assistant of its own. */
export function speakerName(agent: string | null | undefined, assistant: string, assistants: string[]): string {
  if (!agent || agent === assistant) return visibleLine(assistant || t("assistant"));
  return assistants.includes(agent) || !assistant ? visibleLine(agent) : `${visibleLine(assistant)} · ${visibleLine(agent)}`;
}
