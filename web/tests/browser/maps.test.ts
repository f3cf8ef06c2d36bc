/** Maps: journeys, lines and arrivals of the transport assistants, drawn from the server's own data. */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { board, launch, serve } from "./harness.mjs";
import type { Served } from "./harness.mjs";

const SCRIPT = `<script>globalThis.hostile = 1</script><svg onload="globalThis.hostile = 1"></svg>`;

let served: Served;
let browser: Browser;
let context: BrowserContext;
let page: Page;
/** Errors in the page, what the content security policy refused, and requests to other hosts. */
let faults: string[];

beforeAll(async () => {
  [served, browser] = await Promise.all([serve(), launch()]);
});

afterAll(async () => {
  await browser.close();
  await served.close();
});

beforeEach(async () => {
  faults = [];
  context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-GB" });
  page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => {
    if (!request.url().startsWith(served.url)) faults.push(`request to ${request.url()}`);
  });
});

afterEach(async () => {
  expect(await page.evaluate(() => (globalThis as { hostile?: number }).hostile)).toBeUndefined();
  await context.close();
  expect(faults).toEqual([]);
});

async function open(address: string): Promise<void> {
  await page.goto(`${served.url}#token=${served.token}`);
  await page.locator(".frame").waitFor();
  await page.evaluate((to) => (location.hash = to), address);
}

async function thread(assistant: string, messages: unknown[] = []): Promise<string> {
  const { id } = (await served.call("POST", "v1/threads", { metadata: { assistant } })) as { id: string };
  if (messages.length > 0) await served.call("POST", `v1/threads/${id}/messages`, { messages });
  return id;
}

async function asked(assistant: string, text: string): Promise<string> {
  const id = await thread(assistant);
  await served.call("POST", `v1/agents/${assistant}/turns`, { text, thread: id });
  return id;
}

describe("a journey", () => {
  it("is drawn below its answer, with its legs, and can be enlarged", async () => {
    const id = await asked("underground", "how do i get from brixton to canary wharf?");
    await open(`#/chat/${id}`);
    const map = page.locator("figure.map.journey");
    await map.locator("svg .map-stretch").first().waitFor();
    await expect.poll(() => map.locator("figcaption").innerText()).toMatch(/Brixton → Canary Wharf[^]*min · \d changes?/);
    const legs = await map.locator(".map-legs li:not(.change)").allInnerTexts();
    expect(legs[0]).toContain("Victoria line");
    await expect.poll(() => map.locator("svg .map-stretch:not(.walk)").count()).toBe(legs.length);
    await expect.poll(() => map.locator(".map-legs .change").allInnerTexts()).toEqual([expect.stringMatching(/Change\s+Stockwell\s+5 min/), expect.stringMatching(/Change\s+London Bridge\s+5 min/)]);
    await expect.poll(() => map.locator("svg .map-dot.end").count()).toBe(2);
    await expect.poll(() => map.locator("svg text.required").allTextContents()).toEqual(expect.arrayContaining(["Brixton", "Canary Wharf"]));
    await page.getByRole("img", { name: "Map of the journey from Brixton to Canary Wharf" }).waitFor();
    await page.getByRole("button", { name: "Enlarge the map" }).click();
    const large = page.getByRole("dialog").locator("svg[role=img]");
    await large.waitFor();
    const small = map.locator("svg[role=img]").first();
    const growth = async () => ((await large.boundingBox())?.height ?? 0) - ((await small.boundingBox())?.height ?? 0);
    await expect.poll(growth).toBeGreaterThan(0);
    await page.keyboard.press("Escape");
    await large.waitFor({ state: "detached" });
  });

  it("is drawn when its answer arrives, and does not move the conversation", async () => {
    const id = await thread("subway");
    await open(`#/chat/${id}`);
    await page.getByLabel("Your message").fill("How do I get from Bedford Av to Columbus Circle?");
    await page.getByLabel("Your message").press("Enter");
    await page.locator("figure.map.journey svg .map-stretch").first().waitFor();
    await page.locator(".turn-in-progress").waitFor({ state: "detached" });
    const end = () => page.locator(".chat > .scroll").evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
    await expect.poll(end).toBeLessThan(4);
  });

  it("fits into a narrow window", async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    const id = await asked("subway", "How do I get from Bedford Av to Columbus Circle?");
    await open(`#/chat/${id}`);
    await page.locator("figure.map.journey svg .map-stretch").first().waitFor();
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    const isInside = () =>
      page.locator("figure.map svg text.required").evaluateAll((texts) =>
        texts.every((text) => {
          const [own, picture] = [text.getBoundingClientRect(), text.closest("svg")?.getBoundingClientRect()];
          return picture && own.left >= picture.left - 1 && own.right <= picture.right + 1;
        }),
      );
    await expect.poll(isInside).toBe(true);
  });

  it("names the shuttle that it takes", async () => {
    const ride = { kind: "ride", line: "S", from: "Franklin Av", from_stop: "S01", to: "Botanic Garden", to_stop: "S04", stops: 2, seconds: 180 };
    const id = await thread("subway", [
      { role: "user", text: "go" },
      { role: "assistant", parts: [{ tool_call: { id: "c1", name: "get_route", arguments: {} } }] },
      { role: "tool", parts: [{ tool_result: { call_id: "c1", output: "x" } }], data: { value: { legs: [ride], minutes: 3 } } },
      { role: "assistant", text: "Take the S." },
    ]);
    await open(`#/chat/${id}`);
    await expect.poll(() => page.locator(".map-legs .line-badge").allInnerTexts()).toEqual(["S Franklin Av Shuttle"]);
  });

  it("is not drawn if its network is unknown", async () => {
    const ride = { kind: "ride", line: "X", from: "A", from_stop: "nowhere", to: "B", to_stop: "nowhere", stops: 1, seconds: 60 };
    const id = await thread("general", [
      { role: "user", text: "go" },
      { role: "assistant", parts: [{ tool_call: { id: "c1", name: "get_route", arguments: {} } }] },
      { role: "tool", parts: [{ tool_result: { call_id: "c1", output: "x" } }], data: { value: { legs: [ride] } } },
      { role: "assistant", text: "the answer" },
    ]);
    await open(`#/chat/${id}`);
    await page.getByText("the answer").waitFor();
    await page.locator("figure.map").waitFor({ state: "detached" });
  });
});

