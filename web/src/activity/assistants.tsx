/** The assistants: their tools, their graphs, and how they assemble the context for their models. */
import { useMemo, useState } from "preact/hooks";
import type { AgentDetail } from "../api/types";
import { navigate } from "../app/router";
import { agents } from "../app/session";
import { useAgentDetail } from "../context/assembled";
import { trimOf } from "../context/policy";
import { number, t } from "../i18n";
import type { Key } from "../i18n";
import { NetworkPanel } from "../maps/panel";
import { assistantName, modelName } from "../text/names";
import { visibleLine } from "../text/visible";
import { Loading, pretty } from "../ui/controls";
import { Icon } from "../ui/icons";
import { NODE_HEIGHT, readGraph } from "./graph";
import type { Graph, GraphEdge, GraphNode } from "./graph";

/** The size of the text of a graph, and the size below which a graph scrolls rather than shrinks. */
const TEXT_PX = 13;
const MIN_TEXT_PX = 12;

export function AssistantsView({ agent }: { agent: string | null }) {
  const chosen = agent ?? agents.value[0]?.name ?? null;
  const detail = useAgentDetail(chosen);
  return (
    <section class="page assistants" aria-label={t("assistants")}>
      <header class="page-header">
        <h1>{t("assistants")}</h1>
      </header>
      <div class="choice" role="group" aria-label={t("assistant")}>
        {agents.value.map(({ name }) => (
          <button key={name} type="button" aria-pressed={name === chosen} onClick={() => navigate({ view: "assistants", agent: name })}>
            {assistantName(name)}
          </button>
        ))}
      </div>
      {detail ? <Detail key={detail.name} detail={detail} /> : <Loading />}
    </section>
  );
}

function Detail({ detail }: { detail: AgentDetail }) {
  const graph = useMemo(() => readGraph(detail.graph.mermaid), [detail]);
  const [isExpanded, setExpanded] = useState(false);
  const prompt = detail.context.system_prompt ?? "";
  const { context } = detail;
  return (
    <>
      <p class="lead">{visibleLine(detail.description, 600)}</p>
      {detail.has_map && <NetworkPanel agent={detail.name} />}
      <div class="assistant-panels">
        <div class="stack">
          <section class="panel">
            <header>
              <h2>{t("graph_of_assistant")}</h2>
              <p class="figure">
                {visibleLine(detail.graph.name)} v{number(detail.graph.version)}
              </p>
            </header>
            <GraphDrawing graph={graph} />
          </section>
          <section class="panel">
            <header>
              <h2>{t("tools")}</h2>
              <p class="figure">
                <b>{number(detail.tools.length)}</b>
              </p>
            </header>
            {detail.tools.length === 0 && <p class="note">{t("no_tools")}</p>}
            {detail.tools.map((tool) => (
              <details key={tool.name} class="call">
                <summary>
                  <Icon name="tool" size={15} /> <b>{visibleLine(tool.name, 60)}</b>
                  <span class="arguments">{visibleLine(tool.description, 160)}</span>
                </summary>
                <p class="text">{visibleLine(tool.description, 2000)}</p>
                <pre tabIndex={0}>{pretty(tool.parameters)}</pre>
              </details>
            ))}
          </section>
        </div>
        <section class="panel">
          <header>
            <h2>{t("context_policy")}</h2>
          </header>
          <dl class="facts">
            <dt>{t("model")}</dt>
            <dd>{modelName(detail.model)}</dd>
            <dt>{t("window")}</dt>
            <dd>{context.window == null ? t("unlimited") : t("n_messages", { count: context.window })}</dd>
            <dt>{t("budget")}</dt>
            <dd>{context.budget == null ? t("unlimited") : t("n_tokens", { count: context.budget })}</dd>
            <dt>{t("recall")}</dt>
            <dd>{t(context.recall_from === "nowhere" ? "recall_not_added" : (`recall_${context.recall_from}` as Key))}</dd>
            <dt>{t("trimming")}</dt>
            <dd>{t(`trim_${trimOf(context)}`)}</dd>
            <dt>{t("rendering")}</dt>
            <dd>{t(context.rendering === "transcript" ? "render_transcript" : "render_chat")}</dd>
            <dt>{t("part_summary")}</dt>
            <dd>{t((context.summary ?? true) ? "on" : "off")}</dd>
            <dt>{t("part_preferences")}</dt>
            <dd>{t((context.preferences ?? true) ? "on" : "off")}</dd>
          </dl>
          {prompt && (
            <>
              <h3>{t("part_system_prompt")}</h3>
              <pre class="prompt" tabIndex={0}>
                {isExpanded || prompt.length < 700 ? prompt : beginningOf(prompt)}
              </pre>
              {prompt.length >= 700 && (
                <button type="button" class="link" onClick={() => setExpanded(!isExpanded)}>
                  {t(isExpanded ? "show_fewer" : "show_all")}
                </button>
              )}
            </>
          )}
        </section>
      </div>
    </>
  );
}

