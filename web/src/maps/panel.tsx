/** The network of an assistant: its lines, and the stations of a line in order. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { visibleLine } from "../text/visible";
import { Loading, Problem } from "../ui/controls";
import { LineBadge } from "./drawing";
import { useNetwork } from "./load";
import { colours } from "./network";
import type { Line, Network, Station } from "./network";
import { LinesPicture } from "./places";

const HEIGHT = 460;

export function NetworkPanel({ agent }: { agent: string }) {
  const network = useNetwork(agent);
  return (
    <section class="panel network-panel">
      <header>
        <h2>{t("network")}</h2>
        {network !== null && typeof network !== "string" && (
          <p class="figure">
            {t("n_lines", { count: network.lines.length })} · {t("n_stations", { count: network.stations.length })}
          </p>
        )}
      </header>
      {network === null ? <Loading /> : typeof network === "string" ? <Problem text={network} /> : <Lines network={network} />}
    </section>
  );
}

function Lines({ network }: { network: Network }) {
  const [chosen, setChosen] = useState<Line | null>(null);
  const [pattern, setPattern] = useState(0);
  const lines = useMemo(() => [...network.lines].sort((a, b) => a.label.localeCompare(b.label, undefined, { numeric: true })), [network]);
  const patterns = chosen ? [...chosen.patterns].sort((a, b) => b.length - a.length) : [];
  const stations = patterns[pattern] ?? [];
  const choice = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => {
    if (choice.current) markEnds(choice.current);
  }, [lines]);
  const choose = (line: Line) => {
    setChosen(chosen === line ? null : line);
    setPattern(0);
  };
  return (
    <>
      <ul class="line-choice fading" aria-label={t("lines")} ref={choice} onScroll={markEnds}>
        {lines.map((line) => (
          <li key={line.id}>
            <button type="button" class="line-button" aria-pressed={line === chosen} style={colours(line.colour)} onClick={() => choose(line)}>
              {visibleLine(line.label, 60)}
            </button>
          </li>
        ))}
      </ul>
      <div class={chosen ? "network-columns" : undefined}>
        <div class="map">
          <LinesPicture
            lines={chosen ? [chosen] : []}
            label={chosen ? t("map_of_line", { line: visibleLine(chosen.label, 60) }) : t("map_of_network", { count: network.lines.length })}
            network={network}
            height={HEIGHT}
          />
        </div>
        {chosen && (
          <div class="line-stations">
            {patterns.length > 1 && (
              <label>
                {t("branch")}
                <select value={pattern} onChange={(event) => setPattern(Number(event.currentTarget.value))}>
                  {patterns.map((each, index) => (
                    <option key={index} value={index}>
                      {patternName(each)}
                    </option>
                  ))}
                </select>
              </label>
            )}
            <StationList stations={stations} line={chosen} network={network} />
          </div>
        )}
      </div>
      {!chosen && (
        <p class="note">
          {t("choose_line")} {t("network_condensed")}
        </p>
      )}
    </>
  );
}

function StationList({ stations, line, network }: { stations: Station[]; line: Line; network: Network }) {
  const list = useRef<HTMLOListElement>(null);
  useLayoutEffect(() => {
    if (list.current) markEnds(list.current);
  }, [stations]);
  return (
    <ol class="stations fading" ref={list} onScroll={markEnds} style={colours(line.colour)} tabIndex={0} aria-label={t("stations_of", { line: visibleLine(line.label, 60) })}>
      {stations.map((station) => (
        <li key={station.index}>
          <span>{visibleLine(station.name, 80)}</span>
          <span class="transfers">
            {network
              .linesAt(station)
              .filter(({ name }) => name !== line.name)
              .map(({ id, label, colour }) => (
                <LineBadge key={id} name={label.replace(/ line$/, "")} colour={colour} />
              ))}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** Marks the ends towards which a list can be scrolled: the list fades there, to show that it goes on. */
function markEnds(scrolled: HTMLElement | { currentTarget: HTMLElement }): void {
  const list = "currentTarget" in scrolled ? scrolled.currentTarget : scrolled;
  const before = list.scrollLeft + list.scrollTop;
  const after = list.scrollWidth - list.clientWidth + list.scrollHeight - list.clientHeight - before;
  list.classList.toggle("before", before > 1);
  list.classList.toggle("after", after > 1);
}

function patternName(pattern: Station[]): string {
  return [pattern[0], pattern.at(-1)].map((station) => visibleLine(station?.name ?? "", 40)).join(" – ");
}
