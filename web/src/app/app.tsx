/** The frame of the page: navigation, the list of threads, and the view that the URL selects. */
import { useEffect, useState } from "preact/hooks";
import { ActivityView } from "../activity/view";
import { AssistantsView } from "../activity/assistants";
import { AnalyticsView } from "../analytics/view";
import { ChatView } from "../chat/view";
import { titleOf } from "../chat/header";
import { ContextView } from "../context/view";
import { language, setLanguage, shortTime, t } from "../i18n";
import type { Key, Language } from "../i18n";
import { ThreadsView } from "../threads/view";
import { visibleLine } from "../text/visible";
import { Dialog, IconButton, Loading, Problem, Toasts } from "../ui/controls";
import { Icon } from "../ui/icons";
import type { IconName } from "../ui/icons";
import { loadThreads, show, threads } from "./open";
import { chatWith, formatRoute, navigate, route } from "./router";
import type { Route } from "./router";
import { client, isOffline, messageOf, refresh, signIn } from "./session";
import { theme, toggleTheme } from "./theme";

const VIEWS: { view: Route["view"]; icon: IconName; name: Key; to: Route }[] = [
  { view: "chat", icon: "chat", name: "chat", to: chatWith(null) },
  { view: "context", icon: "eye", name: "context", to: { view: "context", thread: null, turn: null, question: null } },
  { view: "threads", icon: "search", name: "search", to: { view: "threads", query: "" } },
  { view: "activity", icon: "activity", name: "activity", to: { view: "activity", thread: null, turn: null } },
  { view: "assistants", icon: "graph", name: "assistants", to: { view: "assistants", agent: null } },
  { view: "analytics", icon: "chart", name: "analytics", to: { view: "analytics" } },
];

export function App() {
  const state = signIn.value;
  // The new key renders all texts again when the language changes.
  const key = language.value;
  switch (state.state) {
    case "loading":
      return (
        <main class="alone">
          <Loading />
        </main>
      );
    case "unreachable":
      return (
        <main class="alone">
          <h1>Threadkeep</h1>
          <Problem text={t("unreachable")}>
            <button type="button" onClick={() => void refresh()}>
              {t("try_now")}
            </button>
          </Problem>
        </main>
      );
    case "out":
      return <SignInForm key={key} problem={state.problem} />;
    case "in":
      return <Frame key={key} />;
  }
}

