import { describe, expect, it } from "vitest";
import type { NetworkMap } from "../api/types";
import { bundled } from "./bundles";
import { condense, fit, placeLabels } from "./geometry";
import { changesOf } from "./journey";
import { Network, colours, textOn } from "./network";
import { idsOf, readResult } from "./results";
import type { Arrivals } from "./results";
import { forksOf } from "./places";
import { MAX_AGE_MS, SPAN_MINUTES, groupsOf, lanesOf, stateOf } from "./strip";

const AT = "2026-11-28T12:00:00Z";
const station = (id: string, complex: string, x: number) => ({ id, complex, name: `Station ${id}`, latitude: 51.5, longitude: x });
const MAP: NetworkMap = {
  stations: [station("a", "A", 0), station("b", "B", 0.01), station("c", "C", 0.02), station("d", "C", 0.021), station("e", "E", 0.03)],
  lines: [
    { id: "x", name: "X", colour: "#0039a6", patterns: [[0, 1, 2], [0, 2, 99]] },
    { id: "y1", name: "S", colour: "red; }", patterns: [[3, 4]] },
    { id: "y2", name: "S", full_name: "S Shuttle", colour: "#ffffff", patterns: [[0, 1]] },
  ],
};
const view = (name: string, ...ids: string[]) => ({ name, stop_ids: ids, lines: [], area: "" });
const ride = (line: string, from: string, to: string) => ({ kind: "ride", line, from: `Station ${from}`, from_stop: from, to: `Station ${to}`, to_stop: to, stops: 2, seconds: 240, departs: null, arrives: null });

describe("a network", () => {
  const network = new Network(MAP);
  const names = (way: ReturnType<Network["way"]>) => way.stations.map(({ id }) => id).join("");
  const at = (id: string) => {
    const found = network.find(id);
    if (!found) throw new Error(id);
    return found;
  };

  it("contains the ride between two stations, in either direction, also from another part of a complex", () => {
    expect(names(network.way("X", at("a"), at("b")))).toBe("ab");
    expect(names(network.way("X", at("b"), at("a")))).toBe("ba");
    expect(names(network.way("X", at("a"), at("c")))).toBe("ac");
    expect(names(network.way("S", at("c"), at("e")))).toBe("de");
    expect(network.way("X", at("a"), at("e"))).toMatchObject({ line: null, stations: [{ id: "a" }, { id: "e" }] });
  });

  it("finds stations by id, complex and name", () => {
    expect([network.find("C")?.id, network.find("", "Station e")?.id, network.find("?", "?")]).toEqual(["c", "e", null]);
    expect(network.linesAt(at("c")).map(({ name }) => name)).toEqual(["X", "S"]);
  });

  it("knows where its lines fork", () => {
    const forked = new Network({ ...MAP, lines: [{ id: "x", name: "X", colour: "#0039a6", patterns: [[0, 1, 2], [0, 1, 4]] }, { id: "y", name: "Y", colour: "#0039a6", patterns: [[3, 4]] }] });
    expect([...forksOf(forked.lines.flatMap(({ tracks }) => tracks))].map(({ id }) => id)).toEqual(["b"]);
  });

  it("draws fast trains along the stations that they pass, but not around loops", () => {
    expect(network.lines[0]?.tracks.map((track) => track.map(({ id }) => id).join(""))).toEqual(["abc", "abc"]);
    expect(network.way("X", at("a"), at("c")).track.map(({ id }) => id).join("")).toBe("abc");
    const around = { ...station("b", "B", 0.01), latitude: 51.52 };
    const loop = new Network({ ...MAP, stations: MAP.stations.map((each) => (each.id === "b" ? around : each)) });
    expect(loop.lines[0]?.tracks.map((track) => track.map(({ id }) => id).join(""))).toEqual(["abc", "ac"]);
  });

  it("distinguishes lines of one name by the stations at which they stop", () => {
    const named = (name: string, ...ids: string[]) => network.lineNamed(name, ids)?.label ?? null;
    expect([named("S", "a", "b"), named("S", "d"), named("S", "a", "e"), named("S"), named("S", "?")]).toEqual(["S Shuttle", "S (y1)", null, null, null]);
    expect([named("X"), named("?", "a")]).toEqual(["X", null]);
    const express = { id: "X2", name: "X", full_name: "X Express", colour: "#0039a6", patterns: [[0, 2]] };
    expect(new Network({ ...MAP, lines: [{ ...express, id: "X", full_name: undefined }, express] }).lineNamed("X", ["a", "c"])?.label).toBe("X");
  });

  it("labels lines with the same name differently, and accepts only colours", () => {
    expect(network.lines.map(({ label }) => label)).toEqual(["X", "S (y1)", "S Shuttle"]);
    expect(network.lines.map(({ colour }) => colour)).toEqual(["#0039a6", "#808183", "#ffffff"]);
    expect(colours("#000000")["--line-night"]).not.toBe("#000000");
    expect(colours("#000000")).toMatchObject({ "--line-day": "#000000", "--on-line-day": "#ffffff", "--on-line-night": "#000000" });
    expect(colours("#0039a6")["--line-night"]).not.toBe("#0039a6");
    expect(colours("#ffffff")["--line-day"]).not.toBe("#ffffff");
    expect(colours("#ee352e")).toMatchObject({ "--line-day": "#ee352e", "--line-night": "#ee352e" });
    expect([textOn("#000000"), textOn("#fccc0a"), textOn("#0039a6")]).toEqual(["#ffffff", "#000000", "#ffffff"]);
  });
});

