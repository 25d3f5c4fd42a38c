// What the server is asked.

import { open } from "./envelope.js";

/** Why there was no answer, with a hint where the server has one. */
export class Refused extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

async function ask(path) {
  let response;
  try {
    response = await fetch(path);
  } catch {
    throw new Refused("The server does not answer.", "Is `rem watch` or `rem play` still running?");
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Refused(said.error ?? `The server answered ${response.status}.`, said.hint);
}

/** The address of something of a run. */
export function of(run, ...rest) {
  return ["/api/runs", run, ...rest].map((part, i) => (i ? encodeURIComponent(part) : part)).join("/");
}

export async function json(path) {
  return (await ask(path)).json();
}

export async function envelope(path) {
  return open(await (await ask(path)).arrayBuffer());
}

/**
 * Listens to what happens in runs. After a break everything is told again from its start, so `again` comes first.
 * @returns {() => void} ends it
 */
export function listen(runs, { again, event, broken }) {
  const source = new EventSource(`/api/events?runs=${encodeURIComponent(JSON.stringify(runs))}`);
  source.onopen = again;
  source.onmessage = (message) => event(JSON.parse(message.data));
  source.onerror = broken;
  return () => source.close();
}
