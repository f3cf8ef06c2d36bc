/** The secret that `threadkeep open` and other programs pass in the fragment of the URL. */

export interface Handover {
  secret: string;
  agent: string | null;
}

/** Returns the secret in a fragment such as `#token=…&assistant=…`; null if there is none. */
export function readHandover(fragment: string): Handover | null {
  const params = new URLSearchParams(fragment.replace(/^#\/?/, ""));
  const secret = params.get("token");
  return secret ? { secret, agent: params.get("assistant") } : null;
}

/** Removes the secret from the address, so that it remains neither in the history nor in a copied address. */
export function takeHandover(): Handover | null {
  const handover = readHandover(location.hash);
  if (handover) {
    const rest = handover.agent ? `#/chat?${new URLSearchParams({ assistant: handover.agent }).toString()}` : "";
    history.replaceState(null, "", location.pathname + location.search + rest);
  }
  return handover;
}
