import { effect, signal } from "@preact/signals";
import { load, store } from "./storage";

export type Theme = "light" | "dark";

const darkQuery = matchMedia("(prefers-color-scheme: dark)");
const stored = load("theme");
/** What the user chose; null to follow the system. */
const chosen = signal<Theme | null>(stored === "light" || stored === "dark" ? stored : null);
const system = signal<Theme>(darkQuery.matches ? "dark" : "light");

export function theme(): Theme {
  return chosen.value ?? system.value;
}

export function startTheme(): void {
  darkQuery.addEventListener("change", () => (system.value = darkQuery.matches ? "dark" : "light"));
  effect(() => {
    document.documentElement.dataset["theme"] = theme();
  });
}

export function toggleTheme(): void {
  chosen.value = theme() === "dark" ? "light" : "dark";
  store("theme", chosen.value);
}
