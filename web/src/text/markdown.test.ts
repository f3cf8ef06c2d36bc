import { fromMarkdown } from "mdast-util-from-markdown";
import { expect, it } from "vitest";
import { lazyLines } from "./markdown";

const linesAfter = (text: string) => lazyLines(fromMarkdown(text), text).map((start) => text.slice(start).split("\n")[0]);

it("finds paragraphs that follow a list without a blank line", () => {
  expect(linesAfter("1. one\n2. two\nA note\non two lines")).toEqual(["A note"]);
  expect(linesAfter("- one\n  - two\nA note\n- three\nAnother")).toEqual(["A note", "Another"]);
});

it("leaves the text of list items and quotes as it is", () => {
  for (const text of ["1. one\n   more of one\n2. two", "- one\n\nA note", "> - one\n> more", "- ```\n  a\n  ```\n- b", "one\ntwo"]) expect(linesAfter(text), text).toEqual([]);
});
