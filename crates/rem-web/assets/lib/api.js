// Requests to the server.

import { decode } from "./message.js";

/** An error response, with the server's hint if there is one. */
export class ApiError extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

async function get(path) {
  let response;
  try {
    response = await fetch(path);
  } catch {
    throw new ApiError("The server does not respond.", "Check that `rem watch` or `rem play` is still running.");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(body.error ?? `The server responded with status ${response.status}.`, body.hint);
}

/** The API path of a run, or of something below it. */
export function runPath(run, ...rest) {
  return ["/api/runs", run, ...rest].map((part, i) => (i ? encodeURIComponent(part) : part)).join("/");
}

export async function getJson(path) {
  return (await get(path)).json();
}

export async function getBytes(path) {
  return (await get(path)).arrayBuffer();
}

export async function getMessage(path) {
  return decode(await getBytes(path));
}

/** Changes when a run may have new episodes. */
export function replayVersion({ state, epoch, checkpoints }) {
  return `${state} ${epoch} ${checkpoints.at(-1)}`;
}

/** Longest time between two attempts to connect, in seconds. */
const MAX_RETRY_DELAY = 60;

/**
 * Subscribes to the events of runs while the page is visible: browsers limit the connections of all pages together.
 * A new connection sends everything from the start, so `onReset` is called first.
 * @returns {() => void} unsubscribes
 */
export function subscribe(runs, { onReset, onEvent, onError }) {
  const address = `/api/events?runs=${encodeURIComponent(JSON.stringify(runs))}`;
  let source = null;
  let timer = null;
  let delay = 1;

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  function connect() {
    close();
    source = new EventSource(address);
    source.onopen = () => {
      delay = 1;
      onReset();
    };
    source.onmessage = (message) => onEvent(JSON.parse(message.data));
    source.onerror = () => {
      // The browser reopens a lost connection, but not a refused one.
      if (source.readyState !== EventSource.CLOSED) return onError("connection lost, reconnecting");
      delay = Math.min(2 * delay, MAX_RETRY_DELAY);
      timer = setTimeout(connect, 1000 * delay);
      onError(`live updates refused (run deleted, or too many open pages); retrying in ${delay} s`);
    };
  }

  const update = () => (document.hidden ? close() : connect());
  document.addEventListener("visibilitychange", update);
  update();
  return () => {
    document.removeEventListener("visibilitychange", update);
    close();
  };
}
