import { describe, expect, it } from "vitest";
import { documentType } from "./document";

const file = (name: string, content: BlobPart, type = "") => documentType(new File([content], name, { type }));

describe("attached files", () => {
  it("are uploaded as plain text if they are text of another format", async () => {
    expect(await file("notes.md", "# x")).toBeNull();
    expect(await file("page.HTML", "<p>")).toBeNull();
    expect(await file("data.csv", "a;b\né;1", "text/csv")).toBe("text/plain");
    expect(await file("data.json", "{}", "application/json")).toBe("text/plain");
    expect(await file("Makefile", "all:")).toBe("text/plain");
  });

  it("that are not text keep their type, which the server rejects", async () => {
    expect(await file("paper.pdf", new Uint8Array([37, 80, 68, 70, 0, 255]), "application/pdf")).toBeNull();
    expect(await file("latin1.csv", new Uint8Array([97, 233, 97]))).toBeNull();
    expect(await file("photo.md", "x", "image/png")).toBe("image");
  });

  it("may be cut within a character when they are examined", async () => {
    expect(await file("long.csv", "x" + "é".repeat(8192))).toBe("text/plain");
  });
});
