/** The client, and the state of the whole page: who is signed in, which assistants there are, and whether the server can be reached. */
import { signal } from "@preact/signals";
import { ApiError } from "../api/client";
import type { Client } from "../api/client";
import { HttpClient } from "../api/http";
import type { Agent, Caller } from "../api/types";
import { takeHandover } from "./fragment";

/** The engine that answers the page: the server, or on the offline page the one in the browser. */
export let client: Client = new HttpClient(new URL("./", location.href).href);
/** Whether the engine is in the browser. */
export let isOffline = false;

/** Uses the engine in the browser. Called before the page is shown. */
export function runOffline(offline: Client): void {
  client = offline;
  isOffline = true;
}

export type SignIn = { state: "loading" } | { state: "out"; problem: string | null } | { state: "in"; caller: Caller } | { state: "unreachable" };

export const signIn = signal<SignIn>({ state: "loading" });
export const agents = signal<Agent[]>([]);

export function may(role: "write" | "approve"): boolean {
  const current = signIn.value;
  return current.state === "in" && current.caller.roles.includes(role);
}

/** Signs in with the secret in the address, or with the credentials that the browser already has. */
export async function start(): Promise<void> {
  const handover = takeHandover();
  let problem: string | null = null;
  if (handover) {
    try {
      await client.signIn(handover.secret);
    } catch (error) {
      problem = messageOf(error);
    }
  }
  await refresh(problem);
}

export async function refresh(problem: string | null = null): Promise<void> {
  try {
    const caller = await client.caller();
    agents.value = await client.agents();
    signIn.value = { state: "in", caller };
  } catch (error) {
    if (error instanceof ApiError && error.isUnreachable) signIn.value = { state: "unreachable" };
    else signIn.value = { state: "out", problem: problem ?? (isUnauthorized(error) ? null : messageOf(error)) };
  }
}

export function isUnauthorized(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401;
}

/** Shows the sign-in form if a call was refused because the session has ended. */
export function noteFailure(error: unknown): void {
  if (isUnauthorized(error) && signIn.value.state === "in") signIn.value = { state: "out", problem: null };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
