// Which page is shown: the part of the address behind the #.

import { json } from "./api.js";
import { compareView } from "./compare.js";
import { h, notice } from "./dom.js";
import { playView } from "./play.js";
import { runView } from "./run.js";
import { runsView } from "./runs.js";

const content = document.getElementById("content");
const where = document.getElementById("where");
let view = null;

/** The only run there is, for an address that names none. */
async function onlyRun() {
  const runs = await json("/api/runs");
  return runs.length === 1 ? runs[0].name : null;
}

async function make([page, name, tab]) {
  const named = name === undefined ? undefined : decodeURIComponent(name);
  if (page === "run" && named) return runView(named, tab);
  if (page === "compare" && named) return compareView(JSON.parse(named));
  if (page === "play") {
    const run = named ?? (await onlyRun());
    return run ? playView(run) : runsView();
  }
  return runsView();
}

async function show() {
  const asked = location.hash;
  const parts = asked.replace(/^#\/?/, "").split("/");
  let next;
  try {
    // A tab of the run that is shown already.
    if (view?.turn?.(parts)) return;
    next = await make(parts);
  } catch (error) {
    next = { title: "Not shown", where: [], element: notice(error.message, error.hint ?? "Go back to the list of runs."), close() {} };
  }
  if (asked !== location.hash) return next.close();
  view?.close();
  view = next;
  document.title = `${view.title} · REM`;
  where.replaceChildren(...trail(view.where));
  content.replaceChildren(view.element);
  content.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function trail(places) {
  const links = [["Runs", "#/"], ...places];
  return [h("ol", {}, links.map(([text, href]) => h("li", {}, href ? h("a", { href }, text) : h("span", { "aria-current": "page" }, text))))];
}

/** Light, dark, or as the system has it; remembered by the browser. */
function schemes() {
  const button = document.getElementById("scheme");
  const all = { auto: "◐ Auto", light: "○ Light", dark: "● Dark" };
  const set = (scheme) => {
    if (scheme === "auto") delete document.documentElement.dataset.scheme;
    else document.documentElement.dataset.scheme = scheme;
    button.textContent = all[scheme];
    button.setAttribute("aria-label", `Colours: ${scheme}. Change.`);
    localStorage.setItem("scheme", scheme);
  };
  button.addEventListener("click", () => {
    const names = Object.keys(all);
    const now = localStorage.getItem("scheme") ?? "auto";
    set(names[(names.indexOf(now) + 1) % names.length]);
  });
  set(all[localStorage.getItem("scheme")] ? localStorage.getItem("scheme") : "auto");
}

schemes();
addEventListener("hashchange", show);
show();
