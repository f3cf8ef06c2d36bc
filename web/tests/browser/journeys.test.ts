/** User journeys through the page, with the real server on SQLite and a real browser. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { citing, journal, launch, serve } from "./harness.mjs";
import type { Served } from "./harness.mjs";

let served: Served;
let browser: Browser;
let context: BrowserContext;
let page: Page;
/** Errors in the page, and requests to other hosts. */
let faults: string[];
/** Whether the test expects errors in the console, for example because it stops the server. */
let expectsErrors = false;

beforeAll(async () => {
  [served, browser] = await Promise.all([serve(), launch()]);
});

afterAll(async () => {
  await browser.close();
  await served.close();
});

beforeEach(async () => {
  faults = [];
  expectsErrors = false;
  context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB" });
  page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !expectsErrors) faults.push(message.text());
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(served.url) && !/^(blob|data|about):/.test(url)) faults.push(`request to ${url}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`a script opened a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
});

afterEach(async () => {
  await context.close();
  // A test that stops the server may have failed before restarting it.
  await served.start();
  expect(faults).toEqual([]);
});

async function signIn(address = "#/chat"): Promise<void> {
  await page.goto(`${served.url}#token=${served.token}`);
  await page.locator(".frame").waitFor();
  if (address !== "#/chat") await go(address);
}

async function go(address: string): Promise<void> {
  await page.evaluate((to) => (location.hash = to), address);
}

interface Stored {
  seq: number;
  text: string;
  role: string;
}

const thread = async (title: string, assistant = "general"): Promise<string> => {
  const created = (await served.call("POST", "v1/threads", { title, metadata: { assistant } })) as { id: string };
  return created.id;
};
const add = (id: string, messages: unknown[]) => served.call("POST", `v1/threads/${id}/messages`, { messages });
const stored = async (id: string): Promise<Stored[]> =>
  ((await served.call("GET", `v1/threads/${id}/messages?order=asc&limit=1000`)) as { data: Stored[] }).data;
const composer = () => page.getByLabel("Your message");
const send = async (text: string) => {
  await composer().fill(text);
  await composer().press("Enter");
};
/** Waits until the running turn has ended. */
const waitForTurnEnd = () => page.locator(".turn-in-progress").waitFor({ state: "detached" });
const shownSeqs = () => page.locator("[data-seq]").evaluateAll((entries) => entries.map((entry) => Number((entry as HTMLElement).dataset["seq"])));

describe("signing in", () => {
  it("removes the token from the address, and survives a reload", async () => {
    await signIn();
    expect(page.url()).not.toContain(served.token);
    await page.reload();
    await page.locator(".frame").waitFor();
    const cookies = await context.cookies();
    expect(cookies.map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite }))).toEqual([{ httpOnly: true, sameSite: "Strict" }]);
    const kept = await page.evaluate(() => JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie]));
    expect(kept).not.toContain(served.token);
  });

  it("asks for a token, and reports an invalid one", async () => {
    expectsErrors = true; // The browser logs responses with status 401.
    await page.goto(served.url);
    await page.getByLabel("Token or key").fill("a wrong token of some length");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("invalid token").waitFor();
    await page.getByLabel("Token or key").fill(served.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".frame").waitFor();
  });

  it("has a content security policy that allows only its own code", async () => {
    expectsErrors = true; // The browser logs the response with status 401.
    const response = await page.goto(served.url);
    const policy = response?.headers()["content-security-policy"] ?? "";
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "require-trusted-types-for 'script'"]) {
      expect(policy).toContain(part);
    }
    expect(policy).not.toContain("unsafe");
  });
});

