/** The maps of an answer: what its tools found, drawn below its text. */
import { useMemo, useState } from "preact/hooks";
import { number, t } from "../i18n";
import { visibleLine } from "../text/visible";
import { Dialog, IconButton } from "../ui/controls";
import { ArrivalsStrip } from "./arrivals";
import { JourneyPicture, Legs, endsOf, isDrawable } from "./journey";
import { useNetworkOf } from "./load";
import type { Network, Station } from "./network";
import { LinesPicture, StationPicture } from "./places";
import { idsOf, readResult } from "./results";
import type { Shown } from "./results";

const MAX_MAPS = 3;
const HEIGHT = 280;
const LARGE_HEIGHT = 560;

/** Returns the height of an enlarged map, which leaves room for its legs: in a narrow window, each takes several lines. */
function largeHeight(): number {
  return Math.min(LARGE_HEIGHT, Math.max(HEIGHT, Math.round(innerHeight * (innerWidth <= 700 ? 0.55 : 0.62))));
}

/** A finished call of a tool. */
export interface Found {
  name: string;
  data: unknown;
  /** When the result was stored. */
  at: string;
}

export function AnswerMaps({ calls, agent }: { calls: Found[]; agent: string }) {
  const shown = useMemo(() => calls.flatMap(({ name, data, at }) => readResult(name, data, at)).slice(0, MAX_MAPS), [calls]);
  return (
    <>
      {shown.map((each, index) => (
        <AnswerMap key={index} shown={each} agent={agent} />
      ))}
    </>
  );
}

function AnswerMap({ shown, agent }: { shown: Shown; agent: string }) {
  const network = useNetworkOf(idsOf(shown), agent);
  const [isLarge, setLarge] = useState(false);
  const title = titleOf(shown);
  if (shown.kind !== "arrivals" && (network === undefined || (network && !hasPicture(shown, network)))) return null;
  return (
    <figure class={`map ${shown.kind}`}>
      <figcaption>
        <b>{title}</b>
        {shown.kind === "journey" && <span class="figures">{figuresOf(shown)}</span>}
        {shown.kind !== "arrivals" && <IconButton icon="enlarge" label={t("enlarge_map")} onClick={() => setLarge(true)} disabled={!network} />}
      </figcaption>
      {shown.kind === "arrivals" ? <ArrivalsStrip arrivals={shown} network={network ?? null} /> : network ? <MapPicture shown={shown} network={network} height={HEIGHT} /> : <div class="map-picture" style={{ height: `${HEIGHT}px` }} />}
      {shown.kind === "journey" && <Legs journey={shown} network={network ?? null} />}
      {isLarge && network && (
        <Dialog title={title} onClose={() => setLarge(false)} size="large">
          <div class="map">
            {shown.kind === "journey" && <p class="figure">{figuresOf(shown)}</p>}
            <MapPicture shown={shown} network={network} height={largeHeight()} />
            {shown.kind === "journey" && <Legs journey={shown} network={network} />}
          </div>
        </Dialog>
      )}
    </figure>
  );
}

function MapPicture({ shown, network, height }: { shown: Shown; network: Network; height: number }) {
  switch (shown.kind) {
    case "journey":
      return <JourneyPicture journey={shown} network={network} height={height} />;
    case "station":
      return <StationPicture name={shown.name} stations={stationsOf(shown.ids, network)} network={network} height={height} />;
    case "line": {
      const lines = network.linesNamed(shown.line);
      return <LinesPicture lines={lines} label={t("map_of_line", { line: visibleLine(shown.line, 60) })} network={network} height={height} />;
    }
    case "arrivals":
      return null;
  }
}

function hasPicture(shown: Shown, network: Network): boolean {
  switch (shown.kind) {
    case "journey":
      return isDrawable(shown, network);
    case "station":
      return stationsOf(shown.ids, network).length > 0;
    case "line":
      return network.linesNamed(shown.line).length > 0;
    case "arrivals":
      return true;
  }
}

function stationsOf(ids: string[], network: Network): Station[] {
  return ids.flatMap((id) => network.find(id) ?? []);
}

function titleOf(shown: Shown): string {
  switch (shown.kind) {
    case "journey": {
      const { from, to } = endsOf(shown);
      return `${from} → ${to}`;
    }
    case "arrivals":
      return t("trains_at", { station: visibleLine(shown.station, 60) });
    case "station":
      return visibleLine(shown.name, 60);
    case "line":
      return visibleLine(shown.line, 60);
  }
}

function figuresOf(shown: Extract<Shown, { kind: "journey" }>): string {
  const changes = shown.legs.filter(({ kind }) => kind === "ride").length - 1;
  return [...(shown.minutes === null ? [] : [`${number(shown.minutes)} min`]), t("n_changes", { count: changes })].join(" · ");
}
