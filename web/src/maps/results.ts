/**
 * Reads what a tool of a transport assistant returned: a journey, the trains at a station, a station, or a line. Results come from the
 * store, so nothing about them is taken for granted. Pure.
 */
export interface Stop {
  id: string;
  name: string;
}

export interface Ride {
  kind: "ride";
  line: string;
  from: Stop;
  to: Stop;
  stops: number | null;
  minutes: number | null;
  departs: string | null;
  arrives: string | null;
}

export interface Walk {
  kind: "walk";
  /** The names of the ends. */
  from: string;
  to: string;
  minutes: number | null;
}

export type Leg = Ride | Walk;

export interface Journey {
  kind: "journey";
  legs: Leg[];
  minutes: number | null;
}

export interface Train {
  line: string;
  /** The direction or platform on the station's signs. */
  towards: string;
  destination: string;
  /** Milliseconds since 1970. */
  dueMs: number;
  /** The local time of the network. */
  clock: string;
}

export interface Arrivals {
  kind: "arrivals";
  station: string;
  ids: string[];
  /** When the trains were looked up, in milliseconds since 1970. */
  atMs: number;
  trains: Train[];
}

export interface ShownStation {
  kind: "station";
  name: string;
  ids: string[];
}

export interface ShownLine {
  kind: "line";
  line: string;
  ids: string[];
}

export type Shown = Journey | Arrivals | ShownStation | ShownLine;

const MAX_LEGS = 20;
const MAX_TRAINS = 60;
const MAX_STATIONS = 300;
const MAX_CHARACTERS = 200;

type Fields = Record<string, unknown>;

/** Reads the result of a tool call. `at` is the time of the result. Returns nothing if the result cannot be drawn. */
export function readResult(tool: string, data: unknown, at: string): Shown[] {
  const fields = fieldsOf(data);
  if (!fields) return [];
  const atMs = Date.parse(at);
  const route = fieldsOf(fields["route"]) ?? fields;
  const journey = journeyOf(route) ?? comparisonOf(fields);
  const arrivals = Number.isNaN(atMs) ? null : arrivalsOf(fields, journey, atMs);
  const found = [journey, arrivals].filter((shown) => shown !== null);
  if (found.length > 0) return found;
  const other = tool === "get_station_info" ? stationOf(fields["station"]) : tool === "find_stations_on_line" ? lineOf(fields) : null;
  return other ? [other] : [];
}

/** Returns the ids of the stations of a result, by which its network is recognised. */
export function idsOf(shown: Shown): string[] {
  if (shown.kind !== "journey") return shown.ids;
  return shown.legs.flatMap((leg) => (leg.kind === "ride" ? [leg.from.id, leg.to.id] : []));
}

function journeyOf(fields: Fields): Journey | null {
  const legs = listOf(fields["legs"], MAX_LEGS).flatMap((leg) => legOf(leg) ?? []);
  if (!legs.some(({ kind }) => kind === "ride")) return null;
  const minutes = numberOf(fields["minutes"]) ?? minutesOf(fields["seconds"]);
  return { kind: "journey", legs, minutes };
}

function legOf(value: unknown): Leg | null {
  const fields = fieldsOf(value);
  if (!fields) return null;
  const [from, to] = [textOf(fields["from"]), textOf(fields["to"])];
  const minutes = minutesOf(fields["seconds"]);
  if (fields["kind"] === "walk") return { kind: "walk", from, to, minutes };
  const line = textOf(fields["line"]);
  if (!line || !from || !to) return null;
  return {
    kind: "ride",
    line,
    from: { id: textOf(fields["from_stop"]), name: from },
    to: { id: textOf(fields["to_stop"]), name: to },
    stops: numberOf(fields["stops"]),
    minutes,
    departs: textOf(fields["departs"]) || null,
    arrives: textOf(fields["arrives"]) || null,
  };
}

