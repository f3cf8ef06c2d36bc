/** All threads: search by words or by meaning, import, export and erasure. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Hit, Imported, RecalledTurn } from "../api/types";
import { loadMoreThreads, loadThreads, nextThreads, threads, threadsLoaded, threadsProblem } from "../app/open";
import { chatWith, formatRoute, navigate } from "../app/router";
import { client, isOffline, may, messageOf, noteFailure, signIn } from "../app/session";
import { titleOf } from "../chat/header";
import { dateTime, number, shortTime, t } from "../i18n";
import { visibleLine } from "../text/visible";
import { Confirm, Dialog, Empty, Loading, Problem, saveFile, toast } from "../ui/controls";
import { Icon } from "../ui/icons";
import { CopyActions } from "../offline/copy";
import { highlight } from "./highlight";
import { Latest, whileTyping } from "./latest";

type Results =
  | { by: "words"; query: string; hits: Hit[]; next: string | null; incomplete: boolean }
  | { by: "meaning"; turns: RecalledTurn[]; incomplete: boolean };

export function ThreadsView({ query }: { query: string }) {
  const [text, setText] = useState(query);
  const [by, setBy] = useState<"words" | "meaning">("words");
  const [isTyping, setTyping] = useState(false);
  const [results, setResults] = useState<Results | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isSearching, setSearching] = useState(false);
  const latest = useMemo(() => new Latest(), []);
  // The view writes the address itself while one types; then the field has newer text than the address.
  const written = useRef(query);
  useEffect(() => {
    if (query !== written.current) setText(query);
    written.current = query;
  }, [query]);
  useEffect(() => {
    const asked = text.trim();
    latest.run(async () => {
      try {
        setResults(asked ? await search(isTyping ? whileTyping(text) : asked, by) : null);
        setProblem(null);
      } catch (error) {
        noteFailure(error);
        setProblem(messageOf(error));
      }
      if (latest.isLast) setSearching(false);
    });
    if (!asked) return;
    written.current = asked;
    navigate({ view: "threads", query: asked }, "replace");
  }, [text, by, isTyping]);
  const write = (value: string) => {
    if (value === text) return;
    setSearching(true);
    setText(value);
    setTyping(by === "words");
  };
  const more = async () => {
    if (results?.by !== "words" || !results.next) return;
    const page = await client.search(results.query, { after: results.next });
    setResults({ ...results, hits: [...results.hits, ...page.hits], next: page.next ?? null });
  };
  return (
    <section class="page threads-view" aria-label={t("threads_and_search")} aria-busy={isSearching}>
      <header class="page-header">
        <h1>{t("threads_and_search")}</h1>
      </header>
      <div class="search-bar" role="search">
        <label class="search-field">
          <Icon name="search" />
          <span class="visually-hidden">{t("search")}</span>
          <input id="search" type="search" value={text} placeholder={t(by === "words" ? "search_words" : "search_meaning")} onInput={(event) => write(event.currentTarget.value)} onKeyDown={(event) => event.key === "Enter" && setTyping(false)} />
        </label>
        <div class="choice" role="group" aria-label={t("search_by")}>
          <span class="choice-label" aria-hidden="true">
            {t("search_by")}
          </span>
          <button type="button" aria-pressed={by === "words"} onClick={() => setBy("words")}>
            {t("by_words")}
          </button>
          <button type="button" aria-pressed={by === "meaning"} onClick={() => setBy("meaning")}>
            {t("by_meaning")}
          </button>
        </div>
      </div>
      {problem && <Problem text={problem} />}
      {results ? <ResultList results={results} onMore={() => void more()} /> : <ThreadList />}
    </section>
  );
}

async function search(text: string, by: "words" | "meaning"): Promise<Results> {
  if (by === "words") {
    const { hits, next, incomplete } = await client.search(text, {});
    return { by, query: text, hits, next: next ?? null, incomplete: incomplete.length > 0 };
  }
  const { turns, incomplete } = await client.recall(text, null, 30);
  return { by, turns, incomplete: incomplete.length > 0 };
}

function ResultList({ results, onMore }: { results: Results; onMore: () => void }) {
  const titles = new Map(threads.value.map((thread) => [thread.id, titleOf(thread)]));
  const found = results.by === "words" ? results.hits : results.turns;
  if (found.length === 0) {
    return (
      <Empty icon="search" title={t("nothing_found")}>
        <p>{t(results.by === "words" ? "nothing_found_words" : "nothing_found_meaning")}</p>
      </Empty>
    );
  }
  const isPart = results.by === "words" && results.next !== null;
  return (
    <>
      <p class="note" role="status">
        {t(isPart ? "first_results" : "n_results", { count: found.length })}
      </p>
      <ol class="hits" aria-label={t("hits")}>
        {found.map((hit) => (
          <li key={`${hit.thread}${hit.message.seq}`}>
            <a href={formatRoute(chatWith(hit.thread, hit.message.seq))}>
              <p class="where">
                <b>{titles.get(hit.thread) ?? t("thread")}</b>
                <span>#{number(hit.message.seq)}</span>
                <span>{hit.message.author ? visibleLine(hit.message.author, 40) : t(`role_${hit.message.role}`)}</span>
                <time dateTime={hit.message.created_at}>{shortTime(hit.message.created_at)}</time>
              </p>
              <Icon name="right" size={16} />
              <p class="snippet">
                {"snippet" in hit ? (
                  <>
                    {hit.snippet.cut_before && "…"}
                    {highlight(hit.snippet.text, hit.snippet.matches).map(({ text, isMatch }, index) => (isMatch ? <mark key={index}>{text}</mark> : text))}
                    {hit.snippet.cut_after && "…"}
                  </>
                ) : (
                  visibleLine(hit.message.text, 300)
                )}
              </p>
            </a>
          </li>
        ))}
      </ol>
      {results.incomplete && <p class="note">{t("index_incomplete")}</p>}
      {results.by === "words" && results.next && (
        <button type="button" class="load" onClick={onMore}>
          {t("more")}
        </button>
      )}
    </>
  );
}

function ThreadList() {
  useEffect(() => void loadThreads(), []);
  const [isErasing, setErasing] = useState(false);
  const current = signIn.value;
  const user = current.state === "in" ? current.caller.user : null;
  const exportAll = async () => {
    try {
      saveFile(await client.exportFile(), "threadkeep.jsonl");
    } catch (error) {
      toast(messageOf(error));
    }
  };
  return (
    <>
      {may("write") && <ImportDrop />}
      {threadsProblem.value && <Problem text={threadsProblem.value} />}
      {!threadsLoaded.value && <Loading />}
      {threadsLoaded.value && threads.value.length === 0 && (
        <Empty icon="threads" title={t("no_threads_yet")}>
          <a class="button primary" href={formatRoute(chatWith(null))}>
            {t("new_chat")}
          </a>
        </Empty>
      )}
      {threads.value.length > 0 && (
        <section class="all-threads">
          <h2>{t("threads")}</h2>
          <div class="table" tabIndex={0} role="region" aria-label={t("threads")}>
            <table class="threads">
              <thead>
                <tr>
                  <th scope="col">{t("title")}</th>
                  <th scope="col">{t("messages")}</th>
                  <th scope="col">{t("updated")}</th>
                  <th scope="col">{t("context")}</th>
                </tr>
              </thead>
              <tbody>
                {threads.value.map((thread) => (
                  <tr key={thread.id}>
                    <td>
                      <a href={formatRoute(chatWith(thread.id))} title={thread.key ? `${t("key")}: ${visibleLine(thread.key, 60)}` : undefined}>
                        {titleOf(thread)}
                      </a>
                    </td>
                    <td class="number">{number(thread.messages)}</td>
                    <td>
                      <time dateTime={thread.updated_at} title={dateTime(thread.updated_at)}>
                        {shortTime(thread.updated_at)}
                      </time>
                    </td>
                    <td>
                      <a class="icon-button" href={formatRoute({ view: "context", thread: thread.id, turn: null, question: null })} title={t("context")} aria-label={`${t("context")}: ${titleOf(thread)}`}>
                        <Icon name="eye" />
                      </a>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {nextThreads.value && (
        <button type="button" class="load" onClick={() => void loadMoreThreads()}>
          {t("more")}
        </button>
      )}
      {isOffline && <p class="note">{t("offline_note")}</p>}
      <footer class="data-actions">
        <button type="button" onClick={() => void exportAll()}>
          <Icon name="download" /> {t("export_all")}
        </button>
        {isOffline && <CopyActions />}
        {may("write") && user != null && (
          <button type="button" class="danger" onClick={() => setErasing(true)}>
            <Icon name="erase" /> {t(isOffline ? "erase_all_here" : "erase_all")}
          </button>
        )}
      </footer>
      {isErasing && user != null && <EraseAll user={user} onClose={() => setErasing(false)} />}
    </>
  );
}

function EraseAll({ user, onClose }: { user: string; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  return (
    <Confirm
      title={t(isOffline ? "erase_all_here" : "erase_all")}
      action={t("erase_for_good")}
      onClose={onClose}
      onConfirm={async () => {
        if (typed !== user) throw new Error(t("type_the_name", { user: visibleLine(user) }));
        const erased = await client.eraseUser(user);
        await loadThreads();
        toast(t("erased_counts", { threads: erased.threads, messages: erased.messages }));
      }}
    >
      <p>{isOffline ? t("erase_all_goes_here") : t("erase_all_goes", { user: visibleLine(user) })}</p>
      <ul>
        <li>{t("erase_goes_threads")}</li>
        <li>{t("erase_goes_records")}</li>
        <li>{t("erase_goes_documents")}</li>
      </ul>
      <p>{t(isOffline ? "erase_all_stays_here" : "erase_all_stays")}</p>
      <label>
        {t("type_the_name", { user: visibleLine(user) })}
        <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
    </Confirm>
  );
}

function ImportDrop() {
  const [isOver, setOver] = useState(false);
  const [state, setState] = useState<{ name: string; imported: Imported | null; problem: string | null } | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const take = async (files: FileList | null) => {
    const file = files?.[0];
    if (!file) return;
    const name = visibleLine(file.name, 80);
    setState({ name, imported: null, problem: null });
    try {
      const imported = await client.importFile(file);
      setState({ name, imported, problem: null });
      await loadThreads();
    } catch (error) {
      noteFailure(error);
      setState({ name, imported: null, problem: messageOf(error) });
    }
  };
  return (
    <>
      <div
        class={`drop${isOver ? " over" : ""}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          void take(event.dataTransfer?.files ?? null);
        }}
      >
        <Icon name="upload" size={22} />
        <p>
          <b>{t("import_file")}</b> {t("drop_formats")} <span class="drop-hint">{t("drop_here")}</span>
        </p>
        <input
          ref={input}
          type="file"
          hidden
          aria-hidden="true"
          tabIndex={-1}
          onChange={(event) => {
            void take(event.currentTarget.files);
            event.currentTarget.value = "";
          }}
        />
        <button type="button" onClick={() => input.current?.click()}>
          {t("choose_file")}
        </button>
      </div>
      {state && (
        <Dialog title={t("import_of", { name: state.name })} onClose={() => setState(null)}>
          {state.problem && <Problem text={state.problem} />}
          {!state.problem && !state.imported && <Loading />}
          {state.imported && <ImportReport imported={state.imported} />}
        </Dialog>
      )}
    </>
  );
}

function ImportReport({ imported }: { imported: Imported }) {
  return (
    <>
      <dl class="facts">
        <dt>{t("format")}</dt>
        <dd>{visibleLine(imported.format)}</dd>
        <dt>{t("threads")}</dt>
        <dd>
          {t("new_and_known", { new: imported.threads.new, known: imported.threads.known })}
          {imported.erased > 0 && ` · ${t("erased_before", { count: imported.erased })}`}
        </dd>
        <dt>{t("messages")}</dt>
        <dd>{t("new_and_known", { new: imported.messages.new, known: imported.messages.known })}</dd>
        {imported.forks.new > 0 && (
          <>
            <dt>{t("branches")}</dt>
            <dd>{number(imported.forks.new)}</dd>
          </>
        )}
      </dl>
      {imported.problem_count > 0 && (
        <details>
          <summary>{t("n_problems", { count: imported.problem_count })}</summary>
          <ul>
            {imported.problems.slice(0, 50).map((problem, index) => (
              <li key={index}>{visibleLine(problem)}</li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
