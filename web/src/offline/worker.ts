/** The service worker of the page without a server: serves the files of the page, so that it opens without a connection. */

/** The parts of a service worker's environment that this one uses. */
interface Scope {
  addEventListener(type: "install" | "activate", listener: (event: { waitUntil(work: Promise<unknown>): void }) => void): void;
  addEventListener(type: "fetch", listener: (event: { request: Request; respondWith(response: Promise<Response>): void }) => void): void;
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
}

/** The files, relative to the worker, and a digest of their content. The build sets both. */
declare const __FILES__: string[];
declare const __VERSION__: string;

const scope = self as unknown as Scope;
const PREFIX = "threadkeep-offline-";
const CACHE = PREFIX + __VERSION__;
const PAGE = new URL("./", location.href).href;
const FILES = new Set(__FILES__.map((file) => new URL(file, location.href).href));

scope.addEventListener("install", (event) => {
  const store = async () => {
    const cache = await caches.open(CACHE);
    await cache.addAll([...FILES].map((file) => new Request(file, { cache: "reload" })));
    await scope.skipWaiting();
  };
  event.waitUntil(store());
});

scope.addEventListener("activate", (event) => {
  const clean = async () => {
    const outdated = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
    await Promise.all(outdated.map((name) => caches.delete(name)));
    await scope.clients.claim();
  };
  event.waitUntil(clean());
});

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const address = request.mode === "navigate" ? PAGE : request.url.replace(/[?#].*$/, "");
  // Calls of the API go to the server.
  if (request.method !== "GET" || !FILES.has(address)) return;
  const respond = async () => {
    const cache = await caches.open(CACHE);
    return (await cache.match(address)) ?? fetch(request);
  };
  event.respondWith(respond());
});
