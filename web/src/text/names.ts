/** How models and assistants are named. */
import type { Message } from "../api/types";
import { turnOf } from "../chat/turn";
import { t } from "../i18n";
import { heading, visibleLine } from "./visible";

/** The model that answers without a language model. It uses no tokens and costs nothing. */
const BUILT_IN = "offline";

export function modelName(model: string): string {
  return model === BUILT_IN ? t("built_in_model") : visibleLine(model);
}

export function isBuiltIn(model: string): boolean {
  return model === BUILT_IN;
}

/** Names an assistant: its name with an initial capital. */
export function assistantName(name: string): string {
  const shown = visibleLine(name, 60);
  const [first = ""] = shown;
  return first.toLocaleUpperCase() + shown.slice(first.length);
}

/**
 * Names who wrote a message. The answer of a turn is by the assistant, and by one of its agents if it names one; other messages, such as
 * imported ones, are by whom they name.
 */
export function speakerName(message: Message, assistant: string, assistants: string[]): string {
  const { agent, author } = message;
  if (agent && assistants.includes(agent)) return assistantName(agent);
  const name = assistantName(assistant || t("assistant"));
  if (turnOf(message) !== null) return agent && agent !== assistant ? `${name} · ${inWords(agentName(agent, new Map()))}` : name;
  const other = agent ?? author;
  return other ? visibleLine(other) : name;
}

/** Returns an id in capitals as words: `HAMMERSMITH_CITY` as "Hammersmith city". */
function inWords(name: string): string {
  return /^[A-Z_]+$/.test(name) ? heading(name.toLowerCase()) : name;
}

/** The agents of an assistant that are not named after a line: for questions about its whole network, and for answers of several agents. */
const AGENTS: Record<string, "agent_status" | "agent_collaborative"> = { STATUS: "agent_status", COLLABORATIVE: "agent_collaborative" };

/**
 * Names an agent. Those of lines have the ids of their lines in capitals, with underscores; `lines` are the names of lines by their ids.
 * Other messages, such as imported ones, may name a whole assistant.
 */
export function agentName(name: string, lines: Map<string, string>): string {
  const known = Object.hasOwn(AGENTS, name) ? AGENTS[name] : undefined;
  if (known) return t(known);
  const line = /^[A-Z_]+$/.test(name) ? lines.get(name.toLowerCase().replaceAll("_", "-")) : undefined;
  return line === undefined ? assistantName(name) : visibleLine(line, 60);
}
