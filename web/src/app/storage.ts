/** Storage that survives a reload. A browser may deny access to it, for example in a private window; then nothing is kept. */

function guarded<T>(access: () => T, otherwise: T): T {
  try {
    return access();
  } catch {
    return otherwise;
  }
}

const PREFIX = "threadkeep.";

export function load(name: string): string | null {
  return guarded(() => localStorage.getItem(PREFIX + name), null);
}

export function store(name: string, value: string | null): void {
  guarded(() => {
    if (value === null || value === "") localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  }, undefined);
}

/** Loads a value that was stored for this tab only. */
export function loadForTab(name: string): unknown {
  const text = guarded(() => sessionStorage.getItem(PREFIX + name), null);
  return text === null ? null : guarded(() => JSON.parse(text) as unknown, null);
}

export function storeForTab(name: string, value: unknown): void {
  guarded(() => {
    if (value === null) sessionStorage.removeItem(PREFIX + name);
    else sessionStorage.setItem(PREFIX + name, JSON.stringify(value));
  }, undefined);
}
