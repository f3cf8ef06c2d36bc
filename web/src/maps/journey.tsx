/** A journey on the map of its network, and its legs as a list. */
import { Fragment } from "preact";
import { useMemo } from "preact/hooks";
import { number, t } from "../i18n";
import { visibleLine } from "../text/visible";
import { Background, Dot, Leaders, LineBadge, NameBackgrounds, Names, Picture, Stretches } from "./drawing";
import { fit, placeLabels } from "./geometry";
import type { Named, Size } from "./geometry";
import type { Line, Network, Station } from "./network";
import type { Journey, Leg, Ride } from "./results";

const UNKNOWN_COLOUR = "#808183";

interface Drawn {
  leg: Leg;
  stations: Station[];
  /** The stations that the leg passes. */
  track: Station[];
  /** The line; `null` for a walk. */
  line: Line | null;
  /** Whether the way between the ends is unknown. */
  isDirect: boolean;
}

/** The ends of a journey, for its title. */
export function endsOf(journey: Journey): { from: string; to: string } {
  const name = (leg: Leg | undefined, end: "from" | "to") => {
    const found = leg?.[end];
    return visibleLine(typeof found === "string" ? found : (found?.name ?? ""), 60);
  };
  return { from: name(journey.legs[0], "from"), to: name(journey.legs.at(-1), "to") };
}

export function JourneyPicture({ journey, network, height }: { journey: Journey; network: Network; height: number }) {
  const drawn = useMemo(() => drawnOf(journey, network), [journey, network]);
  const draw = (size: Size) => {
    const place = fit(drawn.flatMap(({ track }) => track), size);
    const paths = drawn.map(({ track }) => track.map(place));
    const isKey = keyStations(drawn);
    const stations = [...new Set(drawn.flatMap((each) => each.stations))];
    const names: Named[] = stations.map((station) => ({ ...place(station), name: visibleLine(station.name, 40), isRequired: isKey.has(station) }));
    const labels = placeLabels(withoutRepetitions(names), paths, size);
    return (
      <>
        <Background network={network} place={place} />
        <NameBackgrounds labels={labels} />
        <Stretches stretches={drawn.map(({ line, isDirect }, index) => ({ points: paths[index] ?? [], line, isDirect }))} />
        <Leaders labels={labels} />
        {stations.map((station) => (
          <Dot key={station.index} at={place(station)} kind={isKey.get(station) ?? "stop"} name={station.name} />
        ))}
        <Names labels={labels} />
      </>
    );
  };
  return <Picture height={height} label={t("map_of_journey", endsOf(journey))} draw={draw} />;
}

export function Legs({ journey, network }: { journey: Journey; network: Network | null }) {
  const changes = changesOf(journey);
  return (
    <ol class="map-legs">
      {journey.legs.map((leg, index) => {
        const change = changes.get(leg);
        return (
          <Fragment key={index}>
            {change && (
              <li class="change">
                <span class="line-badge walk">{t("change")}</span>
                <span>{visibleLine(change.at, 60)}</span>
                <small>{number(change.minutes)} min</small>
              </li>
            )}
            <li>
              {leg.kind === "ride" ? <RideBadge ride={leg} network={network} /> : <span class="line-badge walk">{t("walk")}</span>}
              <span>
                {visibleLine(leg.kind === "ride" ? leg.from.name : leg.from, 60)} → {visibleLine(leg.kind === "ride" ? leg.to.name : leg.to, 60)}
              </span>
              <small>{detailsOf(leg)}</small>
            </li>
          </Fragment>
        );
      })}
    </ol>
  );
}

function RideBadge({ ride, network }: { ride: Ride; network: Network | null }) {
  const line = network?.lineNamed(ride.line, [ride.from.id, ride.to.id]);
  return <LineBadge name={line?.label ?? ride.line} colour={line?.colour ?? network?.linesNamed(ride.line)[0]?.colour ?? UNKNOWN_COLOUR} />;
}

/** Returns the changes of a journey by the ride that follows. They take the part of its time that is in none of its legs. */
export function changesOf({ legs, minutes }: Journey): Map<Leg, { at: string; minutes: number }> {
  const found = new Map<Leg, { at: string; minutes: number }>();
  const rides = legs.filter((leg) => leg.kind === "ride");
  const known = legs.flatMap((leg) => leg.minutes ?? []);
  let left = (minutes ?? 0) - known.reduce((sum, each) => sum + each, 0);
  if (known.length < legs.length || left <= 0) return found;
  rides.slice(1).forEach((ride, index) => {
    const share = Math.ceil(left / (rides.length - 1 - index));
    const before = rides[index]?.to.name ?? "";
    if (share > 0) found.set(ride, { at: before === ride.from.name ? before : `${before} → ${ride.from.name}`, minutes: share });
    left -= share;
  });
  return found;
}

function detailsOf(leg: Leg): string {
  const parts: string[] = [];
  if (leg.kind === "ride" && leg.departs && leg.arrives) parts.push(`${visibleLine(leg.departs, 20)}–${visibleLine(leg.arrives, 20)}`);
  if (leg.kind === "ride" && leg.stops !== null) parts.push(t("n_stops", { count: leg.stops }));
  if (leg.minutes !== null) parts.push(`${number(leg.minutes)} min`);
  return parts.join(" · ");
}

/** Returns the legs whose ends are in the network, with their ways. */
function drawnOf(journey: Journey, network: Network): Drawn[] {
  const drawn: Drawn[] = [];
  for (const leg of journey.legs) {
    if (leg.kind === "walk") {
      // A walk has no ids: it starts where the ride before it ends.
      const from = drawn.at(-1)?.stations.at(-1) ?? network.find("", leg.from);
      const to = network.find("", leg.to);
      if (from && to && from !== to) drawn.push({ leg, stations: [from, to], track: [from, to], line: null, isDirect: false });
      continue;
    }
    const [from, to] = [network.find(leg.from.id, leg.from.name), network.find(leg.to.id, leg.to.name)];
    if (!from || !to) continue;
    const before = drawn.at(-1)?.stations.at(-1);
    // A change between the parts of a complex.
    if (before && before !== from) drawn.push({ leg: { kind: "walk", from: before.name, to: from.name, minutes: null }, stations: [before, from], track: [before, from], line: null, isDirect: false });
    const { stations, track, line } = network.way(leg.line, from, to);
    const known = line ?? network.linesNamed(leg.line)[0] ?? { id: "", name: leg.line, label: leg.line, colour: UNKNOWN_COLOUR, patterns: [], tracks: [] };
    drawn.push({ leg, stations, track, line: known, isDirect: line === null });
  }
  return drawn;
}

/** Returns the ends of the journey and the stations at which it changes. */
function keyStations(drawn: Drawn[]): Map<Station, "change" | "end"> {
  const found = new Map<Station, "change" | "end">();
  for (const { stations } of drawn) for (const station of [stations[0], stations.at(-1)]) if (station) found.set(station, "change");
  for (const station of [drawn[0]?.stations[0], drawn.at(-1)?.stations.at(-1)]) if (station) found.set(station, "end");
  return found;
}

/** Leaves out names that appear twice, because the parts of a complex share a name. */
function withoutRepetitions(names: Named[]): Named[] {
  const ordered = [...names].sort((a, b) => Number(b.isRequired) - Number(a.isRequired));
  return ordered.filter(({ name, x, y }, index) => !ordered.slice(0, index).some((other) => other.name === name && Math.hypot(other.x - x, other.y - y) < 40));
}

/** Whether a journey can be drawn. */
export function isDrawable(journey: Journey, network: Network): boolean {
  return drawnOf(journey, network).length > 0;
}
