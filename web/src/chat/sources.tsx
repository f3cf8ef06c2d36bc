/** A source of an answer, with the passage that was cited. */
import { useEffect, useState } from "preact/hooks";
import type { Source } from "../api/types";
import { chatWith, formatRoute } from "../app/router";
import { client, messageOf } from "../app/session";
import { day, number, t } from "../i18n";
import type { Key } from "../i18n";
import { Markdown } from "../text/markdown";
import { safeUrl } from "../text/url";
import { heading, visibleLine } from "../text/visible";
import { Dialog, Loading, Problem, pretty } from "../ui/controls";

const MAX_PASSAGES = 100;

/** The title that the engine gives to a message: who wrote it, and on which day. */
const SAID_BY = /^said by (.+) on (\d{4}-\d{2}-\d{2})$/;

/** Returns the title of a source. That of a message is in the user's language, with the date as the page writes dates. */
export function sourceTitle(source: Source, limit?: number): string {
  const said = source.kind === "message" ? SAID_BY.exec(source.title ?? "") : null;
  if (!said) return visibleLine(source.title ?? source.id, limit);
  const [, name = "", on = ""] = said;
  const speaker = name === "the user" ? t("the_user") : name === "the assistant" ? t("the_assistant") : name;
  return visibleLine(t("message_said_by", { name: speaker, day: day(on) }), limit);
}

/** Sources with the same title, which share a chip: what each shows, and the numbers with which it is cited. */
export interface SourceGroup {
  title: string;
  sources: { source: Source; numbers: number[] }[];
}

export function groupsOf(numbered: Map<number, Source>): SourceGroup[] {
  const groups = new Map<string, SourceGroup>();
  for (const [number, source] of numbered) {
    const title = sourceTitle(source, 80);
    const group = groups.get(title) ?? { title, sources: [] };
    groups.set(title, group);
    const known = group.sources.find((other) => isSame(other.source, source));
    if (known) known.numbers.push(number);
    else group.sources.push({ source, numbers: [number] });
  }
  return [...groups.values()];
}

/** Whether two sources show the same passage: other fields than the number of the citation are equal. */
function isSame(one: Source, other: Source): boolean {
  const compared = ({ kind, id, fields }: Source) => JSON.stringify([kind, id, Object.entries((fields ?? {}) as Record<string, unknown>).filter(([name]) => name !== "cited_as").sort(([a], [b]) => (a < b ? -1 : 1))]);
  return compared(one) === compared(other);
}

type Passage = { state: "loading" } | { state: "none" } | { state: "found"; text: string } | { state: "failed"; problem: string };

export function SourceDialog({ source, question, agent, onClose }: { source: Source; question: string; agent: string; onClose: () => void }) {
  const fields = (source.fields ?? {}) as Record<string, unknown>;
  const [passage, setPassage] = useState<Passage>({ state: "loading" });
  const thread = typeof fields["thread"] === "string" ? fields["thread"] : null;
  const seq = typeof fields["seq"] === "number" ? fields["seq"] : null;
  useEffect(() => {
    let isCurrent = true;
    passageOf(source, thread, seq, question, agent).then(
      (text) => isCurrent && setPassage(text === null ? { state: "none" } : { state: "found", text }),
      (error: unknown) => isCurrent && setPassage({ state: "failed", problem: messageOf(error) }),
    );
    return () => {
      isCurrent = false;
    };
  }, [source, thread, seq, question, agent]);
  const shown = Object.entries(fields).filter(([name]) => !["thread", "seq", "cited_as", "text"].includes(name));
  return (
    <Dialog title={sourceTitle(source)} onClose={onClose} wide>
      {passage.state === "loading" && <Loading />}
      {passage.state === "failed" && <Problem text={passage.problem} />}
      {passage.state === "none" && <p>{t("passage_gone")}</p>}
      {passage.state === "found" && (
        <blockquote class="passage" tabIndex={0}>
          <Markdown text={passage.text} />
        </blockquote>
      )}
      {thread !== null && seq !== null && (
        <p>
          <a href={formatRoute(chatWith(thread, seq))} onClick={onClose}>
            {t("show_in_place")}
          </a>
        </p>
      )}
      <dl class="facts">
        <dt>{t("kind")}</dt>
        <dd>{kindName(source.kind)}</dd>
        <dt>{t(source.kind === "tesis" ? "field_registro" : "id")}</dt>
        <dd>{visibleLine(source.id)}</dd>
        {/* A score above 1 is a rank among results, which is no measure by itself. */}
        {source.score != null && source.score <= 1 && (
          <>
            <dt>{t("score")}</dt>
            <dd>{number(source.score, 3)}</dd>
          </>
        )}
        {shown.map(([name, value]) => (
          <Field key={name} name={name} value={value} />
        ))}
      </dl>
    </Dialog>
  );
}

/** The kinds of sources of the engine. Those of assistants have names of their own. */
const KINDS: Record<string, Key> = { message: "kind_message", document: "kind_document" };

function kindName(kind: string): string {
  const key = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  return key ? t(key) : visibleLine(heading(kind));
}

function Field({ name, value }: { name: string; value: unknown }) {
  const href = typeof value === "string" ? safeUrl(value) : null;
  return (
    <>
      <dt>{visibleLine(fieldName(name))}</dt>
      <dd>
        {href === null ? (
          visibleLine(pretty(value), 2000)
        ) : (
          <a href={href} target="_blank" rel="noopener noreferrer nofollow">
            {visibleLine(href)}
          </a>
        )}
      </dd>
    </>
  );
}

/** The fields of legal sources, whose names are Spanish words. */
const FIELDS: Record<string, Key> = { tipo_tesis: "field_type", epoca: "field_epoca", anio: "field_year", clave: "field_clave" };

function fieldName(name: string): string {
  const key = FIELDS[name];
  return key ? t(key) : heading(name);
}

/** Returns the cited text; `null` if it is no longer available. */
async function passageOf(source: Source, thread: string | null, seq: number | null, question: string, agent: string): Promise<string | null> {
  const fields = (source.fields ?? {}) as Record<string, unknown>;
  if (typeof fields["text"] === "string") return fields["text"];
  if (thread !== null && seq !== null) return (await client.message(thread, seq)).text;
  if (source.kind !== "document") return client.sourceText(agent, source.kind, source.id);
  const found = await client.passages(question || (source.title ?? ""), MAX_PASSAGES);
  return found.find(({ title }) => title === source.title)?.text ?? null;
}