describe("results of tools", () => {
  it("with legs are journeys", () => {
    const data = { legs: [ride("X", "a", "c"), { kind: "walk", from: "Station c", to: "Station d", seconds: 20 }], minutes: 5 };
    const [journey] = readResult("get_route", data, AT);
    expect(journey).toMatchObject({ kind: "journey", minutes: 5, legs: [{ line: "X", minutes: 4 }, { kind: "walk", minutes: 1 }] });
    expect(journey && idsOf(journey)).toEqual(["a", "c"]);
  });

  it("with more time than their legs take have changes that take the rest", () => {
    const walk = { kind: "walk", from: "Station c", to: "Station d", seconds: 60 };
    const data = { legs: [ride("X", "a", "b"), ride("Y", "b", "c"), walk, ride("S", "d", "e")], minutes: 24 };
    const [journey] = readResult("get_route", data, AT);
    if (journey?.kind !== "journey") throw new Error("no journey");
    expect([...changesOf(journey).values()]).toEqual([{ at: "Station b", minutes: 6 }, { at: "Station c → Station d", minutes: 5 }]);
    expect(changesOf({ ...journey, minutes: 13 }).size).toBe(0);
  });

  it("with live trains are journeys and arrivals", () => {
    const train = { line: "X", towards: "Uptown", destination: "Z", minutes_until: 3, at: Date.parse(AT) / 1000 + 200, clock: "07:03" };
    const found = readResult("get_route_with_arrivals", { route: { legs: [ride("X", "a", "c")] }, next_trains: [train] }, AT);
    expect(found.map(({ kind }) => kind)).toEqual(["journey", "arrivals"]);
    expect(found[1]).toMatchObject({ station: "Station a", trains: [{ dueMs: Date.parse(AT) + 200_000 }] });
  });

  it("that compare trains are the recommended journey", () => {
    const option = (line: string) => ({ line, riding_seconds: 300, total_minutes: 9 });
    const data = { from: view("A", "a"), transfer: view("B", "b"), to: view("C", "c"), stay: option("X"), change: option("S"), recommendation: "express" };
    expect(readResult("compare_local_vs_express", data, AT)).toMatchObject([{ minutes: 9, legs: [{ line: "X", to: { id: "b" } }, { line: "S", from: { id: "b" } }] }]);
    expect(readResult("compare_local_vs_express", { ...data, recommendation: "local" }, AT)).toMatchObject([{ legs: [{ line: "X", to: { id: "c" } }] }]);
  });

  it("are stations and lines for the tools that look them up", () => {
    expect(readResult("get_station_info", { station: view("A", "a", "b") }, AT)).toEqual([{ kind: "station", name: "A", ids: ["a", "b"] }]);
    expect(readResult("find_stations_on_line", { line: "X", ways: [[view("A", "a")], [view("B", "b")]] }, AT)).toEqual([{ kind: "line", line: "X", ids: ["a", "b"] }]);
    expect(readResult("find_stations_on_line", { line: "X", stations: [view("A", "a")] }, AT)).toMatchObject([{ ids: ["a"] }]);
  });

  it("of any other form are not drawn", () => {
    const many = Array.from({ length: 5000 }, () => ride("X", "a", "c"));
    for (const data of [null, 1, "x", [], {}, { legs: "x" }, { legs: [null, 1, { kind: "ride" }] }, { station: 1, trains: [1] }, { station: view("A", "a"), trains: [] }]) {
      expect(readResult("get_route", data, AT)).toEqual([]);
    }
    expect(readResult("get_route", { legs: many }, AT)).toMatchObject([{ legs: { length: 20 } }]);
    expect(readResult("get_next_trains", { station: view("A", "a"), trains: [{ line: "X", minutes: 1 }] }, "?")).toEqual([]);
  });
});

