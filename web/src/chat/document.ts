/** What an attached file is. */

/** The bytes that are examined. */
const START_BYTES = 8_192;
/** The types that the server recognises by the name of the file. */
const KNOWN = /\.(txt|text|md|markdown|html?|xhtml)$/i;

/**
 * Returns the media type with which a file is uploaded: text of a format that the server does not know, such as CSV or JSON, is uploaded
 * as plain text. Returns `null` for the file's own type, which the server may reject, and `image` for a picture.
 */
export async function documentType(file: File): Promise<"text/plain" | "image" | null> {
  if (file.type.startsWith("image/")) return "image";
  if (KNOWN.test(file.name)) return null;
  return isText(new Uint8Array(await file.slice(0, START_BYTES).arrayBuffer())) ? "text/plain" : null;
}

export function isText(start: Uint8Array): boolean {
  if (start.includes(0)) return false;
  try {
    // The last character may be cut off.
    new TextDecoder("utf-8", { fatal: true }).decode(start, { stream: true });
    return true;
  } catch {
    return false;
  }
}
