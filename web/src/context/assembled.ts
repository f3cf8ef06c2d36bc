/** Hooks that load an assistant's details, and the context that a policy yields for a question. */
import { useEffect, useState } from "preact/hooks";
import type { AgentDetail, AssembledContext, Policy } from "../api/types";
import { client, isAbort, messageOf, noteFailure } from "../app/session";

const details = new Map<string, Promise<AgentDetail>>();

export function agentDetail(name: string): Promise<AgentDetail> {
  const known = details.get(name);
  if (known) return known;
  const loading = client.agent(name);
  details.set(name, loading);
  loading.catch(() => details.delete(name));
  return loading;
}

export function useAgentDetail(name: string | null): AgentDetail | null {
  const [detail, setDetail] = useState<AgentDetail | null>(null);
  useEffect(() => {
    let isCurrent = true;
    setDetail(null);
    if (name) agentDetail(name).then((found) => isCurrent && setDetail(found), noteFailure);
    return () => {
      isCurrent = false;
    };
  }, [name]);
  return detail;
}

export interface Assembled {
  context: AssembledContext | null;
  /** Whether `context` belongs to an earlier question or policy, and the current one is still loading. */
  isStale: boolean;
  problem: string | null;
}

/**
 * Assembles the context whenever the question, the policy or the thread changes. While the user types, the previous context is
 * returned until the next one has arrived.
 */
export function useAssembled(thread: string | null, question: string, policy: Policy | null, version: number, delayMs = 180): Assembled {
  const [state, setState] = useState<Assembled & { key: string | null }>({ context: null, isStale: false, problem: null, key: null });
  const key = thread === null || policy === null ? null : JSON.stringify([thread, question, policy, version]);
  useEffect(() => {
    if (key === null || thread === null || policy === null) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      client.context(thread, question, policy, stop.signal).then(
        (context) => setState({ context, isStale: false, problem: null, key }),
        (error: unknown) => {
          if (isAbort(error)) return;
          noteFailure(error);
          setState((before) => ({ ...before, problem: messageOf(error), key }));
        },
      );
    }, delayMs);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
    // `key` represents the other dependencies.
  }, [key, delayMs]);
  return { context: state.context, problem: state.problem, isStale: state.key !== key };
}
