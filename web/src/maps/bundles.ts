/** Draws lines that share tracks beside each other, so that each can be followed. Pure. */
import type { Line, Network, Point, Station } from "./network";

/** How much of its direction a path may lose at a corner that is drawn with one point; at sharper ones, the sides would meet far away. */
const MIN_COSINE = -0.5;

/** The way between two neighbouring stations, with the colours of the lines that run along it. */
interface Section {
  from: Station;
  to: Station;
  colours: string[];
}

/**
 * Returns the paths of each line of a network in a picture. Lines of different colours that run between the same stations are `gap` apart.
 * The longest line comes first, so that where lines cross, long ones do not hide most of a short one.
 * `place` converts places to positions in the picture.
 */
export function bundled({ lines }: Pick<Network, "lines">, place: (point: Point) => Point, gap: number): { line: Line; paths: Point[][] }[] {
  const sections = new Map<string, Section>();
  for (const { colour, tracks } of lines) {
    for (const track of tracks) {
      // The sections of a track have one direction, that of lines before it, so that lines keep their sides along the way.
      const known = stepsOf(track).map(([from, to]) => isForwards(sections.get(keyOf(from, to)), from)).find((found) => found !== null);
      for (const [from, to] of stepsOf(track)) {
        const key = keyOf(from, to);
        const section = sections.get(key) ?? (known === false ? { from: to, to: from, colours: [] } : { from, to, colours: [] });
        if (!section.colours.includes(colour)) section.colours.push(colour);
        sections.set(key, section);
      }
    }
  }
  const sideOf = (colour: string, from: Station, to: Station): Side | null => {
    const section = sections.get(keyOf(from, to));
    if (!section) return null;
    const [start, end] = [place(section.from), place(section.to)];
    const length = Math.hypot(end.x - start.x, end.y - start.y);
    if (length === 0) return null;
    const rank = section.colours.indexOf(colour) - (section.colours.length - 1) / 2;
    const across = { x: -(end.y - start.y) / length, y: (end.x - start.x) / length };
    const isAlong = isForwards(section, from) ?? true;
    const normal = isAlong ? across : { x: -across.x, y: -across.y };
    return { start: isAlong ? start : end, end: isAlong ? end : start, normal, offset: rank * gap * (isAlong ? 1 : -1) };
  };
  const drawn = lines.map((line) => ({
    line,
    paths: line.tracks.map((track) => joined(stepsOf(track).flatMap(([from, to]) => sideOf(line.colour, from, to) ?? []))),
  }));
  return drawn.sort((one, other) => lengthOf(other.paths) - lengthOf(one.paths));
}

function lengthOf(paths: Point[][]): number {
  return paths.flatMap((path) => path.slice(1).map(({ x, y }, index) => Math.hypot(x - (path[index]?.x ?? x), y - (path[index]?.y ?? y)))).reduce((sum, each) => sum + each, 0);
}

function stepsOf(track: Station[]): [Station, Station][] {
  return track.slice(1).map((to, index) => [track[index] ?? to, to]);
}

/** Lines may stop at different parts of a complex, but run along the same tracks. */
function keyOf(from: Station, to: Station): string {
  return JSON.stringify([from.complex, to.complex].sort());
}

function isForwards(section: Section | undefined, from: Station): boolean | null {
  return section ? section.from.complex === from.complex : null;
}

/** A section in the direction of travel, and how far beside it a line is drawn. */
interface Side {
  start: Point;
  end: Point;
  normal: Point;
  offset: number;
}

/** Joins the sides of sections to a path. */
function joined(sides: Side[]): Point[] {
  return sides.flatMap((side, index) => {
    const [before, after] = [sides[index - 1], sides[index + 1]];
    const start = before && isCorner(before, side) ? [] : [beside(side.start, side.normal, side.offset)];
    const end = after && isCorner(side, after) ? corner(side, after) : beside(side.end, side.normal, side.offset);
    return [...start, end];
  });
}

/** Whether two sections meet in one point. */
function isCorner(one: Side, other: Side): boolean {
  return one.offset === other.offset && one.end.x === other.start.x && one.end.y === other.start.y && cosine(one, other) > MIN_COSINE;
}

function corner(one: Side, other: Side): Point {
  const sum = { x: one.normal.x + other.normal.x, y: one.normal.y + other.normal.y };
  return beside(one.end, sum, one.offset / (1 + cosine(one, other)));
}

function cosine({ normal: one }: Side, { normal: other }: Side): number {
  return one.x * other.x + one.y * other.y;
}

function beside({ x, y }: Point, normal: Point, offset: number): Point {
  return { x: Math.round((x + normal.x * offset) * 10) / 10, y: Math.round((y + normal.y * offset) * 10) / 10 };
}
