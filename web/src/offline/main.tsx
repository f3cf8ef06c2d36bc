/** The page without a server: the same page, with the engine in this browser. A service worker serves it without a connection. */
import { openEngine } from "../api/engine";
import { OfflineClient } from "../api/offline";
import { messageOf, runOffline } from "../app/session";
import { showPage } from "../app/show";

const BASE = new URL("./", location.href);

try {
  const { engine, store } = await openEngine(BASE);
  runOffline(new OfflineClient(engine, store));
  showPage();
  // Otherwise the browser may delete the conversations when its disk is full.
  void navigator.storage.persist().catch(() => false);
  await registerWorker();
} catch (error) {
  const root = document.getElementById("app");
  if (root) root.textContent = `Threadkeep cannot run in this browser: ${messageOf(error)}`;
}

/** The content security policy allows no other address for a script. */
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL(url: string): string };
}

async function registerWorker(): Promise<void> {
  const address = new URL("worker.js", BASE).href;
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  const policy = trustedTypes?.createPolicy("threadkeep-offline", {
    createScriptURL: (url) => {
      if (url !== address) throw new TypeError("not the worker of this page");
      return url;
    },
  });
  try {
    await navigator.serviceWorker.register(policy ? policy.createScriptURL(address) : address, { type: "module" });
  } catch {
    // Without a worker, for example in a private window, the page works as long as its server can be reached.
  }
}
