import { expect, it } from "vitest";
import { readGraph } from "./graph";

const MERMAID = `flowchart TD
    START([START])
    prepare[/prepare/]
    ask{{ask}}
    work[[work]]
    confirm[\\confirm/]
    tidy[tidy]
    END([END])
    START --> prepare
    prepare --> ask
    ask -.-> work
    ask -.-> END
    work --> ask
    ask -.-> confirm
    confirm --> tidy
    tidy --> END
`;

it("reads the graph of an assistant, and lays it out from start to end", () => {
  const { nodes, edges, width, height } = readGraph(MERMAID);
  expect(nodes.map(({ name, kind }) => `${name} ${kind}`).sort()).toEqual(["END end", "START start", "ask model", "confirm person", "prepare activity", "tidy pure", "work tools"]);
  expect(edges.filter(({ isBranch }) => isBranch).length).toBe(3);
  const y = (name: string) => nodes.find((node) => node.name === name)?.y ?? -1;
  expect(y("START")).toBeLessThan(y("prepare"));
  expect(y("ask")).toBeLessThan(y("work"));
  expect(Math.max(...nodes.map((node) => node.y))).toBe(y("END"));
  const places = new Set(nodes.map((node) => `${node.x} ${node.y}`));
  expect(places.size).toBe(nodes.length);
  expect(nodes.every((node) => node.x > 0 && node.x < width && node.y > 0 && node.y < height)).toBe(true);
});

it("ignores what is not a graph", () => {
  expect(readGraph("").nodes).toEqual([]);
  expect(readGraph("flowchart TD\n    <script>alert(1)</script>\n    a --> b\n").edges).toEqual([]);
});
