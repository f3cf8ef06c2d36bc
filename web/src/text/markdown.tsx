/**
 * Renders the Markdown of messages. The text is parsed into a syntax tree, and the tree is rendered as nodes: no text becomes
 * HTML, so the content of a message is shown and never executed. HTML in a message is shown as text.
 */
import { useMemo } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTable } from "micromark-extension-gfm-table";
import type { Nodes, Parent, Root } from "mdast";
import { safeUrl } from "./url";

/** Longer text is shown unparsed, because parsing time grows with the length. */
const MAX_CHARACTERS = 100_000;
/** Deeper nesting is shown as text. */
const MAX_DEPTH = 40;

export type Cite = (number: number) => ComponentChildren | null;

export function Markdown({ text, cite }: { text: string; cite?: Cite | undefined }) {
  const parsed = useMemo(() => parse(text), [text]);
  if (!parsed) return <p class="plain">{text}</p>;
  const { tree, source } = parsed;
  return <div class="markdown">{render(tree, { cite, source, definitions: definitionsOf(tree), headings: headingsOf(tree) }, 0)}</div>;
}

interface Parsed {
  tree: Root;
  /** The text that the positions in the tree refer to. */
  source: string;
}

function parse(text: string): Parsed | null {
  if (text.length > MAX_CHARACTERS || nesting(text) > MAX_DEPTH) return null;
  const tree = treeOf(text);
  const lazy = lazyLines(tree, text);
  if (lazy.length === 0) return { tree, source: text };
  const source = [0, ...lazy].map((start, index) => text.slice(start, lazy[index])).join("\n");
  return { tree: treeOf(source), source };
}

function treeOf(text: string): Root {
  return fromMarkdown(text, { extensions: [gfmTable()], mdastExtensions: [gfmTableFromMarkdown()] });
}

/**
 * Returns where lines start that follow the text of a list item without indentation. Markdown adds them to the item, but their
 * author means a paragraph after the list.
 */
export function lazyLines(node: Parent, text: string): number[] {
  return node.children.flatMap((child) => {
    if (child.type === "paragraph" && node.type === "listItem") {
      const { start, end } = child.position ?? {};
      const at = text.slice(start?.offset, end?.offset).search(/\n\S/);
      return at < 0 ? [] : [(start?.offset ?? 0) + at + 1];
    }
    return child.type === "list" || child.type === "listItem" ? lazyLines(child, text) : [];
  });
}

/** Estimates the depth of quotes and lists from how the lines start, because parsing deep nesting can take a long time. */
function nesting(text: string): number {
  let depth = 0;
  for (const line of text.split("\n")) {
    const start = /^[\s>*+-]*/.exec(line)?.[0] ?? "";
    depth = Math.max(depth, start.replace(/\s/g, "").length > 3 && !/^\s*([-*])(\s*\1)+\s*$/.test(line) ? start.replace(/\s/g, "").length : 0);
  }
  return depth;
}

interface Context {
  /** The depths of the headings, ascending. */
  headings: number[];
  cite: Cite | undefined;
  source: string;
  definitions: Map<string, string>;
}

function definitionsOf(tree: Root): Map<string, string> {
  const found = new Map<string, string>();
  for (const node of tree.children) if (node.type === "definition") found.set(node.identifier, node.url);
  return found;
}

function headingsOf(tree: Root): number[] {
  const depths = tree.children.flatMap((node) => (node.type === "heading" ? [node.depth] : []));
  return [...new Set(depths)].sort();
}

function sourceOf(node: Nodes, context: Context): string {
  const { start, end } = node.position ?? {};
  return context.source.slice(start?.offset ?? 0, end?.offset ?? 0);
}

function children(node: Parent, context: Context, depth: number): ComponentChildren {
  return node.children.map((child) => render(child, context, depth + 1));
}

function render(node: Nodes, context: Context, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return sourceOf(node, context);
  switch (node.type) {
    case "root":
      return children(node, context, depth);
    case "paragraph":
      return <p>{children(node, context, depth)}</p>;
    case "heading": {
      // Headings in a message start one level below the page's own headings, and never skip a level.
      const Tag = (["h2", "h3", "h4"] as const)[context.headings.indexOf(node.depth)] ?? "h5";
      return <Tag>{children(node, context, depth)}</Tag>;
    }
    case "text":
      return cited(node.value, context.cite);
    case "emphasis":
      return <em>{children(node, context, depth)}</em>;
    case "strong":
      return <strong>{children(node, context, depth)}</strong>;
    case "inlineCode":
      return <code>{node.value}</code>;
    case "code":
      return (
        <pre tabIndex={0}>
          <code>{node.value}</code>
        </pre>
      );
    case "break":
      return <br />;
    case "blockquote":
      return <blockquote>{children(node, context, depth)}</blockquote>;
    case "list":
      return node.ordered ? <ol start={node.start ?? 1}>{children(node, context, depth)}</ol> : <ul>{children(node, context, depth)}</ul>;
    case "listItem":
      return <li>{children(node, context, depth)}</li>;
    case "thematicBreak":
      return <hr />;
    case "link":
      return <Link url={node.url}>{children(node, context, depth)}</Link>;
    case "linkReference": {
      const url = context.definitions.get(node.identifier);
      if (url !== undefined) return <Link url={url}>{children(node, context, depth)}</Link>;
      return sourceOf(node, context);
    }
    case "image":
      // Images are not loaded: a request would inform their host that the message was read.
      return <Link url={node.url}>{node.alt || node.url}</Link>;
    case "imageReference": {
      const url = context.definitions.get(node.identifier);
      return url === undefined ? sourceOf(node, context) : <Link url={url}>{node.alt || url}</Link>;
    }
    case "table":
      return (
        <div class="table" tabIndex={0} role="group">
          <table>
            <tbody>{children(node, context, depth)}</tbody>
          </table>
        </div>
      );
    case "tableRow":
      return <tr>{children(node, context, depth)}</tr>;
    case "tableCell":
      return <td>{children(node, context, depth)}</td>;
    case "definition":
      return null;
    default:
      return sourceOf(node, context);
  }
}

function Link({ url, children }: { url: string; children: ComponentChildren }) {
  const href = safeUrl(url);
  if (href === null) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {children}
    </a>
  );
}

function cited(text: string, cite: Cite | undefined): ComponentChildren {
  if (!cite) return text;
  return text.split(/(\[\d{1,3}\])/).map((piece) => {
    const number = /^\[(\d+)\]$/.exec(piece)?.[1];
    return (number === undefined ? null : cite(Number(number))) ?? piece;
  });
}
