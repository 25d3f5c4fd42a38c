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

/** What of a run's details changes when there may be more episodes. */
export function stamp({ state, epoch, checkpoints }) {
  return `${state} ${epoch} ${checkpoints.at(-1)}`;
}

/** The longest time between two tries to listen, in seconds. */
const LONGEST = 60;

/**
 * Listens to what happens in runs, while the page is seen: a browser has only a few connections for all of its pages.
 * After a break everything is told again from its start, so `again` comes first; `broken` is told what went wrong.
 * @returns {() => void} ends it
 */
export function listen(runs, { again, event, broken }) {
  const address = `/api/events?runs=${encodeURIComponent(JSON.stringify(runs))}`;
  let source = null;
  let timer = null;
  let wait = 1;

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  function open() {
    close();
    source = new EventSource(address);
    source.onopen = () => {
      wait = 1;
      again();
    };
    source.onmessage = (message) => event(JSON.parse(message.data));
    source.onerror = () => {
      // A connection that is lost comes back by itself; one that is refused does not.
      if (source.readyState !== EventSource.CLOSED) return broken("connection lost, trying again");
      wait = Math.min(2 * wait, LONGEST);
      timer = setTimeout(open, 1000 * wait);
      broken(`the server refuses to tell more: a run is gone, or too many pages are open; trying again in ${wait} s`);
    };
  }

  const seen = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", seen);
  seen();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    close();
  };
}
