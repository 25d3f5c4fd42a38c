// One run: a header and a tab per aspect.

import { getJson, runPath, subscribe } from "../lib/api.js";
import { storedSettings } from "../lib/board.js";
import { h, notice, perFrame, throttle } from "../lib/dom.js";
import { duration, timeOfDay } from "../lib/format.js";
import { History } from "../lib/history.js";
import { configPanel } from "../panels/config.js";
import { dreamPanel } from "../panels/dream.js";
import { episodesPanel } from "../panels/episodes.js";
import { logPanel } from "../panels/log.js";
import { metricsPanel } from "../panels/metrics.js";
import { overviewPanel } from "../panels/overview.js";
import { tokenizerPanel } from "../panels/tokenizer.js";
import { presetText } from "../runs/order.js";
import { badge } from "../runs/parts.js";

const TABS = {
  overview: { title: "Overview", panel: overviewPanel },
  metrics: { title: "Metrics", panel: metricsPanel },
  tokenizer: { title: "Tokenizer", panel: tokenizerPanel },
  dream: { title: "Dream", panel: dreamPanel },
  episodes: { title: "Episodes", panel: episodesPanel },
  config: { title: "Config", panel: configPanel },
  log: { title: "Log", panel: logPanel },
};

/** Redraws caused by events are at least this far apart: training on the same machine needs the processor. */
const REDRAW_MS = 2000;

export async function runView(name, firstTab) {
  // An unknown run is an error of the whole page.
  const details = await getJson(runPath(name));
  const state = {
    name, history: new History(), details, progress: null, summary: details, error: null, connection: null, chartSettings: storedSettings(),
  };
  const header = h("div", { class: "header" });
  const problems = h("div", {});
  const panel = h("div", { role: "tabpanel", id: "panel", tabindex: 0 });
  const tabs = h("div", { role: "tablist", "aria-label": "Sections" });
  const element = h("section", {}, header, problems, tabs, panel);
  const panels = new Map();
  let current = null;

  const address = (tab) => `#/run/${encodeURIComponent(name)}/${tab}`;
  for (const [tab, { title }] of Object.entries(TABS)) {
    tabs.append(h("a", { role: "tab", id: `tab-${tab}`, href: address(tab), "aria-controls": "panel" }, title));
  }
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = Object.keys(TABS);
    const next = all[(all.indexOf(current) + step + all.length) % all.length];
    // Open now: the next key may arrive before the hashchange event.
    open(next);
    location.hash = address(next);
    document.getElementById(`tab-${next}`).focus();
  });

  function open(tab) {
    if (current && tab === current) return;
    current = TABS[tab] ? tab : "overview";
    for (const link of tabs.children) {
      const selected = link.id === `tab-${current}`;
      link.setAttribute("aria-selected", String(selected));
      link.tabIndex = selected ? 0 : -1;
      // The first tab opens before the view is on the page.
      if (selected) requestAnimationFrame(() => link.scrollIntoView({ block: "nearest", inline: "nearest" }));
    }
    panel.setAttribute("aria-labelledby", `tab-${current}`);
    if (!panels.has(current)) panels.set(current, TABS[current].panel(state));
    panel.replaceChildren(panels.get(current).element);
    draw();
  }

  const draw = perFrame(() => {
    header.replaceChildren(...heading(state));
    problems.replaceChildren(
      ...(state.error ? [notice(state.error.message, state.error.hint)] : []),
      ...(state.details?.problems ?? []).map((problem) => notice(problem, "The rest of the run is shown.")));
    panels.get(current)?.draw?.();
  });

  const drawLater = throttle(draw, REDRAW_MS);

  async function refresh() {
    try {
      state.details = await getJson(runPath(name));
      state.summary = state.details;
      state.error = null;
    } catch (error) {
      state.error = error;
    }
    draw();
  }

  const unsubscribe = subscribe([name], {
    onReset() {
      state.history = new History();
      state.connection = null;
    },
    onEvent(event) {
      if (event.type === "metrics" || event.type === "timing") state.history.apply(event);
      if (event.type === "progress") state.progress = { ...event.progress, receivedAt: Date.now() };
      if (event.type === "summary") {
        state.summary = event.summary;
        refresh();
      }
      drawLater();
    },
    onError(reason) {
      state.connection = reason;
      draw();
    },
  });
  open(firstTab);
  return {
    title: name,
    breadcrumbs: [[name, null]],
    element,
    navigate([page, run, tab]) {
      const same = page === "run" && run !== undefined && decodeURIComponent(run) === name;
      if (same) open(tab);
      return same;
    },
    close() {
      unsubscribe();
      for (const { close } of panels.values()) close?.();
    },
  };
}

/** Name, state, progress and estimated end. */
function heading({ name, summary, progress, connection }) {
  const facts = [];
  if (summary.title) facts.push(name);
  if (summary.game) facts.push(summary.game);
  if (summary.preset) facts.push(`preset ${presetText(summary)}`);
  if (summary.seed !== null) facts.push(`seed ${summary.seed}`);
  facts.push(`epoch ${summary.epoch}${summary.epochs ? ` of ${summary.epochs}` : ""}`);
  if (progress?.seconds_left && summary.state === "training") {
    const left = Math.max(0, progress.seconds_left - (Date.now() - progress.receivedAt) / 1000);
    facts.push(`about ${duration(left)} left`, `ends ${timeOfDay(left)}`);
  }
  if (connection) facts.push(connection);
  return [
    h("div", { class: "row" },
      h("h1", {}, summary.title ?? name), badge(summary.state), h("span", { class: "push" }),
      h("a", { class: "button primary", href: `#/play/${encodeURIComponent(name)}` }, "Play ▸")),
    h("p", { class: "muted", id: "facts" }, facts.join(" · ")),
    summary.tags.length ? h("p", { class: "tags" }, summary.tags.map((tag) => h("span", { class: "tag" }, tag))) : null,
    summary.note ? h("p", { class: "note" }, summary.note) : null,
    summary.epochs ? h("progress", { max: summary.epochs, value: summary.epoch, "aria-label": "Epochs" }) : null,
  ].filter(Boolean);
}
