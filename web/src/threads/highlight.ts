/** Splits a snippet at its matches. The server counts UTF-8 bytes, JavaScript counts UTF-16 code units. Pure. */
export function highlight(text: string, matches: { start: number; end: number }[]): { text: string; isMatch: boolean }[] {
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  const pieces: { text: string; isMatch: boolean }[] = [];
  let at = 0;
  const push = (end: number, isMatch: boolean) => {
    if (end > at) pieces.push({ text: decoder.decode(bytes.slice(at, end)), isMatch });
    at = Math.max(at, end);
  };
  for (const { start, end } of [...matches].sort((one, other) => one.start - other.start)) {
    push(Math.min(start, bytes.length), false);
    push(Math.min(end, bytes.length), true);
  }
  push(bytes.length, false);
  return pieces;
}
