// The router: the part of the address after the # selects the view.

import { getJson } from "./lib/api.js";
import { h, notice } from "./lib/dom.js";
import { compareView } from "./views/compare.js";
import { playView } from "./views/play.js";
import { runView } from "./views/run.js";
import { runsView } from "./views/runs.js";
import { studyView } from "./views/study.js";

const content = document.getElementById("content");
const breadcrumbs = document.getElementById("breadcrumbs");
let view = null;

/** The run of an address without one, if there is exactly one. */
async function onlyRun() {
  const runs = await getJson("/api/runs");
  return runs.length === 1 ? runs[0].name : null;
}

async function createView([page, encoded, tab]) {
  const name = encoded === undefined ? undefined : decodeURIComponent(encoded);
  if (page === "run" && name) return runView(name, tab);
  if (page === "study" && name) return studyView(name);
  if (page === "compare" && name) return compareView(JSON.parse(name));
  if (page === "play") {
    const run = name ?? (await onlyRun());
    return run ? playView(run) : runsView();
  }
  return runsView();
}

async function navigate() {
  const { hash } = location;
  const parts = hash.replace(/^#\/?/, "").split("/");
  let next;
  try {
    // The current view may handle it, as another tab.
    if (view?.navigate?.(parts)) return;
    next = await createView(parts);
  } catch (error) {
    next = errorView(error);
  }
  if (hash !== location.hash) return next.close();
  view?.close();
  view = next;
  document.title = `${view.title} · REM`;
  breadcrumbs.replaceChildren(trail(view.breadcrumbs));
  content.replaceChildren(view.element);
  content.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** One error in place of a page that cannot be shown. */
function errorView({ message, hint }) {
  const element = h("section", { class: "error-page" },
    h("h1", {}, "This page cannot be shown"), notice(message, hint ?? null), h("p", {}, h("a", { class: "button", href: "#/" }, "All runs")));
  return { title: "Error", breadcrumbs: [["Error", null]], element, close() {} };
}

function trail(items) {
  const links = [["Runs", "#/"], ...items];
  return h("ol", {}, links.map(([text, href]) => h("li", {}, href ? h("a", { href }, text) : h("span", { "aria-current": "page" }, text))));
}

/** Light, dark, or the system's scheme; stored in the browser. */
function initSchemeButton() {
  const button = document.getElementById("scheme");
  const labels = { auto: "◐ Auto", light: "○ Light", dark: "● Dark" };
  const set = (scheme) => {
    if (scheme === "auto") delete document.documentElement.dataset.scheme;
    else document.documentElement.dataset.scheme = scheme;
    button.textContent = labels[scheme];
    button.setAttribute("aria-label", `Color scheme: ${scheme}`);
    localStorage.setItem("scheme", scheme);
    // Charts are drawn with the colors of the scheme.
    dispatchEvent(new Event("schemechange"));
  };
  button.addEventListener("click", () => {
    const schemes = Object.keys(labels);
    const current = localStorage.getItem("scheme") ?? "auto";
    set(schemes[(schemes.indexOf(current) + 1) % schemes.length]);
  });
  set(labels[localStorage.getItem("scheme")] ? localStorage.getItem("scheme") : "auto");
}

initSchemeButton();
addEventListener("hashchange", navigate);
navigate();