/** Returns the beginning of a text, cut between words. */
function beginningOf(text: string): string {
  return `${text.slice(0, 600).replace(/\s+\S*$/, "")}…`;
}

function GraphDrawing({ graph }: { graph: Graph }) {
  const at = new Map(graph.nodes.map((node) => [node.name, node]));
  const edgeList = graph.edges.map(({ from, to }) => `${from} → ${to}`).join(", ");
  return (
    <div class="graph-scroll" tabIndex={0} role="region" aria-label={t("graph_of_assistant")}>
      <svg class="graph" viewBox={`0 0 ${graph.width} ${graph.height}`} width={graph.width} height={graph.height} style={{ minWidth: `${(graph.width * MIN_TEXT_PX) / TEXT_PX}px` }} role="img" aria-label={edgeList}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
            <path d="M0 0L8 4L0 8z" />
          </marker>
        </defs>
        {graph.edges.map((edge, index) => {
          const [from, to] = [at.get(edge.from), at.get(edge.to)];
          if (!from || !to) return null;
          return <path key={index} class={edge.isBranch ? "edge branch" : "edge"} d={edgePath(from, to, graph.nodeWidth, startOf(edge, graph.edges, at))} marker-end="url(#arrow)" />;
        })}
        {graph.nodes.map((node) => (
          <g key={node.name} class={`node ${node.kind}`} transform={`translate(${node.x} ${node.y})`}>
            <rect x={-graph.nodeWidth / 2} y={-NODE_HEIGHT / 2} width={graph.nodeWidth} height={NODE_HEIGHT} rx={node.kind === "start" || node.kind === "end" ? NODE_HEIGHT / 2 : 8} />
            <text>{visibleLine(node.name, 20)}</text>
            {node.kind !== "start" && node.kind !== "end" && <title>{t(`node_${node.kind}` as Key)}</title>}
          </g>
        ))}
      </svg>
      <p class="graph-legend">
        {(["start", "model", "tools", "activity", "person", "pure"] as const)
          .filter((kind) => graph.nodes.some((node) => node.kind === kind))
          .map((kind) => (
            <span key={kind}>
              <i class={`node-swatch ${kind}`} aria-hidden="true" /> {t(kind === "start" ? "node_ends" : (`node_${kind}` as Key))}
            </span>
          ))}
        {graph.edges.some(({ isBranch }) => isBranch) && (
          <span>
            <i class="edge-sample" aria-hidden="true" /> {t("edge_branch")}
          </span>
        )}
      </p>
    </div>
  );
}

type Place = { x: number; y: number };

/** The distance between the starts of edges that leave a node downwards, so that they do not merge into the form of an arrowhead. */
const START_GAP = 22;

/** Returns how far from the middle of its node an edge starts: the edges of a node start beside each other, in the order of their ends. */
function startOf(edge: GraphEdge, edges: GraphEdge[], at: Map<string, GraphNode>): number {
  const from = at.get(edge.from);
  const down = edges.flatMap((other) => {
    const to = at.get(other.to);
    return from && to && other.from === edge.from && isNextLayer(from, to) ? [{ edge: other, x: to.x }] : [];
  });
  const place = down.sort((a, b) => a.x - b.x).findIndex((other) => other.edge === edge);
  return place < 0 ? 0 : (place - (down.length - 1) / 2) * START_GAP;
}

function isNextLayer(from: Place, to: Place): boolean {
  return to.y > from.y && to.y - from.y < NODE_HEIGHT * 3;
}

/** Returns the path of an edge: down to the next layer, or around the nodes if the edge leads back or skips a layer. */
function edgePath(from: Place, to: Place, nodeWidth: number, start: number): string {
  const [top, bottom] = [to.y - NODE_HEIGHT / 2 - 2, from.y + NODE_HEIGHT / 2];
  if (isNextLayer(from, to)) {
    const middle = (top + bottom) / 2;
    return `M${from.x + start} ${bottom}C${from.x + start} ${middle} ${to.x} ${middle} ${to.x} ${top}`;
  }
  const isDown = to.y > from.y;
  const side = isDown || from.x < to.x ? -1 : 1;
  const edge = Math.max(...[from, to].map(({ x }) => side * x)) * side + side * (nodeWidth / 2 + 26);
  const [startX, endX] = [from.x + (side * nodeWidth) / 2, to.x + (side * (nodeWidth + 4)) / 2];
  return `M${startX} ${from.y}C${edge} ${from.y} ${edge} ${to.y} ${endX} ${to.y}`;
}
