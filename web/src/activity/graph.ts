/** The graph of an assistant: read from its Mermaid flowchart, and laid out in layers. Pure. */
export type NodeKind = "start" | "end" | "pure" | "model" | "tools" | "activity" | "person";

export interface GraphNode {
  name: string;
  kind: NodeKind;
  x: number;
  y: number;
}

export interface GraphEdge {
  from: string;
  to: string;
  isBranch: boolean;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  width: number;
  height: number;
  nodeWidth: number;
}

const MAX_NODE_WIDTH = 150;
const MIN_NODE_WIDTH = 90;
export const NODE_HEIGHT = 40;
const GAP_X = 46;
/** The room on each side, for edges that lead around nodes. */
const MARGIN = 30;
const GAP_Y = 46;
const MAX_NODES = 200;

const SHAPES: [RegExp, NodeKind][] = [
  [/^\(\[START\]\)$/, "start"],
  [/^\(\[END\]\)$/, "end"],
  [/^\{\{.*\}\}$/, "model"],
  [/^\[\[.*\]\]$/, "tools"],
  [/^\[\/.*\/\]$/, "activity"],
  [/^\[\\.*\/\]$/, "person"],
  [/^\[.*\]$/, "pure"],
];

export function readGraph(mermaid: string): Graph {
  const kinds = new Map<string, NodeKind>();
  const edges: GraphEdge[] = [];
  for (const line of mermaid.split("\n").slice(1)) {
    const edge = /^\s*([\w.-]+) (-->|-\.->) ([\w.-]+)\s*$/.exec(line);
    if (edge) {
      edges.push({ from: edge[1] ?? "", to: edge[3] ?? "", isBranch: edge[2] !== "-->" });
      continue;
    }
    const node = /^\s*(\w[\w.-]*?)([([{].*)$/.exec(line.trimEnd());
    const kind = node && SHAPES.find(([shape]) => shape.test(node[2] ?? ""))?.[1];
    if (node && kind && kinds.size < MAX_NODES) kinds.set(node[1] ?? "", kind);
  }
  return layOut(kinds, edges.filter(({ from, to }) => kinds.has(from) && kinds.has(to)));
}

function layOut(kinds: Map<string, NodeKind>, edges: GraphEdge[]): Graph {
  const layers = layersOf([...kinds.keys()], edges);
  const rows: string[][] = [];
  for (const name of kinds.keys()) (rows[layers.get(name) ?? 0] ??= []).push(name);
  const widest = Math.max(1, ...rows.map((row) => row.length));
  const longest = Math.max(...[...kinds.keys()].map(({ length }) => length), 0);
  const nodeWidth = Math.min(MAX_NODE_WIDTH, Math.max(MIN_NODE_WIDTH, 24 + 8 * longest));
  const width = widest * (nodeWidth + GAP_X) - GAP_X + MARGIN * 2;
  const nodes = rows.flatMap((row, layer) =>
    row.map((name, index) => ({
      name,
      kind: kinds.get(name) ?? "pure",
      x: width / 2 + (index - (row.length - 1) / 2) * (nodeWidth + GAP_X),
      y: GAP_Y / 2 + NODE_HEIGHT / 2 + layer * (NODE_HEIGHT + GAP_Y),
    })),
  );
  return { nodes, edges, width, height: rows.length * (NODE_HEIGHT + GAP_Y), nodeWidth };
}

/** Returns the layer of each node: the length of the longest path to it, without edges that lead back. */
function layersOf(names: string[], edges: GraphEdge[]): Map<string, number> {
  const state = new Map<string, "open" | "done">();
  const order: string[] = [];
  const back = new Set<GraphEdge>();
  const visit = (name: string) => {
    state.set(name, "open");
    for (const edge of edges.filter(({ from }) => from === name)) {
      if (state.get(edge.to) === "open") back.add(edge);
      else if (!state.has(edge.to)) visit(edge.to);
    }
    state.set(name, "done");
    order.unshift(name);
  };
  for (const name of names) if (!state.has(name)) visit(name);
  const layers = new Map<string, number>(names.map((name) => [name, 0]));
  for (const name of order) {
    for (const edge of edges) {
      if (edge.from === name && !back.has(edge)) layers.set(edge.to, Math.max(layers.get(edge.to) ?? 0, (layers.get(name) ?? 0) + 1));
    }
  }
  const last = Math.max(...layers.values(), 0);
  if (layers.has("END")) layers.set("END", Math.max(last, 1));
  return layers;
}