describe("chat", () => {
  it("starts a conversation, remembers, cites, and shows the source in the conversation", async () => {
    await signIn();
    await page.getByRole("button", { name: /^General/ }).click();
    await send("Priya leads the Falcon project.");
    await page.locator(".message.assistant .actions").first().waitFor({ state: "attached" });
    await waitForTurnEnd();
    await send("Who leads the Falcon project?");
    await page.locator(".sources button").first().waitFor();
    await waitForTurnEnd();
    await expect.poll(shownSeqs).toEqual([1, 2, 3, 4]);
    await page.locator(".sources button").first().click();
    await page.getByRole("dialog").getByText("Priya leads the Falcon project.").waitFor();
    await page.getByRole("link", { name: "Show in the conversation" }).click();
    await page.locator(".message.hit").getByText("Priya leads").waitFor();
    await page.locator(".thread-list").getByText("Priya leads the Falcon project").waitFor();
  });

  it("shows sources with the same title in one chip, and one that is cited twice once", async () => {
    const id = await thread("Sources");
    await add(id, [{ role: "user", text: "Who is allergic?" }, citing()]);
    await signIn(`#/chat/${id}`);
    const chips = async () => (await page.locator(".sources li").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());
    await expect.poll(chips).toEqual(["1 2 said by Nora on 11 May 2026", "3, 4 guide.md"]);
    await page.locator(".sources").getByRole("button", { name: "Source 2: said by Nora on 11 May 2026" }).click();
    await page.getByRole("dialog").getByText("No nuts for Mila.").waitFor();
  });

  it("shows expandable tool calls", async () => {
    const id = await thread("Sums");
    await signIn(`#/chat/${id}`);
    await send("What is 17 * 23?");
    const call = page.locator("details.call").first();
    await call.waitFor();
    await waitForTurnEnd();
    await call.locator("summary").click();
    await page.locator("details.call pre").filter({ hasText: "391" }).first().waitFor();
  });

  it("keeps a draft for each conversation across a reload", async () => {
    const id = await thread("Drafts");
    await signIn(`#/chat/${id}`);
    await composer().fill("half a thought");
    await page.reload();
    await expect.poll(() => composer().inputValue()).toBe("half a thought");
    await go("#/chat");
    await expect.poll(() => composer().inputValue()).toBe("");
  });

  it("edits a message in a branch, and leaves the original as it is", async () => {
    const id = await thread("Branches");
    await signIn(`#/chat/${id}`);
    await send("The budget is 40000.");
    await waitForTurnEnd();
    await composer().press("ArrowUp");
    await expect.poll(() => composer().inputValue()).toBe("The budget is 40000.");
    await send("The budget is 50000.");
    await page.waitForURL((url) => !url.hash.includes(id));
    await page.getByText("The budget is 50000.").first().waitFor();
    await waitForTurnEnd();
    expect((await stored(id)).map(({ text }) => text)).toContain("The budget is 40000.");
    const fork = new URL(page.url()).hash.split("/")[2] ?? "";
    expect((await stored(fork)).filter(({ role }) => role === "user").map(({ text }) => text)).toEqual(["The budget is 50000."]);
  });

  it("renames and deletes a conversation", async () => {
    const id = await thread("Old name");
    await signIn(`#/chat/${id}`);
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByLabel("Title").fill("New name");
    await page.getByLabel("Title").press("Enter");
    await page.locator(".thread-list").getByText("New name").waitFor();
    await page.getByRole("button", { name: "Delete this conversation" }).click();
    await page.getByRole("button", { name: "Delete for good" }).click();
    await page.locator(".thread-list").getByText("New name").waitFor({ state: "detached" });
    await expect(served.call("GET", `v1/threads/${id}`)).rejects.toThrow("404");
  });

  it("has the actions on a conversation in a menu in a narrow window", async () => {
    const id = await thread("Small");
    await page.setViewportSize({ width: 390, height: 844 });
    await signIn(`#/chat/${id}`);
    const remove = page.getByRole("button", { name: "Delete this conversation" });
    await composer().waitFor();
    expect(await remove.isVisible()).toBe(false);
    await page.getByRole("button", { name: "Actions" }).click();
    await remove.waitFor();
    await page.locator("#thread-menu").getByRole("link", { name: "Context" }).click();
    await page.waitForURL((url) => url.hash.startsWith(`#/context/${id}`));
  });

  it("erases a message", async () => {
    const id = await thread("Erasing");
    await add(id, [{ role: "user", text: "a secret" }, { role: "assistant", text: "an answer" }]);
    await signIn(`#/chat/${id}`);
    const message = page.locator('[data-seq="1"]');
    await message.hover();
    await message.getByRole("button", { name: "Erase this message" }).click();
    await page.getByRole("dialog").getByText("cannot be undone").waitFor();
    await page.getByRole("button", { name: "Erase", exact: true }).click();
    await message.waitFor({ state: "detached" });
    await expect.poll(async () => (await stored(id)).map(({ seq }) => seq)).toEqual([2]);
  });

  it("shows what others write, in order and exactly once, even after a server outage", async () => {
    const id = await thread("Live");
    await add(id, [{ role: "user", text: "before" }]);
    await signIn(`#/chat/${id}`);
    await page.getByText("before").waitFor();
    await add(id, [{ role: "assistant", text: "written elsewhere" }]);
    await page.getByText("written elsewhere").waitFor();
    expectsErrors = true;
    await served.stop();
    await page.getByText("Connection lost").first().waitFor();
    await served.start();
    await add(id, [3, 4, 5].map((count) => ({ role: "user", text: `while away ${count}` })));
    await page.getByText("while away 5").waitFor();
    await page.getByText("Connection lost").first().waitFor({ state: "detached" });
    await add(id, [{ role: "assistant", text: "afterwards" }]);
    await page.getByText("afterwards").waitFor();
    await expect.poll(shownSeqs).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("sends a message exactly once, even if the server is down when it is sent", async () => {
    const id = await thread("Killed");
    await signIn(`#/chat/${id}`);
    await composer().waitFor();
    expectsErrors = true;
    await served.stop();
    await send("The dentist is on Friday.");
    await page.getByText("Connection lost. The turn continues").waitFor();
    await served.start();
    await waitForTurnEnd();
    await page.locator(".message.assistant").first().waitFor();
    expect((await stored(id)).filter(({ role }) => role === "user").length).toBe(1);
    const seqs = (await stored(id)).map(({ seq }) => seq);
    await expect.poll(shownSeqs).toEqual(seqs);
  });

  it("finds the reply to a message that was sent before a reload", async () => {
    const id = await thread("Reloaded");
    await signIn(`#/chat/${id}`);
    await send("My sister lives in Malmo.");
    await page.reload();
    await page.locator(".message.assistant .actions").first().waitFor({ state: "attached" });
    await waitForTurnEnd();
    expect((await stored(id)).filter(({ role }) => role === "user").length).toBe(1);
    await expect.poll(shownSeqs).toEqual([1, 2]);
  });

  it("scrolls through a long conversation without losing its place", async () => {
    const id = await thread("Long");
    await add(id, journal(400));
    await signIn(`#/chat/${id}`);
    await page.locator('[data-seq="400"]').waitFor();
    const log = page.getByRole("log");
    for (let round = 0; round < 40 && (await page.locator('[data-seq="1"]').count()) === 0; round += 1) {
      await log.evaluate((element) => (element.scrollTop = 0));
      await page.waitForTimeout(100);
    }
    await page.locator('[data-seq="1"]').waitFor();
    await expect.poll(shownSeqs).toEqual(Array.from({ length: 400 }, (_, index) => index + 1));
  });

  it("works with the keyboard alone", async () => {
    await signIn();
    await page.keyboard.press("Control+k");
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("search");
    await page.keyboard.press("Alt+n");
    await composer().waitFor();
    await composer().press("Escape");
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("composer");
  });
});

describe("approvals", () => {
  it("show the proposed action, which is performed only after approval", async () => {
    const id = await thread("Seats", "gardener");
    await signIn(`#/chat/${id}`);
    await send("Remember that my seat is the window.");
    const card = page.locator(".approval.pending");
    await card.waitFor();
    await waitForTurnEnd();
    await card.locator("details summary").click();
    await card.locator("pre").filter({ hasText: "window" }).waitFor();
    // The approval shows the call, so no row of its own does.
    await expect.poll(() => page.locator("details.call").count()).toBe(0);
    expect(await served.call("GET", "v1/preferences")).not.toMatchObject({ data: [{ key: "seat" }] });
    await card.getByRole("button", { name: "Approve" }).click();
    await page.locator(".approval.done").waitFor();
    await waitForTurnEnd();
    await expect.poll(async () => JSON.stringify(await served.call("GET", "v1/preferences"))).toContain("window");
  });

  it("list pending requests in one place, where they can be denied with a reason", async () => {
    const id = await thread("More seats", "gardener");
    await served.call("POST", "v1/agents/gardener/turns", { text: "Remember that my seat is the aisle.", thread: id });
    await signIn("#/activity");
    const card = page.locator(".approval.pending");
    await card.getByText("Set preference: seat = the aisle").waitFor();
    await card.getByRole("button", { name: "Deny" }).click();
    await card.getByLabel("Reason for denying (optional)").fill("not now");
    await card.getByRole("button", { name: "Deny" }).click();
    await page.getByText("Nothing is waiting for a decision.").waitFor();
    const approvals = (await served.call("GET", `v1/approvals?thread=${id}&all=true`)) as { data: { state: string; reason: string }[] };
    expect(approvals.data).toMatchObject([{ state: "denied", reason: "not now" }]);
  });
});

describe("the context inspector", () => {
  const QUESTION = "Who is allergic to nuts?";
  let id: string;

  beforeAll(async () => {
    id = await thread("A weekend by the lake");
    await add(id, journal(96));
  });

  /** Returns the number in a panel's heading, such as the number of included messages. */
  const figure = async (column: number, panel: string) => {
    const text = await page.locator(".column-view").nth(column).locator(".panel", { hasText: panel }).first().locator(".figure b").innerText();
    return Number(text.replace(/\D/g, ""));
  };

  it("shows the fate of each message, and the exact text", async () => {
    await signIn(`#/context/${id}?q=${encodeURIComponent(QUESTION)}`);
    await page.locator(".fate-map .cell").first().waitFor();
    await expect.poll(() => page.locator(".fate-map .cell").count()).toBe(96);
    await page.locator(".rendered .section.question").getByText(QUESTION).waitFor();
    const cell = page.locator(".fate-map .cell").first();
    await cell.click();
    await page.locator(".cell-detail").getByText("We want to camp by a lake").waitFor();
    await cell.press("ArrowRight");
    await page.locator(".cell-detail").getByText("Birch Bay fits").waitFor();
    // The parts of the bar add up to the total.
    const difference = async () => {
      const numbers = await page.locator(".legend dd").allInnerTexts();
      const values = numbers.map((text) => Number(text.split("/")[0]?.replace(/[^\d−-]/g, "").replace("−", "-")));
      const total = values.pop() ?? NaN;
      return values.reduce((sum, value) => sum + value, 0) - total;
    };
    await expect.poll(difference).toBe(0);
  });

  it("updates when the question or the policy changes", async () => {
    await signIn(`#/context/${id}`);
    await page.locator(".fate-map").waitFor();
    await page.getByLabel("Question").fill(QUESTION);
    await page.locator(".rendered .section.question").getByText(QUESTION).waitFor();
    await page.getByRole("slider", { name: "Window" }).fill("6");
    await expect.poll(() => page.locator(".cell.kept").count()).toBe(6);
    await page.getByRole("combobox", { name: "Recalled messages" }).selectOption("thread");
    await page.locator(".recalled li").first().waitFor();
    await page.locator(".recalled .score.words").first().waitFor();
    await page.getByRole("slider", { name: "Budget" }).fill("5");
    const unused = async () => {
      const figures = (await page.locator(".tokens-panel .figure").innerText()).match(/[\d,]+/g) ?? [];
      const [tokens, budget] = figures.map((text) => Number(text.replace(/,/g, "")));
      return (budget ?? NaN) - (tokens ?? NaN);
    };
    await expect.poll(unused).toBeGreaterThanOrEqual(0);
  });

  it("compares two policies", async () => {
    await signIn(`#/context/${id}?q=${encodeURIComponent(QUESTION)}`);
    await page.locator(".fate-map").waitFor();
    await page.getByRole("button", { name: "Compare policies" }).click();
    await page.locator(".columns.two .column-view").nth(1).locator(".recalled li").first().waitFor();
    await page.locator(".legend .delta").first().waitFor();
    await expect.poll(async () => (await figure(1, "Fate of each message")) > (await figure(0, "Fate of each message"))).toBe(true);
    await expect.poll(() => page.locator(".cell.changed").count()).toBeGreaterThan(0);
  });

  it("shows what the model saw in a turn", async () => {
    const turn = (await served.call("POST", "v1/agents/general/turns", { text: "What is Mila allergic to?", thread: id })) as { turn: string };
    await signIn(`#/chat/${id}`);
    const answer = page.locator(".message.assistant").last();
    await answer.hover();
    await answer.getByRole("button", { name: "What the model saw" }).click();
    await page.waitForURL((url) => url.hash.includes(turn.turn));
    await page.locator(".fate-map .cell").first().waitFor();
    await page.getByText("What is Mila allergic to?").first().waitFor();
    await page.getByText("Only numbers are stored").waitFor();
  });

  it("shows a one-line summary in the chat that updates as the user types", async () => {
    await signIn(`#/chat/${id}`);
    await page.locator(".meter .words b").waitFor();
    const before = await page.locator(".meter .words b").innerText();
    await composer().fill("A question of quite a few words that was not there before, and that costs some tokens. ".repeat(6));
    await expect.poll(() => page.locator(".meter .words b").innerText()).not.toBe(before);
    await page.locator(".meter").click();
    await page.locator(".rendered .section.question").getByText("quite a few words").waitFor();
  });
});

describe("conversations and search", () => {
  it("searches by keyword and by meaning, and shows hits in the conversation", async () => {
    const id = await thread("Orchard");
    await add(id, [...journal(120), { role: "user", text: "The quinces ripen in October." }, ...journal(120)]);
    await signIn("#/threads");
    await page.getByRole("searchbox").fill("quinces");
    await page.locator(".hits mark").getByText("quinces").waitFor();
    await page.getByRole("button", { name: "Meaning" }).click();
    await page.getByRole("searchbox").fill("When do the quinces ripen?");
    await page.locator(".hits .snippet").getByText("The quinces ripen in October.").first().click();
    await page.locator(".message.hit").getByText("The quinces ripen").waitFor();
    await page.getByRole("button", { name: "Show the newest messages" }).waitFor({ state: "attached" });
    const gaps = async () => {
      const seqs = await shownSeqs();
      return seqs.filter((seq, index) => seq !== (seqs[0] ?? 0) + index);
    };
    await expect.poll(gaps).toEqual([]);
  });

  it("follows a link that is clicked before the search has updated the address", async () => {
    const id = await thread("Impatient");
    await signIn("#/threads");
    await page.getByRole("searchbox").fill("stove");
    await page.waitForURL((url) => url.hash.includes("q=stove"));
    await page.evaluate(async (to) => {
      const box = document.querySelector<HTMLInputElement>("#search");
      if (!box) throw new Error("no search field");
      box.value = "stoves";
      box.dispatchEvent(new Event("input", { bubbles: true }));
      // The page starts its delayed update after it has painted, which takes two frames.
      for (let frame = 0; frame < 2; frame += 1) await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      // Blocks the page until the delayed update of the address is due, then follows the link.
      const until = performance.now() + 300;
      while (performance.now() < until);
      location.hash = to;
    }, `#/chat/${id}`);
    await composer().waitFor();
    await expect.poll(() => new URL(page.url()).hash).toBe(`#/chat/${id}`);
  });

  it("imports a dropped file, reports what it contains, and exports", async () => {
    await signIn("#/threads");
    const lines = [
      { messages: [{ role: "user", content: "imported question" }, { role: "assistant", content: "imported answer" }] },
    ].map((line) => JSON.stringify(line)).join("\n");
    const data = await page.evaluateHandle((text) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([text], "<img src=x onerror=alert(1)>.jsonl"));
      return transfer;
    }, lines);
    await page.dispatchEvent(".drop", "drop", { dataTransfer: data });
    await page.getByRole("dialog").getByText("2 new, 0 already present").waitFor();
    await page.getByRole("dialog").getByText("<img src=x onerror=alert(1)>").waitFor();
    await page.keyboard.press("Escape");
    const downloading = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export everything" }).click();
    const file = join(served.folder, "export.jsonl");
    await (await downloading).saveAs(file);
    expect(await readFile(file, "utf8")).toContain("imported answer");
  });

  it("reports why a file cannot be imported", async () => {
    expectsErrors = true; // The browser logs the response with status 400.
    await signIn("#/threads");
    const folder = join(served.folder, "files");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "picture.png"), "\u0000not a conversation");
    await page.locator('input[type="file"]').setInputFiles(join(folder, "picture.png"));
    await page.getByRole("dialog").locator(".problem").waitFor();
  });
});

