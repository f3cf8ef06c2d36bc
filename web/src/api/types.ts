/**
 * The types of the API, as the views use them. `schema.d.ts` is generated from the server's OpenAPI document; only what the
 * document does not describe (the report and the stream events) is declared here.
 */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Agent = Schemas["AgentJson"];
export type AgentDetail = Schemas["AgentDetailJson"];
export type Policy = Partial<Schemas["PolicyJson"]>;
export type Thread = Schemas["ThreadJson"];
export type Message = Schemas["MessageJson"];
export type Part = Schemas["PartJson"];
export type Source = Schemas["SourceJson"];
export type Usage = Schemas["UsageJson"];
export type Turn = Schemas["TurnJson"];
export type ToolCallTrace = Schemas["ToolCallTraceJson"];
export type ApprovalTrace = Schemas["ApprovalTraceJson"];
export type Approval = Schemas["ApprovalJson"];
export type ApprovalState = Schemas["StateJson"];
export type Analytics = Schemas["AnalyticsJson"];
export type Imported = Schemas["ImportedJson"];
export type Hit = Schemas["HitJson"];
export type Hits = Schemas["HitsJson"];
export type RecalledTurn = Schemas["RecalledTurnJson"];
export type Recalled = Schemas["RecalledJson"];
export type Erased = Schemas["ErasedJson"];
export type Caller = Schemas["CallerJson"];
export type ContextMessage = Schemas["ContextMessageJson"];
export type Role = Schemas["RoleJson"];
export type NetworkMap = Schemas["NetworkMapJson"];
export type UploadedFile = Schemas["FileJson"];

export type Fate = "kept" | "truncated" | "recalled" | "summarised" | "pruned" | "dropped" | "absent";

export type FateReason =
  | "outside_window"
  | "before_anchor"
  | "over_budget"
  | "less_relevant"
  | "too_long"
  | "pair_broken"
  | "found"
  | "erased"
  | "unreadable";

export interface FateSpan {
  first_seq: number;
  last_seq: number;
  fate: Fate;
  why?: FateReason;
  tokens: number;
}

export interface RecalledFate {
  thread?: string;
  seq: number;
  score: number;
  fate: Fate;
  tokens: number;
}

export const PARTS = [
  "system_prompt",
  "enrichment",
  "preferences",
  "summary",
  "recalled",
  "history",
  "question",
  "framing",
] as const;

export type PartName = (typeof PARTS)[number];

export type TokensByPart = Record<PartName | "total", number>;

/** Explains what a context contains, and what it leaves out. */
export interface Report {
  counter: string;
  budget?: number;
  tokens: TokensByPart;
  messages: FateSpan[];
  recalled?: RecalledFate[];
  question_was_cut?: boolean;
  anchor?: number;
}

export interface AssembledContext {
  messages: ContextMessage[];
  change: number;
  report: Report;
}

/** An event of a running turn. */
export type TurnEvent =
  | { type: "started"; thread: string; turn: string; agent: string }
  | { type: "token"; text: string }
  | { type: "restarted" }
  | { type: "tool_started"; id: string; name: string; arguments: unknown }
  | { type: "tool_finished"; call: ToolCallTrace }
  | { type: "approval"; approval: ApprovalTrace }
  | { type: "ended"; turn: Turn };

/** One effect of a commit. */
export type ThreadEvent =
  | { type: "appended"; messages: Message[] }
  | { type: "replaced"; message: Message }
  | { type: "erased"; seq: number; id: string }
  | { type: "trimmed"; first_seq: number }
  | { type: "document" }
  | { type: "approval"; approval: Approval }
  | { type: "patched" };

/** An update of a thread. `position` is the position from which to resume after it. */
export type ThreadUpdate =
  | { type: "commit"; position: string; change: number; events: ThreadEvent[] }
  | { type: "reset"; position: string }
  | { type: "deleted" }
  | { type: "end"; reason: string };