/** Reads a comparison of a local with an express as the journey that it recommends. */
function comparisonOf(fields: Fields): Journey | null {
  const [from, transfer, to] = ["from", "transfer", "to"].map((name) => viewOf(fields[name]));
  const [stay, change] = [fieldsOf(fields["stay"]), fieldsOf(fields["change"])];
  if (!from || !transfer || !to || !stay) return null;
  const ride = (option: Fields, start: ShownStation, end: ShownStation): Ride => ({
    kind: "ride",
    line: textOf(option["line"]),
    from: { id: start.ids[0] ?? "", name: start.name },
    to: { id: end.ids[0] ?? "", name: end.name },
    stops: null,
    minutes: null,
    departs: null,
    arrives: null,
  });
  const isChanged = fields["recommendation"] === "express" && change !== null;
  const chosen = isChanged ? change : stay;
  const minutes = numberOf(chosen["total_minutes"]) ?? minutesOf(chosen["riding_seconds"]);
  if (!isChanged) return { kind: "journey", legs: [ride(stay, from, to)], minutes };
  const isFirst = from.name === transfer.name;
  return { kind: "journey", legs: [...(isFirst ? [] : [ride(stay, from, transfer)]), ride(change, transfer, to)], minutes };
}

function arrivalsOf(fields: Fields, journey: Journey | null, atMs: number): Arrivals | null {
  const list = [fields["arrivals"], fields["trains"], fields["next_trains"]].find(Array.isArray);
  const first = journey?.legs.find((leg) => leg.kind === "ride");
  const station = viewOf(fields["station"]) ?? (first?.kind === "ride" ? { name: first.from.name, ids: [first.from.id] } : null);
  if (!list || !station) return null;
  const trains = listOf(list, MAX_TRAINS).flatMap((train) => trainOf(train, atMs) ?? []);
  if (trains.length === 0) return null;
  trains.sort((a, b) => a.dueMs - b.dueMs);
  return { kind: "arrivals", station: station.name, ids: station.ids, atMs, trains };
}

function trainOf(value: unknown, atMs: number): Train | null {
  const fields = fieldsOf(value);
  if (!fields) return null;
  const minutes = numberOf(fields["minutes_until"]) ?? numberOf(fields["minutes"]);
  const at = numberOf(fields["at"]);
  const dueMs = at !== null ? at * 1000 : minutes !== null ? atMs + minutes * 60_000 : null;
  const line = textOf(fields["line"]);
  if (dueMs === null || !line) return null;
  const towards = textOf(fields["towards"]) || textOf(fields["platform"]);
  return { line, towards, destination: textOf(fields["destination"]), dueMs, clock: textOf(fields["clock"]) };
}

function stationOf(value: unknown): ShownStation | null {
  const found = viewOf(value);
  return found && found.ids.length > 0 ? found : null;
}

function viewOf(value: unknown): ShownStation | null {
  const fields = fieldsOf(value);
  const name = textOf(fields?.["name"]);
  if (!fields || !name) return null;
  return { kind: "station", name, ids: listOf(fields["stop_ids"], MAX_STATIONS).map(textOf).filter((id) => id !== "") };
}

function lineOf(fields: Fields): ShownLine | null {
  const ways = Array.isArray(fields["ways"]) ? fields["ways"].flatMap((way) => listOf(way, MAX_STATIONS)) : listOf(fields["stations"], MAX_STATIONS);
  const ids = ways.slice(0, MAX_STATIONS).flatMap((station) => viewOf(station)?.ids ?? []);
  const line = textOf(fields["line"]);
  return line && ids.length > 0 ? { kind: "line", line, ids } : null;
}

function fieldsOf(value: unknown): Fields | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

function listOf(value: unknown, limit: number): unknown[] {
  return Array.isArray(value) ? value.slice(0, limit) : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_CHARACTERS) : "";
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function minutesOf(seconds: unknown): number | null {
  const number = numberOf(seconds);
  return number === null ? null : Math.max(1, Math.round(number / 60));
}
