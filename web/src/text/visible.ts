/**
 * Makes characters visible that change how text is shown without being seen: controls, and marks that reverse the direction of
 * text, with which `exe.gpj` looks like `jpg.exe`. For names and titles, which stand beside text of the page.
 */
// eslint-disable-next-line no-control-regex -- these characters are what is looked for
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

export function visibleLine(text: string, maxCharacters = 300): string {
  const line = text.replace(/\s+/g, " ").replace(HIDDEN, "\u00b7").trim();
  const characters = Array.from(line);
  return characters.length > maxCharacters ? characters.slice(0, maxCharacters - 1).join("") + "…" : line;
}
