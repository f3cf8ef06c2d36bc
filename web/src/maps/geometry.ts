/** Fits places into a picture, and places their names. Pure. */
import type { Point } from "./network";

export interface Size {
  width: number;
  height: number;
}

/** A place with a name. */
export interface Named extends Point {
  name: string;
  /** Whether the name must be shown; other names are left out where they would cover something. */
  isRequired: boolean;
  /** How important the name is: smaller numbers come first. */
  rank?: number;
}

export interface Label extends Point {
  /** The name in one or two lines. */
  lines: string[];
  anchor: "start" | "middle" | "end";
  isRequired: boolean;
  /** The place, if a line has to lead from it to the name. */
  leader: Point | null;
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const PADDING = 30;
/** The padding of a narrow picture, as a share of its width. */
const MAX_PADDING = 0.06;
/** The distance at which places begin to move towards the middle of a network, as a share of that of half of its places. */
const CONDENSED = 0.6;
/** The smallest area that is shown, in metres. */
const MIN_EXTENT = 1_600;
export const LABEL_SIZE = 12;
/** How wide characters are, as a share of their size; and how much wider they are in bold type. */
const CHARACTER_WIDTHS: [string, number][] = [
  ["ijlI.,:;'’| ", 0.32],
  ["ftr-()/", 0.41],
  ["mMwW@%", 0.92],
  ["ABCDEFGHJKLNOPQRSTUVXYZ&", 0.7],
];
const OTHER_WIDTH = 0.61;
const BOLD = 1.12;
/** The height of a line of a name. */
export const LINE_HEIGHT = 14;
/** The radius of the dot of a place. */
const DOT_RADIUS = 6;
/** The room around a name. */
const GAP = 4;
/** The further room between names at the same height, which would otherwise read as one name. */
const BESIDE = 8;
/** The least distance between a name and the side of the picture. */
const EDGE = 2;
/** The least distance between a name and the middle of another place. */
const CLEARANCE = 6;
/** How many times as far as its own place any other place must be from a name beside its place. A name that is centred is clearer. */
const AMBIGUITY = { start: 2, middle: 1.15, end: 2 };
/** Longer names may be broken into two lines, and required ones into three. */
const MAX_LINE = 14;
/** What it costs a name to be on a path: more than any optional name may cost, so that such a name is left out. */
const ON_PATH = 5;
/** What it costs a name to be diagonally beside its place, which says less clearly which place is meant than most leaders. */
const AT_CORNER = 1.6;
/** How near to its place the leader of a name may cross paths. */
const NEAR_PLACE = 16;

/** Returns the corners of the box around places. */
function boxOf(places: Point[]): Box {
  if (places.length === 0) return { left: 0, right: 0, top: 0, bottom: 0 };
  const [across, down] = [places.map(({ x }) => x), places.map(({ y }) => y)];
  return { left: Math.min(...across), right: Math.max(...across), top: Math.min(...down), bottom: Math.max(...down) };
}

/** Returns how high places are, as a share of their width. */
export function ratioOf(places: Point[]): number {
  const { left, right, top, bottom } = boxOf(places);
  return (bottom - top) / Math.max(1, right - left);
}

/**
 * Returns the function that moves places towards their middle, the more the farther they are from it: the long branches of a network would
 * otherwise leave little room for its middle, where most of its lines meet. Directions from the middle stay the same.
 */
export function condense(places: Point[]): (place: Point) => Point {
  const half = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
  const middle = { x: half(places.map(({ x }) => x)), y: half(places.map(({ y }) => y)) };
  const radius = Math.max(1, CONDENSED * half(places.map(({ x, y }) => Math.hypot(x - middle.x, y - middle.y))));
  return ({ x, y }) => {
    const far = Math.hypot(x - middle.x, y - middle.y) / radius;
    const share = far === 0 ? 1 : Math.asinh(far) / far;
    return { x: middle.x + (x - middle.x) * share, y: middle.y + (y - middle.y) * share };
  };
}

/** Returns the function that converts places to positions in the picture, so that all of them are visible. */
export function fit(places: Point[], size: Size): (place: Point) => Point {
  const { left, right, top, bottom } = boxOf(places);
  const padding = Math.min(PADDING, size.width * MAX_PADDING);
  const room = { width: Math.max(40, size.width - 2 * padding), height: Math.max(40, size.height - 2 * padding) };
  const extent = Math.max(right - left, MIN_EXTENT) / room.width;
  const scale = 1 / Math.max(extent, Math.max(bottom - top, MIN_EXTENT) / room.height);
  const middle = { x: (left + right) / 2, y: (top + bottom) / 2 };
  return ({ x, y }) => ({ x: round(size.width / 2 + (x - middle.x) * scale), y: round(size.height / 2 + (y - middle.y) * scale) });
}

export function pathOf(points: Point[]): string {
  return points.map(({ x, y }, index) => `${index === 0 ? "M" : "L"}${x} ${y}`).join("");
}

/**
 * Places the names of places so that they cover neither each other nor, if possible, the paths. A name that could be taken for that of
 * another point is left out, unless it is required.
 */
export function placeLabels(places: Named[], paths: Point[][], size: Size): Label[] {
  const required = places.filter(({ isRequired }) => isRequired);
  const others = places.filter(({ isRequired }) => !isRequired);
  const byRank = (named: Named[]) => [...named].sort((one, other) => (one.rank ?? 0) - (other.rank ?? 0));
  // Each name takes the best position that earlier names have left, so the order decides how many find room.
  const found = [others, others.toReversed()].map(byRank).map((ordered) => placeInOrder([...required, ...ordered], paths, size));
  return found.reduce((best, labels) => (labels.length > best.length ? labels : best));
}

function placeInOrder(places: Named[], paths: Point[][], size: Size): Label[] {
  const obstacles = paths.flatMap(samples);
  const leaders: Point[] = [];
  const points = [...paths.flat(), ...places];
  const taken: Box[] = [];
  const labels: Label[] = [];
  for (const place of places) {
    const others = points.filter(({ x, y }) => Math.hypot(x - place.x, y - place.y) > 1);
    let best: { label: Label; box: Box; cost: number } | null = null;
    for (const lines of breaksOf(place)) {
      for (const position of POSITIONS) {
        const { label, box, middle, shift } = labelAt(place, lines, position, size);
        const { anchor, isFar } = position;
        const isOutside = box.left < EDGE || box.right > size.width - EDGE || box.top < EDGE || box.bottom > size.height - EDGE;
        const overlaps = taken.filter((other) => intersects(box, other) || intersects(beside(box), other)).length;
        // A leader says which place is meant, unless the name is at another one or right below or above it.
        const reach = isFar ? CLEARANCE * 2 : Math.max(distance(place, middle) * AMBIGUITY[anchor], CLEARANCE);
        const isAmbiguous = others.some((point) => distance(point, middle) < reach || distance(point, box) < CLEARANCE || (isFar && isAbove(point, middle)));
        const way = isFar ? leaderOf(label) : [];
        const isCrossing =
          way.some((at) => others.some((point) => Math.hypot(point.x - at.x, point.y - at.y) < CLEARANCE) || leaders.some((other) => Math.hypot(other.x - at.x, other.y - at.y) < CLEARANCE)) ||
          way.some((at) => taken.some((other) => isIn(at, other))) ||
          leaders.some((at) => isIn(at, box));
        const covered = obstacles.filter((point) => isIn(point, box)).length;
        const cost = (isOutside ? 100 : 0) + overlaps * 30 + (isAmbiguous ? 4 : 0) + (isCrossing ? 4 : 0) + (covered > 0 ? ON_PATH + covered : 0) + (isFar ? 1 + Math.hypot(position.x, position.y) / 60 : isCorner(position) ? AT_CORNER : 0) + 0.5 * (lines.length - 1) + Math.abs(shift) / 40;
        if (best && cost >= best.cost) continue;
        const isCut = way.some((at) => Math.hypot(at.x - place.x, at.y - place.y) > NEAR_PLACE && obstacles.some(({ x, y }) => Math.abs(x - at.x) < 4 && Math.abs(y - at.y) < 4));
        const total = cost + (isCut ? ON_PATH : 0);
        if (!best || total < best.cost) best = { label, box, cost: total };
      }
    }
    if (!best || (!place.isRequired && best.cost > 3)) continue;
    if (best.cost >= 100) best = inside(best, size);
    taken.push(best.box);
    if (best.label.leader) leaders.push(...leaderOf(best.label));
    labels.push(best.label);
  }
  return labels;
}

/** Returns about how wide a text is in a wide typeface, as a share of its size. */
function widthOf(text: string): number {
  return Array.from(text).reduce((sum, character) => sum + (CHARACTER_WIDTHS.find(([characters]) => characters.includes(character))?.[1] ?? OTHER_WIDTH), 0);
}

/** Returns a name at a position: its label, the box that it takes, the middle of its text, and how far it was moved inwards. */
function labelAt(place: Named, lines: string[], { x: dx, y: dy, anchor, isFar }: Position, size: Size): { label: Label; box: Box; middle: Box; shift: number } {
  const length = Math.max(...lines.map((line) => widthOf(line.trim()))) * LABEL_SIZE * (place.isRequired ? BOLD : 1);
  const added = (lines.length - 1) * LINE_HEIGHT;
  // A second line makes the name grow away from its place.
  const y = place.y + dy - (dy < 0 ? added : dy < 8 ? added / 2 : 0);
  // A name above or below a place at the side of the picture is moved inwards.
  const reach = Math.max(0, length / 2 - DOT_RADIUS);
  // Positions are rounded, so that a name exactly at the edge could be outside.
  const margin = length / 2 + GAP + EDGE + 0.1;
  const inner = Math.max(margin, Math.min(size.width - margin, place.x)) - place.x;
  const shift = anchor === "middle" ? Math.max(-reach, Math.min(reach, inner)) : 0;
  const label: Label = { x: round(place.x + dx + shift), y: round(y), lines, anchor, isRequired: place.isRequired, leader: isFar ? { x: place.x, y: place.y } : null };
  const left = anchor === "start" ? label.x : anchor === "end" ? label.x - length : label.x - length / 2;
  const box = { left: left - GAP, right: left + length + GAP, top: y - LABEL_SIZE * 0.8, bottom: y + added + LABEL_SIZE * 0.4 };
  const middle = { left, right: left + length, top: y - LABEL_SIZE * 0.35, bottom: y + added - LABEL_SIZE * 0.35 };
  return { label, box, middle, shift };
}

/** Where a name can be, relative to its place. A far one needs a line that leads to it. */
interface Position extends Point {
  anchor: Label["anchor"];
  isFar: boolean;
}

const POSITIONS: Position[] = [
  ...near(11, 4),
  { x: 0, y: -12, anchor: "middle", isFar: false },
  { x: 0, y: 21, anchor: "middle", isFar: false },
  ...near(9, -8),
  ...near(9, 16),
  ...near(30, 4, true),
  ...near(26, -18, true),
  ...near(26, 26, true),
  ...near(34, -10, true),
  ...near(34, 18, true),
];

function near(x: number, y: number, isFar = false): Position[] {
  return [
    { x, y, anchor: "start", isFar },
    { x: -x, y, anchor: "end", isFar },
  ];
}

/** Whether a name is diagonally beside its place. */
function isCorner({ y, anchor, isFar }: Position): boolean {
  return !isFar && anchor !== "middle" && (y < 0 || y > 8);
}

/** Returns the ways to write a name: in one line and, if it is long, in lines of similar length. */
function breaksOf({ name, isRequired }: Named): string[][] {
  if (name.length <= MAX_LINE) return [[name]];
  const ends = [...name.matchAll(/[\s/-]/g)].map(({ index }) => index + 1);
  const endNear = (at: number) => [...ends].sort((a, b) => Math.abs(a - at) - Math.abs(b - at))[0] ?? 0;
  const end = endNear(name.length / 2);
  const found = end < 4 || name.length - end < 4 ? [[name]] : [[name], [name.slice(0, end), name.slice(end)]];
  const [first, second] = [endNear(name.length / 3), endNear((2 * name.length) / 3)];
  if (isRequired && first > 2 && first < second && name.length - second > 2) found.push([name.slice(0, first), name.slice(first, second), name.slice(second)]);
  return found;
}

/** Moves a label to the side until it is inside the picture. */
function inside<T extends { label: Label; box: Box }>(found: T, size: Size): T {
  const { label, box } = found;
  const shift = box.left < EDGE ? EDGE - box.left : Math.min(0, size.width - EDGE - box.right);
  return { ...found, label: { ...label, x: round(label.x + shift) }, box: { ...box, left: box.left + shift, right: box.right + shift } };
}

/** Returns the ends of the line that leads to a name: the place, below whose dot it begins, and beside the first line of the name. */
export function leaderEnds({ x, y, anchor, leader }: Label): [Point, Point] | null {
  if (!leader) return null;
  const to = { x: x + (anchor === "end" ? 3 : -3), y: y - LABEL_SIZE * 0.35 };
  return [leader, to];
}

function leaderOf(label: Label): Point[] {
  return samples(leaderEnds(label) ?? []);
}

/** Returns points along a path, so close to each other that a label on the path covers some. */
function samples(path: Point[]): Point[] {
  return path.flatMap((point, index) => {
    const next = path[index + 1];
    if (!next) return [point];
    const steps = Math.min(200, Math.max(1, Math.ceil(Math.hypot(next.x - point.x, next.y - point.y) / 6)));
    return Array.from({ length: steps }, (_, step) => ({
      x: point.x + ((next.x - point.x) * step) / steps,
      y: point.y + ((next.y - point.y) * step) / steps,
    }));
  });
}

function intersects(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** Returns the box in which no other name may be: names that are not at the same height may be nearer to each other. */
function beside({ left, right, top, bottom }: Box): Box {
  return { left: left - BESIDE, right: right + BESIDE, top: top + LABEL_SIZE * 0.4, bottom: bottom - LABEL_SIZE * 0.4 };
}

function isIn({ x, y }: Point, box: Box): boolean {
  return box.left < x && x < box.right && box.top < y && y < box.bottom;
}

/** Returns the distance of a point from a box; 0 inside it. */
function distance({ x, y }: Point, box: Box): number {
  return Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
}

/** Returns whether a point is above or below a name, so near that the name seems to be centred at it. */
function isAbove(point: Point, name: Box): boolean {
  return point.x > name.left && point.x < name.right && distance(point, name) < LINE_HEIGHT * 2;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
