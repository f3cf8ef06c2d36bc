import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** The server that `npm run dev` forwards requests to. */
const SERVER = process.env["THREADKEEP_SERVER"] ?? "http://127.0.0.1:7437";

/** The engine of the page without a server, which `cargo xtask web --offline` builds. Without it, that page is left out. */
const ENGINE = fileURLToPath(new URL("public/offline/engine", import.meta.url));
const HAS_ENGINE = existsSync(ENGINE);
const WORKER = "offline/worker.js";

/** Gives the service worker the list of files that the page without a server consists of. */
function listFilesForWorker(): Plugin {
  return {
    name: "list-files-for-worker",
    apply: "build",
    // Once all files have their content.
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        const worker = bundle[WORKER];
        if (worker?.type !== "chunk") return;
        const built = Object.values(bundle).filter(({ fileName }) => fileName.startsWith("assets/") || fileName === "offline/index.html");
        const files = new Map<string, string | Uint8Array>([
          ...built.map((file) => [file.fileName, file.type === "chunk" ? file.code : file.source] as const),
          ...readdirSync(ENGINE).map((name) => [`offline/engine/${name}`, readFileSync(`${ENGINE}/${name}`)] as const),
        ]);
        const digest = createHash("sha256");
        for (const name of [...files.keys()].sort()) digest.update(`${name}\n`).update(files.get(name) ?? "");
        // Relative to the worker. The page itself has the address of its folder.
        const relative = (name: string) => (name === "offline/index.html" ? "./" : name.startsWith("offline/") ? name.replace("offline/", "./") : `../${name}`);
        worker.code = worker.code
          .replace("__FILES__", JSON.stringify([...files.keys()].sort().map(relative)))
          .replace("__VERSION__", JSON.stringify(digest.digest("hex").slice(0, 16)));
      },
    },
  };
}

export default defineConfig({
  // Relative, so that the page also works under a path prefix of a proxy.
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  define: { __HAS_OFFLINE_PAGE__: JSON.stringify(HAS_ENGINE) },
  plugins: [listFilesForWorker()],
  build: {
    target: "es2023",
    // The page's content security policy allows no inline code, and `data:` only for images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      input: { index: "index.html", ...(HAS_ENGINE ? { offline: "offline/index.html", worker: "src/offline/worker.ts" } : {}) },
      output: { entryFileNames: ({ name }) => (name === "worker" ? WORKER : "assets/[name]-[hash].js") },
    },
  },
  server: { proxy: { "/v1": SERVER, "/docs": SERVER } },
  test: {
    projects: [
      { extends: true, test: { name: "unit", include: ["src/**/*.test.ts"], environment: "node" } },
      {
        extends: true,
        test: {
          name: "browser",
          include: ["tests/browser/**/*.test.ts"],
          environment: "node",
          // One server and one browser serve all user journeys, so they run one after the other.
          fileParallelism: false,
          testTimeout: 60_000,
          // A test that fails, then passes, is reported as such. One that fails twice fails the run.
          retry: 1,
          hookTimeout: 120_000,
          // The default of one second is too short for a reload on a busy machine.
          expect: { poll: { timeout: 20_000 } },
        },
      },
    ],
  },
});
