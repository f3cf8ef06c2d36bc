/** The parts of a map: the picture, lines, stations and names. All of them are nodes; no text becomes markup. */
import { useRef } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { visibleLine } from "../text/visible";
import { useWidth } from "../ui/width";
import { bundled } from "./bundles";
import { LINE_HEIGHT, leaderEnds, pathOf } from "./geometry";
import type { Label, Size } from "./geometry";
import { colours } from "./network";
import type { Line, Network, Point } from "./network";

/**
 * A picture that is as wide as its container, and at most `maxRatio` times as high as wide. `draw` gets its size in pixels, so that names
 * keep their size on each screen.
 */
export function Picture({ height: wanted, maxRatio = Infinity, label, draw }: { height: number; maxRatio?: number; label: string; draw: (size: Size) => ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const height = width > 0 ? Math.min(wanted, Math.round(width * maxRatio)) : wanted;
  return (
    <div class="map-picture" ref={box} style={{ height: `${height}px` }}>
      {width > 0 && (
        <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
          {draw({ width, height })}
        </svg>
      )}
    </div>
  );
}

/**
 * All lines of a network, faintly unless they are all that is shown; then `width` is that of the lines in pixels, and lines that share tracks
 * are beside each other.
 */
export function Background({ network, place, width }: { network: Network; place: (point: Point) => Point; width?: number }) {
  const isAll = width !== undefined;
  const drawn = isAll ? bundled(network, place, width) : network.lines.map((line) => ({ line, paths: line.tracks.map((track) => track.map(place)) }));
  return (
    <g class={`map-background${isAll ? " all" : ""}`} style={isAll ? { "--width": `${width}px` } : undefined}>
      {drawn.map(({ line, paths }) => (
        <g key={line.id} style={colours(line.colour)}>
          {isAll && paths.map((path, index) => <path key={`edge ${index}`} class="edge" d={pathOf(path)} />)}
          {paths.map((path, index) => (
            <path key={index} d={pathOf(path)} />
          ))}
        </g>
      ))}
    </g>
  );
}

/** A stretch of a line; of a walk if `line` is `null`. `isDirect` if the way between its ends is unknown. */
export interface Stretch {
  points: Point[];
  line: Line | null;
  isDirect?: boolean;
}

/** Stretches of lines, boldly. All casings are below all lines, so that none interrupts a line where lines fork. */
export function Stretches({ stretches }: { stretches: Stretch[] }) {
  const shown = stretches.map(({ points, line, isDirect }) => ({
    path: pathOf(points),
    style: line ? colours(line.colour) : undefined,
    kind: `${line === null ? " walk" : ""}${isDirect ? " direct" : ""}`,
  }));
  return (
    <>
      {shown.map(({ path, style, kind }, index) => (
        <path key={index} class={`map-casing${kind}`} style={style} d={path} />
      ))}
      {["map-edge", "map-stretch"].flatMap((layer) => shown.map(({ path, style, kind }, index) => <path key={`${layer} ${index}`} class={`${layer}${kind}`} style={style} d={path} />))}
    </>
  );
}

export function Dot({ at, kind, name }: { at: Point; kind: "stop" | "change" | "end"; name: string }) {
  return (
    <circle class={`map-dot ${kind}`} cx={at.x} cy={at.y} r={kind === "stop" ? 3.5 : kind === "change" ? 5.5 : 7}>
      <title>{visibleLine(name, 80)}</title>
    </circle>
  );
}

/** The lines that lead from places to their names, below the dots of the places. */
export function Leaders({ labels }: { labels: Label[] }) {
  const paths = labels.flatMap((label) => {
    const ends = leaderEnds(label);
    return ends ? [pathOf(ends)] : [];
  });
  return (
    <g class="map-leaders">
      {["leader-casing", "leader"].flatMap((kind) => paths.map((path, index) => <path key={`${kind} ${index}`} class={kind} d={path} />))}
    </g>
  );
}

/** The names of places, above everything else. */
export function Names({ labels }: { labels: Label[] }) {
  return (
    <g class="map-names">
      <NameTexts labels={labels} layer="name" />
    </g>
  );
}

/** The backgrounds of names. They are below the lines that a map is about, so that none of them looks damaged, and below all names. */
export function NameBackgrounds({ labels }: { labels: Label[] }) {
  return (
    <g class="map-names">
      <NameTexts labels={labels} layer="background" />
    </g>
  );
}

function NameTexts({ labels, layer }: { labels: Label[]; layer: "background" | "name" }) {
  return (
    <>
      {labels.map(({ x, y, lines, anchor, isRequired }, index) => (
        <text key={index} x={x} y={y} text-anchor={anchor} class={`${layer}${isRequired ? " required" : ""}`} aria-hidden={layer === "background" ? "true" : undefined}>
          {lines.length === 1
            ? lines[0]
            : lines.map((line, row) => (
                <tspan key={row} x={x} dy={row === 0 ? 0 : LINE_HEIGHT}>
                  {line.trim()}
                </tspan>
              ))}
        </text>
      ))}
    </>
  );
}

/** The name of a line in its colour. */
export function LineBadge({ name, colour }: { name: string; colour: string }) {
  return (
    <span class="line-badge" style={colours(colour)}>
      {visibleLine(name, 40)}
    </span>
  );
}
