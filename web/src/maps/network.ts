/** The network of an assistant: its stations and lines, indexed for drawing. Pure. */
import type { NetworkMap } from "../api/types";

export interface Point {
  x: number;
  y: number;
}

export interface Station extends Point {
  index: number;
  id: string;
  complex: string;
  name: string;
}

export interface Line {
  id: string;
  /** The name in full, or with the id if several lines share the name. */
  label: string;
  name: string;
  colour: string;
  /** The stations at which its trains stop. */
  patterns: Station[][];
  /** The stations that they pass, for drawing: fast trains run along those at which they do not stop. */
  tracks: Station[][];
}

/** A ride on the map: its stations in order of travel. */
export interface Way {
  stations: Station[];
  /** The stations that the ride passes. */
  track: Station[];
  /** `null` if the network does not contain the line, or the line does not connect the stations: the ends are then connected directly. */
  line: Line | null;
}

const METRES_PER_DEGREE = 111_320;
const DEFAULT_COLOUR = "#808183";
/** How much longer than a straight line the way of a slower train may be, to be that of a fast train. Otherwise it is that of a loop. */
const MAX_DETOUR = 1.2;
/** The luminance of colours that are nearly black. */
const NEAR_BLACK = 0.02;

export class Network {
  readonly stations: Station[];
  readonly lines: Line[];
  private readonly byId = new Map<string, Station>();

  constructor(map: NetworkMap) {
    const middle = map.stations.reduce((sum, { latitude }) => sum + latitude, 0) / Math.max(1, map.stations.length);
    const narrowing = Math.cos((middle * Math.PI) / 180);
    this.stations = map.stations.map(({ id, complex, name, latitude, longitude }, index) => ({
      index,
      id,
      complex,
      name,
      x: longitude * narrowing * METRES_PER_DEGREE,
      y: -latitude * METRES_PER_DEGREE,
    }));
    for (const station of this.stations) this.byId.set(station.id, station);
    const count = new Map<string, number>();
    for (const { name } of map.lines) count.set(name, (count.get(name) ?? 0) + 1);
    this.lines = map.lines.map(({ id, name, full_name, colour, patterns }) => ({
      id,
      name,
      label: full_name ?? ((count.get(name) ?? 0) > 1 && id !== name ? `${name} (${id})` : name),
      colour: /^#[0-9a-f]{6}$/i.test(colour) ? colour : DEFAULT_COLOUR,
      patterns: patterns.map((pattern) => pattern.flatMap((index) => this.stations[index] ?? [])).filter((pattern) => pattern.length > 1),
      tracks: [],
    }));
    for (const line of this.lines) {
      const all = this.linesNamed(line.name).flatMap(({ patterns }) => patterns);
      line.tracks = line.patterns.map((pattern) => trackOf(pattern, all));
    }
  }

  /** Finds a station by its id or, if the id is unknown, by the id of its complex or its name. */
  find(id: string, name = ""): Station | null {
    return this.byId.get(id) ?? this.stations.find(({ complex }) => id !== "" && complex === id) ?? this.stations.find((station) => name !== "" && station.name === name) ?? null;
  }

  has(id: string): boolean {
    return this.byId.has(id);
  }

  /** Returns the lines with a name or id. */
  linesNamed(name: string): Line[] {
    return this.lines.filter((line) => line.name === name || line.id === name);
  }

  /**
   * Returns the line with a name at stations with the given ids. Of several lines with the name, this is the one that has it as its id or,
   * if there is none, the one that stops at the stations; `null` if none does.
   */
  lineNamed(name: string, ids: string[]): Line | null {
    const named = this.linesNamed(name);
    if (named.length < 2) return named[0] ?? null;
    const stations = ids.flatMap((id) => this.find(id) ?? []);
    const stops = ({ patterns }: Line) => stations.length > 0 && patterns.some((pattern) => stations.every((station) => positionOf(pattern, station) >= 0));
    return named.find(({ id }) => id === name) ?? named.find(stops) ?? null;
  }

  /** Returns the names of the lines that stop at a station or elsewhere in its complex, without repetitions. */
  linesAt(station: Station): Line[] {
    const found = new Map<string, Line>();
    for (const line of this.lines) {
      const stops = line.patterns.some((pattern) => pattern.some(({ complex }) => complex === station.complex));
      if (stops && !found.has(line.name)) found.set(line.name, line);
    }
    return [...found.values()];
  }

