// The table of runs.

import { h } from "../lib/dom.js";
import { duration, number } from "../lib/format.js";
import { presetText } from "./order.js";
import { arrange, badge, epochProgress, runName, scoreCurve, selector, setText } from "./parts.js";

const COLUMNS = [
  ["Run", "name"], ["State", "state"], ["Return", "score", "number"], ["Evaluations", null, "curve"], ["Epoch", "epoch", "number"],
  ["Game", "game", "apart"], ["Preset", "preset"], ["Last update", "updated", "number wide"],
];

/**
 * @param {object} selection the runs that are selected
 * @param {(key: string) => void} sortBy
 */
export function runsTable(selection, sortBy) {
  const rows = new Map();
  const groups = new Map();
  const heads = COLUMNS.map(([title, key, kind]) => h("th", { scope: "col", class: kind ?? null, "data-key": key },
    key ? h("button", { type: "button", class: "sort", onclick: () => sortBy(key) }, title) : title));
  const table = h("table", { class: "runs" }, h("thead", {}, h("tr", {}, h("td", {}), heads)));
  const element = h("div", { class: "scroll boxed" }, table);

  function group(name) {
    if (!groups.has(name)) groups.set(name, groupBody(name, selection));
    return groups.get(name);
  }

  return {
    element,
    /** @param {Array<[string, Array]>} shown groups of runs; one without a name has no header */
    show(shown, { sort, descending }) {
      for (const head of heads) {
        if (head.dataset.key === sort) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      }
      const bodies = shown.map(([name, runs]) => {
        const body = group(name);
        body.show(runs, runs.map((run) => {
          const key = JSON.stringify([name, run.name]);
          if (!rows.has(key)) rows.set(key, row(run.name, selection));
          rows.get(key).show(run);
          return rows.get(key).element;
        }));
        return body.element;
      });
      arrange(table, [table.tHead, ...bodies]);
    },
  };
}

/** The rows of a group, below a row with its name, a checkbox for all of it, and its mean score. */
function groupBody(name, selection) {
  const element = h("tbody", {});
  let runs = [];
  const all = h("input", {
    type: "checkbox", "aria-label": `Select all runs of ${name}`,
    onchange: () => selection.set(runs.map((run) => run.name), all.checked),
  });
  const summary = h("span", { class: "muted" });
  const header = h("tr", { class: "group-row" }, h("td", {}, all), h("th", { scope: "rowgroup", colspan: COLUMNS.length }, h("span", {}, name), summary));
  return {
    element,
    show(shown, rows) {
      runs = shown;
      all.checked = runs.every((run) => selection.has(run.name));
      const scores = runs.map((run) => run.score).filter((score) => score !== null);
      const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
      setText(summary, `${runs.length} ${runs.length === 1 ? "run" : "runs"}${scores.length ? `, mean return ${number(mean)}` : ""}`);
      arrange(element, name ? [header, ...rows] : rows);
    },
  };
}

function row(name, selection) {
  const [select, title, progress, curve] = [selector(name, selection), runName(name), epochProgress(), scoreCurve()];
  const cell = (kind = null, ...children) => h("td", { class: kind }, children);
  const [game, preset, state, score, updated] = [cell("apart"), cell(), cell(), cell("number strong"), cell("number wide muted")];
  return {
    element: h("tr", {}, cell(null, select.element), h("th", { scope: "row" }, title.element),
      state, score, cell("curve", curve.element), cell("number", progress.elements), game, preset, updated),
    show(run) {
      for (const part of [select, title, progress, curve]) part.show(run);
      setText(game, run.game ?? "–");
      setText(preset, presetText(run));
      if (state.textContent !== run.state) state.replaceChildren(badge(run.state));
      setText(score, number(run.score));
      setText(updated, run.idle_seconds === null ? "–" : `${duration(run.idle_seconds)} ago`);
    },
  };
}