function SignInForm({ problem }: { problem: string | null }) {
  const [secret, setSecret] = useState("");
  const [user, setUser] = useState("");
  const [failure, setFailure] = useState(problem);
  const isKey = secret.startsWith("tk_");
  const submit = async () => {
    try {
      await client.signIn(secret.trim(), user.trim() || undefined);
      await refresh();
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return (
    <main class="alone">
      <form
        class="sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <h1>Threadkeep</h1>
        <p>{t("sign_in_hint")}</p>
        <label>
          <span>{t("token_or_key")}</span>
          <input type="password" autocomplete="off" value={secret} onInput={(event) => setSecret(event.currentTarget.value)} required />
        </label>
        {isKey && (
          <label>
            <span>{t("user_of_key")}</span>
            <input autocomplete="off" value={user} onInput={(event) => setUser(event.currentTarget.value)} />
          </label>
        )}
        {failure && <Problem text={failure} />}
        <button type="submit" class="primary">
          {t("sign_in")}
        </button>
        <p class="note">{t("key_stays_in_tab")}</p>
      </form>
    </main>
  );
}

function Frame() {
  const current = route.value;
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  useEffect(() => void loadThreads(), []);
  useEffect(() => {
    setMenuOpen(false);
    if (current.view !== "chat") show(null);
  }, [current]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isWriting = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      const isCommand = event.ctrlKey || event.metaKey;
      if (isCommand && event.key.toLowerCase() === "k") {
        event.preventDefault();
        navigate({ view: "threads", query: "" });
        setTimeout(() => document.getElementById("search")?.focus(), 50);
      } else if (event.altKey && event.key.toLowerCase() === "n") {
        event.preventDefault();
        navigate(chatWith(null));
      } else if (event.altKey && /^[1-6]$/.test(event.key)) {
        event.preventDefault();
        const view = VIEWS[Number(event.key) - 1];
        if (view) navigate(view.to);
      } else if (!isWriting && event.key === "?") setHelpOpen(true);
      else if (!isWriting && event.key === "/" && current.view === "chat") {
        event.preventDefault();
        document.getElementById("composer")?.focus();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [current.view]);
  return (
    <div class={`frame${isMenuOpen ? " menu-open" : ""}`}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        {t("skip")}
      </a>
      <nav class="rail" aria-label={t("views")}>
        <ul>
          {VIEWS.map(({ view, icon, name, to }) => (
            <li key={view}>
              <a href={formatRoute(to)} aria-current={current.view === view ? "page" : undefined} title={t(name)}>
                <Icon name={icon} size={20} />
                <span>{t(name)}</span>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <aside class="side" id="side" aria-label={t("threads")}>
        <header>
          <a class="button primary" href={formatRoute(chatWith(null))}>
            <Icon name="plus" /> {t("new_chat")}
          </a>
        </header>
        <SideThreadList current={"thread" in current ? current.thread : null} view={current.view === "context" ? "context" : "chat"} />
        <footer>
          <CurrentUser />
          <span class="spacer" />
          <LanguageChoice />
          <IconButton icon={theme() === "dark" ? "sun" : "moon"} label={t(theme() === "dark" ? "to_light" : "to_dark")} onClick={toggleTheme} />
          <IconButton icon="help" label={t("shortcuts")} onClick={() => setHelpOpen(true)} />
        </footer>
      </aside>
      <button type="button" class="menu-button icon-button" aria-expanded={isMenuOpen} aria-controls="side" aria-label={t("threads")} onClick={() => setMenuOpen(!isMenuOpen)}>
        <Icon name={isMenuOpen ? "close" : "menu"} size={20} />
      </button>
      <div class="veil" onClick={() => setMenuOpen(false)} />
      <main id="main" tabIndex={-1}>
        <View route={current} />
      </main>
      <Toasts />
      {isHelpOpen && <Shortcuts onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

function View({ route: current }: { route: Route }) {
  switch (current.view) {
    case "chat":
      return <ChatView thread={current.thread} at={current.at} agent={current.agent} />;
    case "context":
      return <ContextView thread={current.thread} turn={current.turn} question={current.question} />;
    case "threads":
      return <ThreadsView query={current.query} />;
    case "activity":
      return <ActivityView thread={current.thread} turn={current.turn} />;
    case "assistants":
      return <AssistantsView agent={current.agent} />;
    case "analytics":
      return <AnalyticsView />;
  }
}

function SideThreadList({ current, view }: { current: string | null; view: "chat" | "context" }) {
  return (
    <ul class="thread-list" tabIndex={-1}>
      {threads.value.map((thread) => (
        <li key={thread.id}>
          <a
            href={formatRoute(view === "context" ? { view, thread: thread.id, turn: null, question: null } : chatWith(thread.id))}
            aria-current={thread.id === current ? "true" : undefined}
          >
            <b>{titleOf(thread)}</b>
            <small>
              {t("n_messages", { count: thread.messages })} · <time dateTime={thread.updated_at}>{shortTime(thread.updated_at)}</time>
            </small>
          </a>
        </li>
      ))}
    </ul>
  );
}

function CurrentUser() {
  const current = signIn.value;
  if (current.state !== "in") return null;
  if (isOffline) return <span class="who-am-i">{t("in_this_browser")}</span>;
  const { user, tenant } = current.caller;
  return <span class="who-am-i" title={`${visibleLine(tenant)}: ${current.caller.roles.join(", ")}`}>{`${t("user_label")}: ${visibleLine(user ?? tenant, 24)}`}</span>;
}

function LanguageChoice() {
  return (
    <select class="language" aria-label={t("language")} value={language.value} onChange={(event) => setLanguage(event.currentTarget.value as Language)}>
      <option value="en" lang="en">EN</option>
      <option value="es" lang="es">ES</option>
    </select>
  );
}

function Shortcuts({ onClose }: { onClose: () => void }) {
  const keys: [string, Key][] = [
    ["Enter", "key_send"],
    ["Shift + Enter", "key_line"],
    ["Esc", "key_stop"],
    ["↑", "key_edit"],
    ["/", "key_write"],
    ["Ctrl + K", "key_search"],
    ["Alt + N", "key_new"],
    ["Alt + 1 … 6", "key_views"],
    ["← → Home End", "key_map"],
    ["?", "key_help"],
  ];
  return (
    <Dialog title={t("shortcuts")} onClose={onClose}>
      <dl class="facts keys">
        {keys.map(([key, meaning]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{t(meaning)}</dd>
          </>
        ))}
      </dl>
      <p class="note">
        {isOffline ? <a href="../">{t("server_page")}</a> : <a href="docs/">{t("api_reference")}</a>}
        {!isOffline && __HAS_OFFLINE_PAGE__ && (
          <>
            {" · "}
            <a href="offline/">{t("offline_page")}</a>
          </>
        )}
      </p>
    </Dialog>
  );
}