describe("a map", () => {
  it("of a whole network shows lines that share tracks beside each other, on the same sides along the way", () => {
    const map: NetworkMap = {
      ...MAP,
      lines: [
        { id: "x", name: "X", colour: "#ff0000", patterns: [[0, 1, 2]] },
        // It runs in the other direction, from another part of the last complex.
        { id: "y", name: "Y", colour: "#0000ff", patterns: [[3, 1, 0]] },
        { id: "z", name: "Z", colour: "#ff0000", patterns: [[0, 1]] },
        { id: "w", name: "W", colour: "#00ff00", patterns: [[2, 4]] },
      ],
    };
    const paths = bundled(new Network(map), ({ x }) => ({ x: Math.round(x / 100), y: 0 }), 4).map(({ paths: [path] }) => path ?? []);
    expect(paths.map((path) => [...new Set(path.map(({ y }) => y))])).toEqual([[-2], [2], [-2], [0]]);
    expect(paths.map((path) => path.map(({ x }) => x))).toEqual([[0, 7, 14], [14, 7, 0], [0, 7], [14, 21]]);
  });

  it("shows all of its places", () => {
    const places = [{ x: 0, y: 0 }, { x: 90_000, y: -4_000 }, { x: 300, y: 5_000 }];
    const place = fit(places, { width: 300, height: 200 });
    for (const { x, y } of places.map(place)) expect(x >= 0 && x <= 300 && y >= 0 && y <= 200, `${x} ${y}`).toBe(true);
    expect(fit([{ x: 5, y: 5 }], { width: 300, height: 200 })({ x: 5, y: 5 })).toEqual({ x: 150, y: 100 });
  });

  it("of a whole network shows its long branches shorter, in the same directions", () => {
    const places = Array.from({ length: 100 }, (_, index) => (index === 0 ? { x: -90_000, y: 45 } : { x: (index % 10) * 100, y: index * 10 }));
    const [branch, other] = [{ x: -89_500, y: 500 }, { x: 700, y: 500 }].map(condense(places));
    expect(branch?.x).toBeGreaterThan(-5_000);
    expect(branch?.y).toBeCloseTo(500);
    expect(other?.x).toBeGreaterThan(600);
    expect(condense([])({ x: 3, y: 4 })).toEqual(condense([{ x: 0, y: 0 }])({ x: 3, y: 4 }));
  });

  it("leaves out names that would be on a line", () => {
    const rows = [-40, -30, -20, -10, 0, 10, 20, 30, 40].map((dy) => [{ x: 0, y: 60 + dy }, { x: 300, y: 60 + dy }]);
    const named = (isRequired: boolean) => [{ x: 150, y: 60, name: "A name", isRequired }];
    const size = { width: 300, height: 120 };
    expect(placeLabels(named(false), rows, size)).toEqual([]);
    expect(placeLabels(named(true), rows, size)).toHaveLength(1);
    expect(placeLabels(named(false), [rows[4] ?? []], size)).toHaveLength(1);
  });

  it("leaves out names for which there is no room, but no required ones", () => {
    const named = (x: number, isRequired: boolean) => ({ x, y: 50, name: "A station with a long name", isRequired });
    const labels = placeLabels([named(40, false), named(42, true), named(44, false), named(46, false), named(48, true)], [], { width: 240, height: 100 });
    expect(labels.filter(({ isRequired }) => isRequired)).toHaveLength(2);
    expect(labels.length).toBeLessThan(5);
  });

  it("has no name that could be that of another place", () => {
    const column = Array.from({ length: 12 }, (_, index) => ({ x: 150, y: 30 + 9 * index, name: `Station ${index}`, isRequired: false }));
    const labels = placeLabels(column, [], { width: 300, height: 200 });
    for (const { x, y, lines, leader } of labels) {
      const nearest = [...column].sort((a, b) => Math.hypot(a.x - x, a.y - y + 4) - Math.hypot(b.x - x, b.y - y + 4))[0];
      expect(leader ? column.find((place) => place.y === leader.y)?.name : nearest?.name).toBe(lines.join(""));
    }
    expect(labels.length).toBeGreaterThan(3);
  });

  it("names the more important of two places", () => {
    const places = [1, 0].map((rank) => ({ x: 100 + rank, y: 50, name: `Rank ${rank} of two`, isRequired: false, rank }));
    expect(placeLabels(places, [], { width: 220, height: 100 }).map(({ lines }) => lines.join("")).at(0)).toBe("Rank 0 of two");
  });

  it("has room between names at one height", () => {
    const places = [30, 198].map((x) => ({ x, y: 50, name: "Ten letters", isRequired: false }));
    const [one, other] = placeLabels(places, [], { width: 276, height: 100 }).sort((a, b) => a.x - b.x);
    expect(one?.y).not.toBe(other?.y);
  });

  it("has names inside it, above a place at its side", () => {
    const line = [{ x: 233, y: 400 }, { x: 260, y: 430 }, { x: 300.8, y: 406.8 }];
    const named = [{ x: 300.8, y: 406.8, name: "Far Rockaway-Mott Av", isRequired: true }];
    const [label] = placeLabels(named, [[{ x: 217, y: 300 }, ...line]], { width: 320, height: 460 });
    expect(label).toMatchObject({ lines: ["Far ", "Rockaway-", "Mott Av"], leader: null });
  });

  it("breaks long names where one line has no room", () => {
    const labels = placeLabels([{ x: 100, y: 50, name: "42 St-Port Authority Bus Terminal", isRequired: true }], [], { width: 260, height: 100 });
    expect(labels.map(({ lines }) => lines)).toEqual([["42 St-Port Authority ", "Bus Terminal"]]);
  });
});

