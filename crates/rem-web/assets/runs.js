// The list of runs, with search and a choice of several to compare.

import { json } from "./api.js";
import { h, notice } from "./dom.js";
import { duration, number } from "./format.js";

const EVERY = 3000;

export const STATES = { training: "training", stopped: "stopped", finished: "finished" };

export function badge(state) {
  return h("span", { class: `badge ${state}` }, STATES[state] ?? state);
}

export function runsView() {
  const chosen = new Set();
  let runs = [];
  const search = h("input", { type: "search", placeholder: "name, game, state…", "aria-label": "Search runs", oninput: () => draw() });
  const compare = h("a", { class: "button", "aria-disabled": "true" }, "Compare");
  const list = h("div", {});
  const element = h("section", {},
    h("h1", {}, "Runs"),
    h("div", { class: "row" }, search, compare),
    list);

  const matches = (run) => {
    const text = `${run.name} ${run.game} ${STATES[run.state]} seed${run.seed}`.toLowerCase();
    return search.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  };

  function draw() {
    const shown = runs.filter(matches);
    const many = chosen.size >= 2;
    compare.textContent = many ? `Compare ${chosen.size}` : "Compare";
    if (many) compare.href = `#/compare/${encodeURIComponent(JSON.stringify([...chosen]))}`;
    else compare.removeAttribute("href");
    compare.setAttribute("aria-disabled", String(!many));
    if (!runs.length) {
      list.replaceChildren(notice("There is no run here yet.", "Start one with `rem train`: it appears here within seconds."));
    } else if (!shown.length) {
      list.replaceChildren(notice("No run matches.", "Search looks at names, games, seeds and states."));
    } else {
      list.replaceChildren(table(shown));
    }
  }

  function table(shown) {
    const focused = document.activeElement?.dataset?.run;
    const rows = shown.map((run) => h("tr", {},
      h("td", {}, h("input", {
        type: "checkbox", "data-run": run.name, "aria-label": `Choose ${run.name} to compare`, checked: chosen.has(run.name),
        onchange: (event) => {
          if (event.target.checked) chosen.add(run.name);
          else chosen.delete(run.name);
          draw();
        },
      })),
      h("th", { scope: "row" }, h("a", { href: `#/run/${encodeURIComponent(run.name)}` }, run.name)),
      h("td", {}, run.game ?? "–"),
      h("td", {}, badge(run.state)),
      h("td", { class: "number" }, `${run.epoch}${run.epochs ? ` / ${run.epochs}` : ""}`),
      h("td", { class: "number" }, number(run.score)),
      h("td", { class: "number wide" }, run.seconds_quiet === null ? "–" : `${duration(run.seconds_quiet)} ago`)));
    const made = h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {},
        h("td", {}), h("th", { scope: "col" }, "Run"), h("th", { scope: "col" }, "Game"), h("th", { scope: "col" }, "State"),
        h("th", { scope: "col", class: "number" }, "Epoch"), h("th", { scope: "col", class: "number" }, "Return"),
        h("th", { scope: "col", class: "number wide" }, "Last sign"))),
      h("tbody", {}, rows)));
    if (focused) requestAnimationFrame(() => made.querySelector(`[data-run="${CSS.escape(focused)}"]`)?.focus());
    return made;
  }

  async function refresh() {
    try {
      const next = await json("/api/runs");
      if (JSON.stringify(next) === JSON.stringify(runs) && list.childElementCount) return;
      runs = next;
      draw();
    } catch (error) {
      list.replaceChildren(notice(error.message, error.hint));
    }
  }

  refresh();
  const timer = setInterval(refresh, EVERY);
  return { title: "Runs", where: [], element, close: () => clearInterval(timer) };
}
