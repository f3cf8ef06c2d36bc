/** A station with its lines, and lines with their stations, on the map of their network. */
import { t } from "../i18n";
import { visibleLine } from "../text/visible";
import { Background, Dot, Leaders, NameBackgrounds, Names, Picture, Stretches } from "./drawing";
import { condense, fit, placeLabels, ratioOf } from "./geometry";
import type { Named, Size } from "./geometry";
import type { Line, Network, Station } from "./network";

/** The stations on each side of a station that its map shows. */
const NEIGHBOURS = 2;
/** The height of a whole network, which is shown with its lines in a wide window. */
const WHOLE_HEIGHT = 530;
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
    const labels = placeLabels(distinct(names), stretches.map(({ stretch }) => stretch.map(place)), size);
    return (
      <>
        <Background network={network} place={place} />
        <NameBackgrounds labels={labels} />
        <Stretches stretches={stretches.map(({ line, stretch }) => ({ points: stretch.map(place), line }))} />
        <Leaders labels={labels} />
        {all.map((station) => (
          <Dot key={station.index} at={place(station)} kind={shown.has(station) ? "end" : "stop"} name={station.name} />
        ))}
        <Names labels={labels} />
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

/**
 * Lines with all their stations. Ends have names; where there is room, so have other stations: first those where lines fork, then those at
 * which most other lines stop.
 */
export function LinesPicture({ lines, label, network, height }: { lines: Line[]; label: string; network: Network; height: number }) {
  const isAll = lines.length === 0;
  const draw = (size: Size) => {
    const patterns = lines.flatMap((line) => line.patterns.map((pattern) => ({ line, pattern })));
    if (isAll) return <Whole network={network} size={size} />;
    const tracks = lines.flatMap((line) => line.tracks.map((track) => ({ line, track })));
    const place = fit(patterns.flatMap(({ pattern }) => pattern), size);
    const stations = [...new Set(patterns.flatMap(({ pattern }) => pattern))];
    const passed = new Set(patterns.flatMap(({ pattern }) => pattern.slice(1, -1)));
    const ends = new Set(patterns.flatMap(({ pattern }) => [pattern[0], pattern.at(-1)]).filter((station) => station && !passed.has(station)));
    const forks = forksOf(tracks.map(({ track }) => track));
    const rankOf = (station: Station) => (forks.has(station) ? -Infinity : -network.linesAt(station).length);
    const names: Named[] = stations.map((station) => ({ ...place(station), name: visibleLine(station.name, 40), isRequired: ends.has(station), rank: rankOf(station) }));
    const paths = tracks.map(({ track }) => track.map(place));
    const labels = placeLabels(distinct(names), paths, size);
    return (
      <>
        <Background network={network} place={place} />
        <NameBackgrounds labels={labels} />
        <Stretches stretches={tracks.map(({ line }, index) => ({ points: paths[index] ?? [], line }))} />
        <Leaders labels={labels} />
        {stations.map((station) => (
          <Dot key={station.index} at={place(station)} kind={ends.has(station) ? "change" : "stop"} name={station.name} />
        ))}
        <Names labels={labels} />
      </>
    );
  };
  if (!isAll) return <Picture height={height} label={label} draw={draw} />;
  const ratio = ratioOf(network.stations.map(condense(network.stations)));
  return <Picture height={WHOLE_HEIGHT} maxRatio={Math.max(0.5, Math.min(1.1, ratio))} label={label} draw={draw} />;
}

/** All lines of a network, without names: there is room for so few that they would seem to be chosen without reason. */
function Whole({ network, size }: { network: Network; size: Size }) {
  const nearer = condense(network.stations);
  const fitted = fit(network.stations.map(nearer), size);
  return <Background network={network} place={(point) => fitted(nearer(point))} width={Math.max(1.6, Math.min(3.2, size.width * LINE_SHARE))} />;
}

/** Returns the stations at which tracks part: those with more than two neighbours. */
export function forksOf(tracks: Station[][]): Set<Station> {
  const neighbours = new Map<Station, Set<Station>>();
  for (const track of tracks) {
    track.forEach((station, index) => {
      const found = neighbours.get(station) ?? new Set();
      for (const next of [track[index - 1], track[index + 1]]) if (next) found.add(next);
      neighbours.set(station, found);
    });
  }
  return new Set([...neighbours].filter(([, { size }]) => size > 2).map(([station]) => station));
}

/** Leaves out the names of further parts of a complex. */
function distinct(names: Named[]): Named[] {
  return names.filter(({ name, x, y }, index) => !names.slice(0, index).some((other) => other.name === name && Math.hypot(other.x - x, other.y - y) < 60));
}