describe("trains on a strip", () => {
  const now = Date.parse(AT);
  const train = (minutes: number, towards = "Uptown") => ({ line: "X", towards, destination: "Z", dueMs: now + minutes * 60_000, clock: "" });
  const arrivals = (...minutes: number[]): Arrivals => ({ kind: "arrivals", station: "A", ids: [], atMs: now, trains: minutes.map((each) => train(each)) });

  it("are grouped by line and direction", () => {
    expect(groupsOf([train(1), train(2, "Downtown"), train(3)]).map(({ towards, trains }) => [towards, trains.length])).toEqual([["Uptown", 2], ["Downtown", 1]]);
  });

  it("approach the station, below each other where they are close", () => {
    const placed = lanesOf([train(0), train(1), train(SPAN_MINUTES / 2), train(40), train(50)], now);
    expect(placed.map(({ share, lane }) => [Math.round(share * 100), lane])).toEqual([[0, 0], [4, 1], [50, 0], [100, 0]]);
    expect(lanesOf([train(5)], now + 2.5 * 60_000)[0]?.share).toBeCloseTo(2.5 / SPAN_MINUTES);
  });

  it("are no longer shown when the answer is too old, or all have arrived", () => {
    expect(stateOf(arrivals(2, 20), now)).toBe("current");
    expect(stateOf(arrivals(2), now + 3 * 60_000)).toBe("gone");
    expect(stateOf(arrivals(2, 60), now + MAX_AGE_MS + 1)).toBe("old");
  });
});
