import { describe, expect, it } from "vitest";
import { en } from "./en";
import { es } from "./es";
import { format } from "./index";

const names = (text: string) => [...new Set([...text.matchAll(/\{(\w+)[|}]/g)].map((match) => match[1]))].sort();

describe("the UI strings", () => {
  it("have the same parameters in each language", () => {
    for (const [key, text] of Object.entries(en)) expect(names(es[key as keyof typeof en]), key).toEqual(names(text));
  });

  it("choose between two forms by number", () => {
    expect(format(es.fate_summarised, { count: 1 })).toBe("resumido");
    expect(format(es.fate_summarised, { count: 2 })).toBe("resumidos");
    expect(format("{count|1 message|{count} messages} of {name}", { count: 1, name: "Ana" })).toBe("1 message of Ana");
    expect(format("{count|1 message|{count} messages}", { count: 3 })).toBe("3 messages");
    expect(format("{name}", { name: "{count}" })).toBe("{count}");
  });
});
