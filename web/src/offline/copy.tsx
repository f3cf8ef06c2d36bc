/** Copying conversations between this browser and the server that serves the page. */
import { useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { HttpClient } from "../api/http";
import { loadThreads } from "../app/open";
import { client, messageOf } from "../app/session";
import { t } from "../i18n";
import { visibleLine } from "../text/visible";
import { Dialog, Loading, Problem } from "../ui/controls";
import { Icon } from "../ui/icons";
import type { Copied } from "./exchange";
import { copyAll } from "./exchange";

type Direction = "to" | "from";
type State = { state: "asking" | "copying" | "signed_out" } | { state: "failed"; problem: string } | { state: "copied"; copied: Copied };

const SERVER = () => new URL("../", location.href);

export function CopyActions() {
  const [direction, setDirection] = useState<Direction | null>(null);
  return (
    <>
      <button type="button" onClick={() => setDirection("to")}>
        <Icon name="to_server" /> {t("copy_to_server")}
      </button>
      <button type="button" onClick={() => setDirection("from")}>
        <Icon name="from_server" /> {t("copy_from_server")}
      </button>
      {direction && <CopyDialog direction={direction} onClose={() => setDirection(null)} />}
    </>
  );
}

function CopyDialog({ direction, onClose }: { direction: Direction; onClose: () => void }) {
  const [state, setState] = useState<State>({ state: "asking" });
  const copy = async () => {
    setState({ state: "copying" });
    const server = new HttpClient(SERVER().href);
    try {
      const { user } = await server.caller();
      // The export of a whole tenant contains the conversations of all its users.
      if (user == null) throw new Error(t("copy_needs_user"));
      const copied = await (direction === "to" ? copyAll(client, server) : copyAll(server, client));
      setState({ state: "copied", copied });
      await loadThreads();
    } catch (error) {
      const isSignedOut = error instanceof ApiError && error.status === 401;
      setState(isSignedOut ? { state: "signed_out" } : { state: "failed", problem: messageOf(error) });
    }
  };
  return (
    <Dialog title={t(direction === "to" ? "copy_to_server" : "copy_from_server")} onClose={onClose}>
      {state.state === "asking" && (
        <>
          <p>{t(direction === "to" ? "copy_to_hint" : "copy_from_hint", { server: SERVER().host })}</p>
          <footer>
            <button type="button" onClick={onClose}>
              {t("cancel")}
            </button>
            <button type="button" class="primary" onClick={() => void copy()}>
              {t("copy_now")}
            </button>
          </footer>
        </>
      )}
      {state.state === "copying" && <Loading />}
      {state.state === "failed" && <Problem text={state.problem} />}
      {state.state === "signed_out" && (
        <p>
          {t("copy_signed_out")} <a href={SERVER().href}>{t("server_page")}</a>
        </p>
      )}
      {state.state === "copied" && <CopyReport copied={state.copied} />}
    </Dialog>
  );
}

function CopyReport({ copied }: { copied: Copied }) {
  const { threads, messages, records, differences, differenceCount } = copied;
  if (differenceCount > 0) {
    return (
      <>
        <Problem text={t("copy_differs", { count: differenceCount })} />
        <ul>
          {differences.map((difference) => (
            <li key={difference}>{visibleLine(difference)}</li>
          ))}
        </ul>
      </>
    );
  }
  return <p role="status">{threads + records === 0 ? t("copy_nothing") : t("copy_verified", { threads, messages, records })}</p>;
}
