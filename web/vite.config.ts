import { defineConfig } from "vitest/config";

/** The server that `npm run dev` forwards requests to. */
const SERVER = process.env["THREADKEEP_SERVER"] ?? "http://127.0.0.1:7437";

export default defineConfig({
  // Relative, so that the page also works under a path prefix of a proxy.
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2023",
    // The page's content security policy allows no inline code, and `data:` only for images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
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
