/** The UI strings in the user's language. */
import { effect, signal } from "@preact/signals";
import { load, store } from "../app/storage";
import { en } from "./en";
import { es } from "./es";

export type Language = "en" | "es";
export type Key = keyof typeof en;

const STRINGS: Record<Language, Record<Key, string>> = { en, es };

function preferred(): Language {
  const stored = load("language");
  if (stored === "en" || stored === "es") return stored;
  return navigator.languages.find((language) => /^(en|es)\b/.test(language))?.startsWith("es") ? "es" : "en";
}

export const language = signal<Language>("en");

export function initLanguage(): void {
  language.value = preferred();
  effect(() => {
    document.documentElement.lang = language.value;
  });
}

export function setLanguage(chosen: Language): void {
  language.value = chosen;
  store("language", chosen);
}

/** Returns a UI string. `{name}` is replaced by a parameter; `{count|one|many}` by one of two forms. */
export function t(key: Key, params: Record<string, string | number> = {}): string {
  return format(STRINGS[language.value][key], params);
}

export function format(text: string, params: Record<string, string | number>): string {
  const chosen = text.replace(/\{(\w+)\|([^|{}]*)\|((?:[^{}]|\{\w+\})*)\}/g, (_, name: string, one: string, many: string) =>
    params[name] === 1 ? one : many,
  );
  return chosen.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = params[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? number(value) : value;
  });
}

/** Returns the user's variant of the language, for numbers and dates. */
function locale(): string {
  const candidates = typeof navigator === "undefined" ? [] : navigator.languages;
  return candidates.find((candidate) => candidate.startsWith(language.value)) ?? language.value;
}

export function number(value: number, digits = 0): string {
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: digits }).format(value);
}

export function dollars(value: number): string {
  const digits = value !== 0 && Math.abs(value) < 0.01 ? 5 : 2;
  return new Intl.NumberFormat(locale(), { style: "currency", currency: "USD", maximumFractionDigits: digits }).format(value);
}

export function duration(ms: number): string {
  if (ms < 1000) return `${number(ms)} ms`;
  if (ms < 60_000) return `${number(ms / 1000, 1)} s`;
  return `${number(Math.floor(ms / 60_000))} min ${number(Math.round((ms % 60_000) / 1000))} s`;
}

export function dateTime(instant: string): string {
  const date = new Date(instant);
  return Number.isNaN(date.getTime()) ? instant : unbroken(new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short" }).format(date));
}

/** Formats a date of the form 2026-05-11 in the same way as the date of `dateTime`. */
export function day(date: string): string {
  const parsed = new Date(`${date}T00:00:00Z`);
  return Number.isNaN(parsed.getTime()) ? date : unbroken(new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeZone: "UTC" }).format(parsed));
}

/** Formats an instant as a time, with the date if it is not today. */
export function timeOf(instant: string, now = new Date()): string {
  return new Date(instant).toDateString() === now.toDateString() ? shortTime(instant, now) : dateTime(instant);
}

/** Formats an instant as a time if it is today, otherwise as a date. */
export function shortTime(instant: string, now = new Date()): string {
  const date = new Date(instant);
  if (Number.isNaN(date.getTime())) return instant;
  const isToday = date.toDateString() === now.toDateString();
  const isThisYear = date.getFullYear() === now.getFullYear();
  const options: Intl.DateTimeFormatOptions = isToday
    ? { hour: "2-digit", minute: "2-digit" }
    : { day: "numeric", month: "short", ...(isThisYear ? {} : { year: "numeric" }) };
  return unbroken(new Intl.DateTimeFormat(locale(), options).format(date));
}

/** Keeps a date on one line. */
function unbroken(date: string): string {
  return date.replaceAll(" ", "\u00a0");
}
