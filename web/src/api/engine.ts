/** The engine in the browser: the crate `threadkeep-offline-page`, compiled to WebAssembly. Its objects have the form of the API. */
import type {
  Agent,
  AgentDetail,
  Analytics,
  AssembledContext,
  Erased,
  Hits,
  Imported,
  Message,
  Policy,
  Recalled,
  Report,
  Thread,
  ThreadUpdate,
  Turn,
  UploadedFile,
} from "./types";
import type { MessagePage, ThreadPage } from "./client";

export interface Subscription {
  stop(): void;
}

/** Called with the name and the data of each event of a turn. */
export type TurnListener = (name: string, data: unknown) => void;

export interface Store {
  export(onLine: (line: string) => void, thread?: string): Promise<number>;
}

export interface Engine {
  agents(): Agent[];
  agent(name: string): AgentDetail;
  threads(after: string | undefined, limit: number): Promise<ThreadPage>;
  thread(id: string): Promise<Thread>;
  createThread(id: string, metadata: Record<string, unknown>): Promise<Thread>;
  renameThread(id: string, title: string | undefined): Promise<Thread>;
  deleteThread(id: string): Promise<void>;
  forkThread(id: string, throughSeq: number, key: string): Promise<Thread>;
  messages(thread: string, before: number | undefined, after: number | undefined, limit: number): Promise<MessagePage>;
  message(thread: string, seq: number): Promise<Message>;
  eraseMessage(thread: string, seq: number): Promise<void>;
  follow(thread: string, position: string, listener: (update: ThreadUpdate | Error) => void): Promise<Subscription>;
  ask(agent: string, thread: string, text: string, key: string, listener: TurnListener): Promise<void>;
  turn(thread: string, turn: string): Promise<Turn | null>;
  stopTurn(thread: string, turn: string): Promise<Turn>;
  context(thread: string, question: string | undefined, policy: Policy): Promise<AssembledContext>;
  contextReport(thread: string, turn: string): Promise<Report | null>;
  recall(question: string, thread: string | undefined, limit: number): Promise<Recalled>;
  search(query: string, thread: string | undefined, after: string | undefined): Promise<Hits>;
  passages(question: string, limit: number): Promise<[string, string, string][]>;
  addDocument(id: string, filename: string, text: string): Promise<UploadedFile>;
  document(id: string): Promise<UploadedFile>;
  removeDocument(id: string): Promise<void>;
  analytics(thread: string | undefined): Promise<Analytics>;
  import(bytes: Uint8Array): Promise<Imported>;
  eraseUser(user: string): Promise<Erased>;
}

interface Module {
  default: (options: { module_or_path: URL }) => Promise<unknown>;
  Threadkeep: { open(options: { user: string }): Promise<Store> };
  OfflineEngine: new (store: Store) => Engine;
}

/** The user whose conversations are in this browser. */
export const USER = "me";

/** Loads the engine, and opens the database of this browser. */
export async function openEngine(base: URL): Promise<{ engine: Engine; store: Store }> {
  const script = new URL("engine/threadkeep_offline_page.js", base);
  const module = (await import(/* @vite-ignore */ script.href)) as Module;
  await module.default({ module_or_path: new URL("engine/threadkeep_offline_page_bg.wasm", base) });
  const store = await module.Threadkeep.open({ user: USER });
  return { engine: new module.OfflineEngine(store), store };
}
