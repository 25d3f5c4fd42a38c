// The config keys in which the compared runs differ.

import { h, notice } from "../lib/dom.js";

/** A longer list is folded at first. */
const OPEN_KEYS = 12;

/** @param {{runs: string[], keys: Array, same: number, problems: string[]}} differences */
export function differencesTable({ runs, keys, same, problems }, titleOf) {
  const notes = problems.map((problem) => notice(problem, "The config of this run is left out."));
  if (!keys.length) return h("div", {}, notes, h("p", { class: "muted" }, `The configs have the same ${same} values.`));
  const text = (value) => (value === null ? "–" : value);
  const common = (values) => mostFrequent(values.filter((value) => value !== null));
  const rows = keys.map(({ key, values }) => {
    const usual = common(values);
    return h("tr", {}, h("th", { scope: "row" }, h("code", {}, key)),
      values.map((value) => h("td", { class: value === usual ? "usual" : "unusual" }, h("code", {}, text(value)))));
  });
  return h("details", { class: "group", open: keys.length <= OPEN_KEYS },
    h("summary", {}, h("h2", {}, "Config differences"), h("span", { class: "count" }, `${keys.length} keys differ, ${same} are the same`)),
    notes,
    h("div", { class: "scroll boxed differences", tabindex: 0, role: "region", "aria-label": "Config differences" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Key"), runs.map((run) => h("th", { scope: "col" }, titleOf(run))))),
      h("tbody", {}, rows))));
}

/** The value of more than half of the runs, if there is one. */
function mostFrequent(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const most = [...counts].find(([, count]) => count > values.length / 2);
  return most ? most[0] : null;
}
