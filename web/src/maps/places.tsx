/** A station with its lines, and lines with their stations, on the map of their network. */
import { t } from "../i18n";
import { visibleLine } from "../text/visible";
import { Background, Dot, Names, Picture, Stretches } from "./drawing";
import { condense, fit, placeLabels, ratioOf } from "./geometry";
import type { Named, Size } from "./geometry";
import type { Line, Network, Point, Station } from "./network";

/** The stations on each side of a station that its map shows. */
const NEIGHBOURS = 2;
/** The height of a whole network, which is shown with its lines in a wide window. */
const WHOLE_HEIGHT = 530;
/** The stations of a whole network that get names, where there is room. */
const HUBS = 16;
/** A narrow map of a whole network has fewer names. */
const NARROW = { width: 600, hubs: 7 };
/** The width of a line of a whole network, as a share of that of the map. */
const LINE_SHARE = 1 / 300;

export function StationPicture({ name, stations, network, height }: { name: string; stations: Station[]; network: Network; height: number }) {
  const shown = new Set(stations);
  const stretches = network.lines.flatMap((line) => stretchesAround(line, shown).map((stretch) => ({ line, stretch })));
  const draw = (size: Size) => {
    const near = stretches.flatMap(({ stretch }) => stretch);
    const place = fit(near.length > 0 ? near : stations, size);
    const all = [...new Set([...stations, ...near])];
    const names: Named[] = all.map((station) => ({ ...place(station), name: visibleLine(station.name, 40), isRequired: station === stations[0] }));
    return (
      <>
        <Background network={network} place={place} />
        <Stretches stretches={stretches.map(({ line, stretch }) => ({ points: stretch.map(place), line }))} />
        {all.map((station) => (
          <Dot key={station.index} at={place(station)} kind={shown.has(station) ? "end" : "stop"} name={station.name} />
        ))}
        <Names labels={placeLabels(distinct(names), stretches.map(({ stretch }) => stretch.map(place)), size)} />
      </>
    );
  };
  return <Picture height={height} label={t("map_of_station", { name: visibleLine(name, 60) })} draw={draw} />;
}

/** Returns the stretches of a line around stations. */
function stretchesAround(line: Line, stations: Set<Station>): Station[][] {
  return line.patterns.flatMap((pattern) => {
    const at = pattern.findIndex((station) => stations.has(station));
    return at < 0 ? [] : [pattern.slice(Math.max(0, at - NEIGHBOURS), at + NEIGHBOURS + 1)];
  });
}

/** Lines with all their stations. The stations of `named` get names where there is room; other branches than `branch` are faint, below it, and without stations. */
export function LinesPicture({ lines, named, branch, label, network, height }: { lines: Line[]; named: Station[]; branch?: Station[]; label: string; network: Network; height: number }) {
  const isAll = lines.length === 0;
  const draw = (size: Size) => {
    const patterns = lines.flatMap((line) => line.patterns.map((pattern) => ({ line, pattern })));
    if (isAll) return <Whole network={network} size={size} />;
    const tracks = lines
      .flatMap((line) => line.tracks.map((track, index) => ({ line, track, isFaint: branch !== undefined && line.patterns[index] !== branch })))
      .sort((one, other) => Number(other.isFaint) - Number(one.isFaint));
    const place = fit(patterns.flatMap(({ pattern }) => pattern), size);
    const stations = branch ?? [...new Set(patterns.flatMap(({ pattern }) => pattern))];
    const passed = new Set(patterns.flatMap(({ pattern }) => pattern.slice(1, -1)));
    const ends = new Set(patterns.flatMap(({ pattern }) => [pattern[0], pattern.at(-1)]).filter((station) => station && !passed.has(station)));
    const shown = [...new Set([...named, ...stations.filter((station) => ends.has(station))])];
    const names: Named[] = shown.map((station) => ({ ...place(station), name: visibleLine(station.name, 40), isRequired: ends.has(station) }));
    const paths = tracks.map(({ track }) => track.map(place));
    return (
      <>
        <Background network={network} place={place} />
        <Stretches stretches={tracks.map(({ line, isFaint }, index) => ({ points: paths[index] ?? [], line, isFaint }))} />
        {stations.map((station) => (
          <Dot key={station.index} at={place(station)} kind={ends.has(station) ? "change" : "stop"} name={station.name} />
        ))}
        <Names labels={placeLabels(distinct(names), paths, size)} />
      </>
    );
  };
  if (!isAll) return <Picture height={height} label={label} draw={draw} />;
  const ratio = ratioOf(network.stations.map(condense(network.stations)));
  return <Picture height={WHOLE_HEIGHT} maxRatio={Math.max(0.5, Math.min(1.1, ratio))} label={label} draw={draw} />;
}

/** All lines of a network, with the names of the stations where most of them meet. */
function Whole({ network, size }: { network: Network; size: Size }) {
  const isNarrow = size.width < NARROW.width;
  const nearer = condense(network.stations);
  const fitted = fit(network.stations.map(nearer), size);
  const place = (point: Point) => fitted(nearer(point));
  const width = Math.max(1.6, Math.min(3.2, size.width * LINE_SHARE));
  const hubs = network.hubs(isNarrow ? NARROW.hubs : HUBS).map((station) => ({ ...place(station), name: visibleLine(station.name, 40), isRequired: false }));
  const labels = placeLabels(hubs, sections(network).map((section) => section.map(place)), size, true);
  const isNamed = new Set(labels.map(({ lines }) => lines.join("")));
  return (
    <>
      <Background network={network} place={place} width={width} />
      {hubs.map((hub, index) => isNamed.has(hub.name) && <Dot key={index} at={hub} kind="stop" name={hub.name} />)}
      <Names labels={labels} />
    </>
  );
}

/** Returns the sections between the stations of a network, each once. */
function sections({ lines }: Network): [Station, Station][] {
  const found = new Map<string, [Station, Station]>();
  for (const track of lines.flatMap(({ tracks }) => tracks)) {
    track.forEach((station, index) => {
      const next = track[index + 1];
      if (next) found.set([station.index, next.index].sort((a, b) => a - b).join("-"), [station, next]);
    });
  }
  return [...found.values()];
}

/** Leaves out the names of further parts of a complex. */
function distinct(names: Named[]): Named[] {
  return names.filter(({ name, x, y }, index) => !names.slice(0, index).some((other) => other.name === name && Math.hypot(other.x - x, other.y - y) < 60));
}

/** Returns the pattern of lines with the most stations. */
export function longestPattern(lines: Line[]): Station[] {
  return lines.flatMap(({ patterns }) => patterns).reduce<Station[]>((longest, pattern) => (pattern.length > longest.length ? pattern : longest), []);
}
