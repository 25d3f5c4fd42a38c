// The list of runs: search, order, groups, table or cards, and a selection to compare.

import { getJson } from "../lib/api.js";
import { h, notice } from "../lib/dom.js";
import { preferences } from "../lib/preferences.js";
import { runCards } from "../runs/cards.js";
import { gettingStarted } from "../runs/getting_started.js";
import { GROUPS, grouped, matches, sorted } from "../runs/order.js";
import { runsTable } from "../runs/table.js";

const REFRESH_MS = 3000;
/** Studies are listed less often than runs: there are few new ones. */
const REFRESHES_PER_STUDIES = 5;
/** Most runs on the page until the rest is asked for. */
const PAGE = 500;
/** Most runs in a comparison, as the server has it. */
const MAX_COMPARED = 64;

export function runsView() {
  const chosen = preferences("runs", { sort: "name", descending: false, group: "none", layout: "table" });
  const selected = new Set();
  let runs = [];
  let lastResponse = null;
  let refreshes = 0;
  let limit = PAGE;
  const selection = {
    has: (name) => selected.has(name),
    set(names, checked) {
      for (const name of names) checked ? selected.add(name) : selected.delete(name);
      draw();
    },
  };
  const search = h("input", { type: "search", placeholder: "Search name, game, tag, state…", "aria-label": "Search runs", oninput: () => draw() });
  const group = h("select", { "aria-label": "Group runs", onchange: () => choose({ group: group.value }) },
    Object.keys(GROUPS).map((name) => h("option", { value: name }, name === "none" ? "No groups" : `By ${name}`)));
  group.value = GROUPS[chosen.group] ? chosen.group : "none";
  const layout = segmented("Layout", [["table", "Table"], ["cards", "Cards"]], chosen.layout, (layout) => choose({ layout }));
  const compare = h("a", { class: "button primary", "aria-disabled": "true" }, "Compare");
  const clear = h("button", { type: "button", class: "quiet", hidden: true, onclick: () => selection.set([...selected], false) }, "Clear");
  const counts = h("p", { class: "muted counts" });
  const list = h("div", {});
  const more = h("button", { type: "button", hidden: true, onclick: () => showAll() }, "Show all");
  const studies = h("ul", { class: "studies", "aria-label": "Studies" });
  const layouts = {
    table: runsTable(selection, (key) => choose({ sort: key, descending: chosen.sort === key ? !chosen.descending : key === "score" })),
    cards: runCards(selection),
  };
  const controls = h("div", { class: "toolbar" }, search, group, layout, h("span", { class: "push" }), clear, compare);
  const element = h("section", {}, h("div", { class: "page-head" }, h("h1", {}, "Runs"), counts), studies, controls, list, more);

  function choose(change) {
    chosen.set(change);
    draw();
  }

  function showAll() {
    limit = Infinity;
    draw();
  }

  function draw() {
    const known = new Set(runs.map((run) => run.name));
    for (const name of selected) if (!known.has(name)) selected.delete(name);
    const found = runs.filter((run) => matches(run, search.value));
    showControls(found.length);
    if (!runs.length) return list.replaceChildren(gettingStarted());
    if (!found.length) return list.replaceChildren(notice("No matching runs.", "The search covers names, games, presets, seeds, tags, notes and states."));
    const shown = layouts[chosen.layout] ?? layouts.table;
    shown.show(grouped(sorted(found, chosen.sort, chosen.descending).slice(0, limit), group.value), chosen);
    if (!list.contains(shown.element)) list.replaceChildren(shown.element);
  }

  function showControls(found) {
    controls.hidden = !runs.length;
    const by = (state) => runs.filter((run) => run.state === state).length;
    counts.textContent = runs.length ? `${runs.length} ${runs.length === 1 ? "run" : "runs"} · ${by("training")} training · ${by("finished")} finished` : "";
    more.hidden = found <= limit;
    more.textContent = `Show all ${found}`;
    const enabled = selected.size >= 2 && selected.size <= MAX_COMPARED;
    clear.hidden = !selected.size;
    compare.textContent = selected.size > MAX_COMPARED ? `Compare at most ${MAX_COMPARED}` : selected.size ? `Compare ${selected.size}` : "Compare";
    if (enabled) compare.href = `#/compare/${encodeURIComponent(JSON.stringify([...selected]))}`;
    else compare.removeAttribute("href");
    compare.setAttribute("aria-disabled", String(!enabled));
  }

  /** Links are replaced only when there are others, so that focus is not lost. */
  function showStudies(names) {
    if (names.join("\n") === [...studies.children].map((item) => item.textContent).join("\n")) return;
    studies.replaceChildren(...names.map((name) =>
      h("li", {}, h("a", { class: "button", href: `#/study/${encodeURIComponent(name)}` }, name))));
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

/** Buttons of which one is pressed. */
function segmented(label, options, value, onchange) {
  const buttons = options.map(([name, text]) => h("button", {
    type: "button", "aria-pressed": String(name === value),
    onclick: () => {
      options.forEach(([other], i) => buttons[i].setAttribute("aria-pressed", String(other === name)));
      onchange(name);
    },
  }, text));
  return h("div", { class: "segmented", role: "group", "aria-label": label }, buttons);
}
