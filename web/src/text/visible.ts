/**
 * Puts a dot in place of each invisible character that changes how text is displayed: control characters, and marks that reverse the
 * direction of text, which make `exe.gpj` look like `jpg.exe`. For names and titles, which appear next to the page's own text.
 */
// eslint-disable-next-line no-control-regex -- these are the characters to find
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

export function visibleLine(text: string, maxCharacters = 300): string {
  const line = text.replace(/\s+/g, " ").replace(HIDDEN, "\u00b7").trim();
  const characters = Array.from(line);
  return characters.length > maxCharacters ? characters.slice(0, maxCharacters - 1).join("") + "…" : line;
}

/** Returns a name of the API as a heading: `tipo_tesis` as "Tipo tesis". */
export function heading(name: string): string {
  const words = name.replaceAll("_", " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
