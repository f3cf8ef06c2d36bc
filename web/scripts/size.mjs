/** Fails if the first view exceeds its size limit: the page and all files that it loads, compressed. */
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT_BYTES = 250 * 1024;
const dist = new URL("../dist/", import.meta.url);
const index = readFileSync(new URL("index.html", dist), "utf8");
const loaded = [...index.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map((match) => match[1] ?? "");
if (loaded.length < 2) throw new Error("the page loads no files");
const sizes = ["index.html", ...loaded].map((name) => ({ name, bytes: gzipSync(readFileSync(new URL(name, dist)), { level: 9 }).length }));
const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
for (const { name, bytes } of sizes) console.log(`${(bytes / 1024).toFixed(1).padStart(7)} KB  ${name}`);
console.log(`${(total / 1024).toFixed(1).padStart(7)} KB  first view, compressed; the limit is ${LIMIT_BYTES / 1024} KB`);
if (total > LIMIT_BYTES) process.exit(1);
