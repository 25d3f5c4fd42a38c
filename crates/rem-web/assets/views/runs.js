// The list of runs, with a search field and a selection to compare.

import { getJson } from "../lib/api.js";
import { h, notice } from "../lib/dom.js";
import { duration, number } from "../lib/format.js";

const REFRESH_MS = 3000;
/** Studies are listed less often than runs: there are few new ones. */
const REFRESHES_PER_STUDIES = 5;

export function badge(state) {
  return h("span", { class: `badge ${state}` }, state);
}

export function runsView() {
  const selected = new Set();
  let runs = [];
  let lastResponse = null;
  let refreshes = 0;
  const search = h("input", { type: "search", placeholder: "name, game, state…", "aria-label": "Search runs", oninput: () => draw() });
  const compare = h("a", { class: "button", "aria-disabled": "true" }, "Compare");
  const list = h("div", {});
  const studies = h("ul", { class: "studies", "aria-label": "Studies" });
  const table = runsTable(select);
  const element = h("section", {},
    h("h1", {}, "Runs"),
    studies,
    h("div", { class: "row" }, search, compare),
    list);

  const matches = (run) => {
    const text = `${run.name} ${run.game} ${run.state} seed${run.seed}`.toLowerCase();
    return search.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  };

  function draw() {
    const shown = runs.filter(matches);
    const enabled = selected.size >= 2;
    compare.textContent = enabled ? `Compare ${selected.size}` : "Compare";
    if (enabled) compare.href = `#/compare/${encodeURIComponent(JSON.stringify([...selected]))}`;
    else compare.removeAttribute("href");
    compare.setAttribute("aria-disabled", String(!enabled));
    if (!runs.length) {
      list.replaceChildren(notice("No runs yet.", "Start one with `rem train`; it appears here within seconds."));
    } else if (!shown.length) {
      list.replaceChildren(notice("No matching runs.", "The search covers names, games, seeds and states."));
    } else {
      table.show(shown);
      if (!list.contains(table.element)) list.replaceChildren(table.element);
    }
  }

  /** Links are replaced only when there are others, so that focus is not lost. */
  function showStudies(names) {
    if (names.join("\n") === [...studies.children].map((item) => item.textContent).join("\n")) return;
    studies.replaceChildren(...names.map((name) =>
      h("li", {}, h("a", { class: "button", href: `#/study/${encodeURIComponent(name)}` }, name))));
  }

  function select(name, checked) {
    if (checked) selected.add(name);
    else selected.delete(name);
    draw();
  }

  async function refresh() {
    if (document.hidden && lastResponse !== null) return;
    try {
      if (refreshes++ % REFRESHES_PER_STUDIES === 0) showStudies(await getJson("/api/studies"));
      runs = await getJson("/api/runs");
      if (JSON.stringify(runs) === lastResponse) return;
      lastResponse = JSON.stringify(runs);
      draw();
    } catch (error) {
      lastResponse = "";
      list.replaceChildren(notice(error.message, error.hint));
    }
  }

  refresh();
  const timer = setInterval(refresh, REFRESH_MS);
  document.addEventListener("visibilitychange", refresh);
  return {
    title: "Runs",
    breadcrumbs: [],
    element,
    close() {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", refresh);
    },
  };
}

/** The table of runs. Rows are updated in place, so that focus and clicks are not lost. */
function runsTable(select) {
  const rows = new Map();
  const body = h("tbody", {});
  const element = h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {},
      h("td", {}), h("th", { scope: "col" }, "Run"), h("th", { scope: "col" }, "Game"), h("th", { scope: "col" }, "State"),
      h("th", { scope: "col", class: "number" }, "Epoch"), h("th", { scope: "col", class: "number" }, "Return"),
      h("th", { scope: "col", class: "number wide" }, "Last update"))),
    body));
  return {
    element,
    show(runs) {
      const shown = runs.map((run) => {
        if (!rows.has(run.name)) rows.set(run.name, row(run.name, select));
        rows.get(run.name).show(run);
        return rows.get(run.name).element;
      });
      const same = shown.length === body.childElementCount && shown.every((row, i) => row === body.children[i]);
      if (same) return;
      const focused = document.activeElement;
      body.replaceChildren(...shown);
      if (body.contains(focused)) focused.focus();
    },
  };
}

function row(name, select) {
  const cells = Array.from({ length: 5 }, (_, i) => h("td", { class: [null, null, "number", "number", "number wide"][i] }));
  return {
    element: h("tr", {},
      h("td", {}, h("input", {
        type: "checkbox", "aria-label": `Select ${name} to compare`, onchange: (event) => select(name, event.target.checked),
      })),
      h("th", { scope: "row" }, h("a", { href: `#/run/${encodeURIComponent(name)}` }, name)),
      cells),
    show(run) {
      const [game, state, epoch, score, updated] = cells;
      game.textContent = run.game ?? "–";
      if (state.textContent !== run.state) state.replaceChildren(badge(run.state));
      epoch.textContent = `${run.epoch}${run.epochs ? ` / ${run.epochs}` : ""}`;
      score.textContent = number(run.score);
      updated.textContent = run.idle_seconds === null ? "–" : `${duration(run.idle_seconds)} ago`;
    },
  };
}
