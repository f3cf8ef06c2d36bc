import { expect, it } from "vitest";
import { highlight } from "./highlight";

it("marks the byte ranges from the server", () => {
  const text = "El café está en la Señal 😀 end";
  const start = new TextEncoder().encode("El ").length;
  const marked = highlight(text, [
    { start: new TextEncoder().encode("El café está en la ").length, end: new TextEncoder().encode("El café está en la Señal").length },
    { start, end: start + new TextEncoder().encode("café").length },
  ]);
  expect(marked.filter(({ isMatch }) => isMatch).map((piece) => piece.text)).toEqual(["café", "Señal"]);
  expect(marked.map((piece) => piece.text).join("")).toBe(text);
  expect(highlight("abc", [{ start: 1, end: 99 }]).map((piece) => piece.text)).toEqual(["a", "bc"]);
});