  /** Returns the shortest ride on a line between two stations. */
  way(lineName: string, from: Station, to: Station): Way {
    let best: Way = { stations: [from, to], track: [from, to], line: null };
    for (const line of this.linesNamed(lineName)) {
      for (const pattern of line.patterns) {
        const [start, end] = [positionOf(pattern, from), positionOf(pattern, to)];
        if (start < 0 || end < 0 || start === end) continue;
        if (best.line !== null && best.stations.length <= Math.abs(end - start) + 1) continue;
        const stations = start < end ? pattern.slice(start, end + 1) : pattern.slice(end, start + 1).reverse();
        best = { stations, track: stations, line };
      }
    }
    const all = this.linesNamed(lineName).flatMap(({ patterns }) => patterns);
    return best.line ? { ...best, track: trackOf(best.stations, all) } : best;
  }
}

/** Returns the stations that a train passes between its stops, known from other patterns that stop there. */
function trackOf(stops: Station[], patterns: Station[][]): Station[] {
  return stops.flatMap((stop, index) => {
    const next = stops[index + 1];
    return next ? [stop, ...passedBetween(stop, next, patterns)] : [stop];
  });
}

function passedBetween(from: Station, to: Station, patterns: Station[][]): Station[] {
  let best: Station[] = [];
  for (const pattern of patterns) {
    const [start, end] = [pattern.indexOf(from), pattern.indexOf(to)];
    if (start < 0 || end < 0 || Math.abs(end - start) - 1 <= best.length) continue;
    const way = start < end ? pattern.slice(start, end + 1) : pattern.slice(end, start + 1).reverse();
    if (lengthOf(way) <= lengthOf([from, to]) * MAX_DETOUR) best = way.slice(1, -1);
  }
  return best;
}

function lengthOf(way: Point[]): number {
  return way.reduce((sum, point, index) => sum + (index === 0 ? 0 : Math.hypot(point.x - (way[index - 1]?.x ?? 0), point.y - (way[index - 1]?.y ?? 0))), 0);
}

function positionOf(pattern: Station[], station: Station): number {
  const exact = pattern.indexOf(station);
  return exact >= 0 ? exact : pattern.findIndex(({ complex }) => complex === station.complex);
}

/** Returns the relative luminance of a colour, from 0 to 1. */
function luminance(colour: string): number {
  const channel = (at: number) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

/** Returns black or white: the one that is easier to read on a colour. */
export function textOn(colour: string): string {
  return luminance(colour) > 0.179 ? "#000000" : "#ffffff";
}

/** Makes a colour darker or lighter until its luminance is acceptable. Its hue and saturation stay, so that similar colours stay different. */
function shadedUntil(colour: string, step: number, isAcceptable: (luminance: number) => boolean): string {
  const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  const [most, least] = [Math.max(...channels), Math.min(...channels)];
  const middle = (most + least) / 2;
  const range = most - least;
  /** Each channel as a share of the range, from -1 to 1, and the saturation of HSL. */
  const shares = channels.map((channel) => (range === 0 ? 0 : (2 * (channel - middle)) / range));
  const saturation = range === 0 ? 0 : range / (1 - Math.abs(2 * middle - 1));
  let shaded = colour;
  for (let lightness = middle; lightness >= 0 && lightness <= 1 && !isAcceptable(luminance(shaded)); lightness += step) {
    const half = (saturation * (1 - Math.abs(2 * lightness - 1))) / 2;
    const mixed = shares.map((share) => Math.round(255 * Math.min(1, Math.max(0, lightness + share * half))));
    shaded = "#" + mixed.map((channel) => channel.toString(16).padStart(2, "0")).join("");
  }
  return shaded;
}

/**
 * The colours of a line as custom properties, by day and at night: the operator's colour, changed as far as necessary to stand out on the
 * map, and the text on it. Everything that belongs to a line has them: its badges, its way on maps, and its stations. At night, a colour that
 * is nearly black becomes a light one.
 */
export function colours(colour: string): Record<string, string> {
  const atNight = luminance(colour) < NEAR_BLACK ? 0.75 : 0.13;
  const [day, night] = [shadedUntil(colour, -0.02, (value) => value < 0.5), shadedUntil(colour, 0.02, (value) => value > atNight)];
  return { "--line-day": day, "--on-line-day": textOn(day), "--line-night": night, "--on-line-night": textOn(night) };
}
