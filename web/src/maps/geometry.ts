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
}

export interface Label extends Point {
  text: string;
  anchor: "start" | "middle" | "end";
  isRequired: boolean;
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const PADDING = 30;
/** The smallest area that is shown, in metres. */
const MIN_EXTENT = 1_600;
export const LABEL_SIZE = 12;
/** The least distance between names. */
const GAP = 4;

/** Returns the function that converts places to positions in the picture, so that all of them are visible. */
export function fit(places: Point[], size: Size): (place: Point) => Point {
  const [xs, ys] = [places.map(({ x }) => x), places.map(({ y }) => y)];
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  const room = { width: Math.max(40, size.width - 2 * PADDING), height: Math.max(40, size.height - 2 * PADDING) };
  const extent = Math.max(right - left, MIN_EXTENT) / room.width;
  const scale = 1 / Math.max(extent, Math.max(bottom - top, MIN_EXTENT) / room.height);
  const middle = { x: (left + right) / 2, y: (top + bottom) / 2 };
  return ({ x, y }) => ({ x: round(size.width / 2 + (x - middle.x) * scale), y: round(size.height / 2 + (y - middle.y) * scale) });
}

export function pathOf(points: Point[]): string {
  return points.map(({ x, y }, index) => `${index === 0 ? "M" : "L"}${x} ${y}`).join("");
}

/**
 * Places the names of places so that they cover neither each other nor, if possible, the paths. A name that would be closer to another
 * point of a path than to its own place is left out, unless it is required.
 */
export function placeLabels(places: Named[], paths: Point[][], size: Size): Label[] {
  const obstacles = paths.flatMap(samples);
  const points = paths.flat();
  const taken: Box[] = [];
  const labels: Label[] = [];
  const ordered = [...places].sort((a, b) => Number(b.isRequired) - Number(a.isRequired));
  for (const place of ordered) {
    const length = Array.from(place.name).length * LABEL_SIZE * (place.isRequired ? 0.6 : 0.54);
    let best: { label: Label; box: Box; cost: number } | null = null;
    for (const [dx, dy, anchor] of POSITIONS) {
      const label: Label = { x: round(place.x + dx), y: round(place.y + dy), text: place.name, anchor, isRequired: place.isRequired };
      const left = anchor === "start" ? label.x : anchor === "end" ? label.x - length : label.x - length / 2;
      const box = { left: left - GAP, right: left + length + GAP, top: label.y - LABEL_SIZE * 0.8, bottom: label.y + LABEL_SIZE * 0.4 };
      const isOutside = box.left < 2 || box.right > size.width - 2 || box.top < 2 || box.bottom > size.height - 2;
      const overlaps = taken.filter((other) => intersects(box, other)).length;
      const own = distance(place, box);
      const isAmbiguous = points.some((point) => (point.x !== place.x || point.y !== place.y) && distance(point, box) < own);
      const cost = (isOutside ? 100 : 0) + overlaps * 30 + (isAmbiguous ? 4 : 0) + obstacles.filter((point) => isIn(point, box)).length;
      if (!best || cost < best.cost) best = { label, box, cost };
    }
    if (!best || (!place.isRequired && best.cost > 3)) continue;
    if (best.cost >= 100) best = inside(best, size);
    taken.push(best.box);
    labels.push(best.label);
  }
  return labels;
}

const POSITIONS: [number, number, Label["anchor"]][] = [
  [11, 4, "start"],
  [-11, 4, "end"],
  [0, -12, "middle"],
  [0, 21, "middle"],
  [9, -8, "start"],
  [9, 16, "start"],
  [-9, -8, "end"],
  [-9, 16, "end"],
];

/** Moves a label to the side until it is inside the picture. */
function inside<T extends { label: Label; box: Box }>(found: T, size: Size): T {
  const { label, box } = found;
  const shift = box.left < 2 ? 2 - box.left : Math.min(0, size.width - 2 - box.right);
  return { ...found, label: { ...label, x: round(label.x + shift) }, box: { ...box, left: box.left + shift, right: box.right + shift } };
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

function isIn({ x, y }: Point, box: Box): boolean {
  return box.left < x && x < box.right && box.top < y && y < box.bottom;
}

/** Returns the distance of a point from a box; 0 inside it. */
function distance({ x, y }: Point, box: Box): number {
  return Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
