// Several runs: their returns in one chart, and one chart per metric.

import { subscribe } from "../lib/api.js";
import { chart } from "../lib/chart.js";
import { h, notice, perFrame } from "../lib/dom.js";
import { number, words } from "../lib/format.js";
import { History, isTest } from "../lib/history.js";
import { badge } from "./runs.js";

export function compareView(selected) {
  const names = [...new Set(selected)];
  const histories = new Map(names.map((name) => [name, new History()]));
  const summaries = new Map();
  const evaluation = chart({ title: "Evaluation return", tall: true });
  const collection = chart({ title: "Collection return", tall: true });
  const charts = new Map();
  const grid = h("div", { class: "charts" });
  const errors = h("div", {});
  const tiles = h("ul", { class: "tiles" });
  const element = h("section", {},
    h("h1", {}, `Compare ${names.length} runs`),
    errors, tiles, evaluation.element, collection.element, h("h2", {}, "Losses and metrics"), grid);

  const series = (phase, metric) => names.map((name, style) => ({ name, style, points: histories.get(name).points(phase, metric) }));

  const draw = perFrame(() => {
    tiles.replaceChildren(...names.map((name) => {
      const summary = summaries.get(name);
      return h("li", { class: "tile" },
        h("a", { href: `#/run/${encodeURIComponent(name)}` }, name),
        summary ? badge(summary.state) : null,
        h("strong", {}, number(summary?.score)), h("span", { class: "muted" }, `return · epoch ${summary?.epoch ?? "–"}`));
    }));
    evaluation.show({ series: series("evaluate", "mean_return") });
    collection.show({ series: series("collect", "mean_return") });
    for (const history of histories.values()) {
      for (const phase of history.phases().filter((phase) => phase !== "collect")) {
        const shown = (metric) => phase !== "evaluate" || isTest(metric);
        for (const metric of history.metrics(phase).filter(shown)) {
          const id = `${phase} ${metric}`;
          if (charts.has(id)) continue;
          const added = chart({ title: `${words(phase)}: ${metric}` });
          charts.set(id, { chart: added, phase, metric });
          grid.append(added.element);
        }
      }
    }
    for (const { chart, phase, metric } of charts.values()) chart.show({ series: series(phase, metric) });
  });

  const unsubscribe = subscribe(names, {
    onReset() {
      errors.replaceChildren();
      names.forEach((name) => histories.set(name, new History()));
    },
    onEvent(event) {
      if (event.type === "metrics") histories.get(event.run).apply(event);
      if (event.type === "summary") summaries.set(event.run, event.summary);
      draw();
    },
    onError(reason) {
      errors.replaceChildren(notice(`This page is out of date: ${reason}.`));
    },
  });
  draw();
  return { title: "Compare", breadcrumbs: [["Compare", null]], element, close: unsubscribe };
}
