/** The address of a view. It is in the fragment of the URL, so that the server does not need to know the views. */
import { signal } from "@preact/signals";

export type Route =
  | { view: "chat"; thread: string | null; at: number | null; agent: string | null }
  | { view: "context"; thread: string | null; turn: string | null; question: string | null }
  | { view: "threads"; query: string }
  | { view: "activity"; thread: string | null; turn: string | null }
  | { view: "assistants"; agent: string | null }
  | { view: "analytics" };

export function parseRoute(fragment: string): Route {
  const [path = "", search = ""] = fragment.replace(/^#\/?/, "").split("?", 2);
  const [view, first, second] = path.split("/").map(decode);
  const params = new URLSearchParams(search);
  switch (view) {
    case "context":
      return { view, thread: first || null, turn: second || null, question: params.get("q") };
    case "threads":
      return { view, query: params.get("q") ?? "" };
    case "activity":
      return { view, thread: first || null, turn: second || null };
    case "assistants":
      return { view, agent: first || null };
    case "analytics":
      return { view };
    default: {
      const at = Number(params.get("at"));
      const isPosition = Number.isSafeInteger(at) && at > 0;
      return { view: "chat", thread: first || null, at: isPosition ? at : null, agent: params.get("assistant") };
    }
  }
}

export function formatRoute(route: Route): string {
  const join = (...parts: (string | null)[]) =>
    "#/" + parts.filter((part) => part !== null).map(encodeURIComponent).join("/");
  const query = (params: Record<string, string | number | null>) => {
    const set = Object.entries(params).filter(([, value]) => value !== null && value !== "");
    return set.length > 0 ? "?" + new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString() : "";
  };
  switch (route.view) {
    case "chat":
      return join("chat", route.thread) + query({ at: route.at, assistant: route.agent });
    case "context":
      return join("context", route.thread, route.thread === null ? null : route.turn) + query({ q: route.question });
    case "threads":
      return join("threads") + query({ q: route.query });
    case "activity":
      return join("activity", route.thread, route.thread === null ? null : route.turn);
    case "assistants":
      return join("assistants", route.agent);
    case "analytics":
      return join("analytics");
  }
}

export const chatWith = (thread: string | null, at: number | null = null): Route => ({ view: "chat", thread, at, agent: null });

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

const initial: Route = { view: "chat", thread: null, at: null, agent: null };
export const route = signal<Route>(initial);

export function navigate(to: Route, how: "push" | "replace" = "push"): void {
  const address = formatRoute(to);
  if (address === location.hash) return;
  if (how === "replace") {
    // The user may have left the view that replaces its address, while its delayed work was not cancelled yet.
    if (parseRoute(location.hash).view !== to.view) return;
    history.replaceState(null, "", address);
    route.value = to;
  } else location.hash = address;
}

export function startRouter(): void {
  route.value = parseRoute(location.hash);
  addEventListener("hashchange", () => (route.value = parseRoute(location.hash)));
}