describe("stations and lines", () => {
  it("are drawn in their network", async () => {
    for (const [question, kind] of [
      ["Which lines stop at Grand Central?", "station"],
      ["Which stations are on the L?", "line"],
    ] as const) {
      const id = await asked("subway", question);
      await open(`#/chat/${id}`);
      await page.locator(`figure.map.${kind} svg .map-stretch`).first().waitFor();
    }
  });

  it("of a network are on the page of its assistant", async () => {
    await open("#/assistants/subway");
    const panel = page.locator(".network-panel");
    await panel.locator("svg .map-background path").first().waitFor();
    await expect.poll(() => panel.locator(".figure").innerText()).toMatch(/29 lines · 496 stations/);
    await panel.getByRole("button", { name: "L", exact: true }).click();
    const stations = panel.locator(".stations li");
    await expect.poll(() => stations.count()).toBe(24);
    expect(await stations.first().innerText()).toContain("8 Av");
    expect(await stations.last().innerText()).toContain("Canarsie-Rockaway Pkwy");
    await panel.getByRole("img", { name: "Map of L" }).waitFor();
    await panel.getByRole("button", { name: "A", exact: true }).click();
    const before = await stations.allInnerTexts();
    expect(before.find((text) => text.includes("Broad Channel"))).toContain("S Rockaway Park Shuttle");
    await panel.getByRole("button", { name: "S 42 St Shuttle", exact: true }).waitFor();
    // The map shows all branches with their stations, the list one of them.
    await expect.poll(() => panel.locator("svg .map-dot").count()).toBeGreaterThan(before.length);
    await panel.getByLabel("Branch").selectOption({ index: 1 });
    await expect.poll(() => stations.allInnerTexts()).not.toEqual(before);
    // Choosing the line again shows the whole network.
    await panel.getByRole("button", { name: "A", exact: true }).click();
    await panel.getByText("Choose a line to see its stations.").waitFor();
  });

  it("are not on the page of an assistant without a network", async () => {
    await open("#/assistants/general");
    await page.locator(".graph").waitFor();
    expect(await page.locator(".network-panel").count()).toBe(0);
  });
});

describe("arrivals", () => {
  const position = () => page.locator(".strip li").first().evaluate((train) => parseFloat((train as HTMLElement).style.left));

  it("approach the station as the minutes pass, until they are too old", async () => {
    await page.clock.install({ time: Date.now() });
    const id = await thread("subway", board());
    await open(`#/chat/${id}`);
    await page.locator(".strip li").first().waitFor();
    await expect.poll(() => page.locator(".strips > li").count()).toBe(4);
    const [before, trains] = [await position(), await page.locator(".strip li").count()];
    await page.clock.runFor(65_000);
    await expect.poll(position).toBeLessThan(before);
    // The first train has arrived after three minutes.
    await page.clock.runFor(150_000);
    await expect.poll(() => page.locator(".strip li").count()).toBeLessThan(trains);
    await page.clock.runFor(14 * 60_000);
    await page.getByText("too old to show where the trains are").waitFor();
    await expect.poll(() => page.locator(".strip").count()).toBe(0);
  });

  it("of an earlier time are not shown as current", async () => {
    const id = await thread("subway", board("14 St-Union Sq", 40));
    await open(`#/chat/${id}`);
    await page.getByText("too old to show where the trains are").waitFor();
    await expect.poll(() => page.locator(".strip").count()).toBe(0);
  });

  it("do not glide if the user prefers reduced motion", async () => {
    await page.emulateMedia({ reducedMotion: "reduce" });
    const id = await thread("subway", board());
    await open(`#/chat/${id}`);
    const train = page.locator(".strip li").first();
    await train.waitFor();
    expect(await train.evaluate((element) => getComputedStyle(element).transitionDuration)).toBe("0s");
  });
});

describe("hostile names", () => {
  it("of stations, lines and trains are text", async () => {
    const ride = (line: string, from_stop: string, to_stop: string) => ({ kind: "ride", line, from: SCRIPT, from_stop, to: SCRIPT, to_stop, stops: 1e9, seconds: 60, departs: SCRIPT, arrives: SCRIPT });
    const legs = [ride(SCRIPT, "L03", "L08"), { kind: "walk", from: SCRIPT, to: SCRIPT, seconds: 1 }, ride("L", "L08", "javascript:1")];
    const id = await thread("subway", [
      ...board(SCRIPT),
      { role: "user", text: "go" },
      { role: "assistant", parts: [{ tool_call: { id: "c1", name: "get_route", arguments: {} } }] },
      { role: "tool", parts: [{ tool_result: { call_id: "c1", output: "x" } }], data: { value: { legs, minutes: "<b>" } } },
      { role: "assistant", text: "the way", agent: SCRIPT },
    ]);
    await open(`#/chat/${id}`);
    await page.locator("figure.map.journey svg .map-stretch").first().waitFor();
    await page.locator("figure.map.arrivals .strip").first().waitFor();
    await page.locator(".map-legs").getByText("<script>").first().waitFor();
    expect(await page.locator("main script, main [onload]").count()).toBe(0);
  });
});
