/** Loads the networks of assistants. */
import { useEffect, useState } from "preact/hooks";
import { agents, client, messageOf, noteFailure } from "../app/session";
import { Network } from "./network";

const loading = new Map<string, Promise<Network>>();

/** Loads the network of an assistant; only once, because it changes only with the program. */
function load(agent: string): Promise<Network> {
  const known = loading.get(agent);
  if (known) return known;
  const started = client.networkMap(agent).then((map) => new Network(map));
  loading.set(agent, started);
  started.catch(() => loading.delete(agent));
  return started;
}

/** Returns the network of an assistant, `null` while it is loading, or the reason why it cannot be loaded. */
export function useNetwork(agent: string): Network | null | string {
  const [network, setNetwork] = useState<Network | null | string>(null);
  useEffect(() => {
    let isCurrent = true;
    setNetwork(null);
    load(agent).then(
      (found) => isCurrent && setNetwork(found),
      (error: unknown) => {
        noteFailure(error);
        if (isCurrent) setNetwork(messageOf(error));
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [agent]);
  return network;
}

/** Returns the names of the lines of all networks by their ids, as far as they are loaded. */
export function useLineNames(): Map<string, string> {
  const [names, setNames] = useState<Map<string, string>>(new Map());
  useEffect(() => {
    let isCurrent = true;
    const withMap = agents.value.filter(({ has_map }) => has_map);
    Promise.all(withMap.map(({ name }) => load(name))).then(
      (networks) => isCurrent && setNames(new Map(networks.flatMap(({ lines }) => lines.map(({ id, name }) => [id, name])))),
      // Without the names of lines, agents keep their own.
      noteFailure,
    );
    return () => {
      isCurrent = false;
    };
  }, []);
  return names;
}

/**
 * Returns the network that contains one of the stations with the given ids; `null` while it is being looked for, and `undefined` if
 * there is none. The network of the assistant `agent` is looked at first.
 */
export function useNetworkOf(ids: string[], agent: string): Network | null | undefined {
  const [network, setNetwork] = useState<Network | null | undefined>(null);
  const key = JSON.stringify(ids);
  useEffect(() => {
    let isCurrent = true;
    find(JSON.parse(key) as string[], agent).then(
      (found) => isCurrent && setNetwork(found),
      (error: unknown) => {
        noteFailure(error);
        if (isCurrent) setNetwork(undefined);
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [key, agent]);
  return network;
}

async function find(ids: string[], agent: string): Promise<Network | undefined> {
  const withMap = agents.value.filter(({ has_map }) => has_map).map(({ name }) => name);
  for (const name of withMap.sort((a, b) => Number(b === agent) - Number(a === agent))) {
    const network = await load(name);
    if (ids.some((id) => network.has(id))) return network;
  }
  return undefined;
}
