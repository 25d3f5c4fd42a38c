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
  let told = null;
  const search = h("input", { type: "search", placeholder: "name, game, state…", "aria-label": "Search runs", oninput: () => draw() });
  const compare = h("a", { class: "button", "aria-disabled": "true" }, "Compare");
  const list = h("div", {});
  const table = runsTable(choose);
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
      table.show(shown);
      if (!list.contains(table.element)) list.replaceChildren(table.element);
    }
  }

  function choose(name, yes) {
    if (yes) chosen.add(name);
    else chosen.delete(name);
    draw();
  }

  async function refresh() {
    if (document.hidden && told !== null) return;
    try {
      runs = await json("/api/runs");
      if (JSON.stringify(runs) === told) return;
      told = JSON.stringify(runs);
      draw();
    } catch (error) {
      told = "";
      list.replaceChildren(notice(error.message, error.hint));
    }
  }

  refresh();
  const timer = setInterval(refresh, EVERY);
  document.addEventListener("visibilitychange", refresh);
  return {
    title: "Runs",
    where: [],
    element,
    close() {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", refresh);
    },
  };
}

/** The table of runs. Rows stay while their numbers change, so that neither the focus nor a click is lost. */
function runsTable(choose) {
  const rows = new Map();
  const body = h("tbody", {});
  const element = h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {},
      h("td", {}), h("th", { scope: "col" }, "Run"), h("th", { scope: "col" }, "Game"), h("th", { scope: "col" }, "State"),
      h("th", { scope: "col", class: "number" }, "Epoch"), h("th", { scope: "col", class: "number" }, "Return"),
      h("th", { scope: "col", class: "number wide" }, "Last sign"))),
    body));
  return {
    element,
    show(runs) {
      const shown = runs.map((run) => {
        if (!rows.has(run.name)) rows.set(run.name, row(run.name, choose));
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

function row(name, choose) {
  const cells = Array.from({ length: 5 }, (_, i) => h("td", { class: [null, null, "number", "number", "number wide"][i] }));
  return {
    element: h("tr", {},
      h("td", {}, h("input", {
        type: "checkbox", "aria-label": `Choose ${name} to compare`, onchange: (event) => choose(name, event.target.checked),
      })),
      h("th", { scope: "row" }, h("a", { href: `#/run/${encodeURIComponent(name)}` }, name)),
      cells),
    show(run) {
      const [game, state, epoch, score, sign] = cells;
      game.textContent = run.game ?? "–";
      if (state.textContent !== STATES[run.state]) state.replaceChildren(badge(run.state));
      epoch.textContent = `${run.epoch}${run.epochs ? ` / ${run.epochs}` : ""}`;
      score.textContent = number(run.score);
      sign.textContent = run.seconds_quiet === null ? "–" : `${duration(run.seconds_quiet)} ago`;
    },
  };
}