describe("activity, assistants and statistics", () => {
  it("shows the steps of a turn", async () => {
    const id = await thread("Sums again");
    const turn = (await served.call("POST", "v1/agents/general/turns", { text: "What is 17 * 24?", thread: id })) as { turn: string };
    await signIn(`#/activity/${id}`);
    await page.locator(".turns").getByText("What is 17 * 24?").click();
    await page.waitForURL((url) => url.hash.includes(turn.turn));
    const step = page.locator(".timeline li.tool").first();
    await step.locator("summary").click();
    await step.locator("pre").filter({ hasText: "408" }).waitFor();
    await page.getByText("Completed").waitFor();
    await page.getByRole("button", { name: "Assistant graph" }).click();
    await page.locator(".graph .node.model").first().waitFor();
  });

  it("shows statistics about all conversations", async () => {
    await signIn("#/analytics");
    await page.locator(".bars dt").getByText("assistant").first().waitFor();
    const statistics = (await served.call("GET", "v1/analytics")) as { threads: number };
    await expect.poll(() => page.locator(".tile").first().innerText()).toContain(String(statistics.threads));
  });

  it("speaks Spanish", async () => {
    await signIn("#/threads");
    await page.getByLabel("Language").selectOption("es");
    await page.getByRole("heading", { name: "Conversaciones y búsqueda" }).waitFor();
    await expect.poll(() => page.evaluate(() => document.documentElement.lang)).toBe("es");
    await page.reload();
    await page.getByRole("heading", { name: "Conversaciones y búsqueda" }).waitFor();
  });

  it("erases everything about a user only once the user's name has been typed", async () => {
    await signIn("#/threads");
    await page.getByRole("button", { name: "Erase all my data" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("What stays").waitFor();
    await dialog.getByRole("button", { name: "Erase for good" }).click();
    await dialog.locator(".problem").waitFor();
    await dialog.getByRole("textbox").fill("me");
    await dialog.getByRole("button", { name: "Erase for good" }).click();
    await page.getByText("There are no conversations yet.").waitFor();
    expect(await served.call("GET", "v1/threads")).toMatchObject({ data: [] });
  });
});
