// One chart per metric, grouped by phase.

import { chart } from "../lib/chart.js";
import { h, notice } from "../lib/dom.js";
import { words } from "../lib/format.js";
import { isTest, metricSeries } from "../lib/history.js";

export function metricsPanel(state) {
  const charts = new Map();
  const sections = new Map();
  const empty = notice("No metrics yet.", "The first ones appear after the first phase of the first epoch.");
  const element = h("div", {}, empty);
  return {
    element,
    draw() {
      for (const phase of state.history.phases()) {
        if (!sections.has(phase)) {
          const grid = h("div", { class: "charts" });
          sections.set(phase, grid);
          element.append(h("h2", {}, words(phase)), grid);
        }
        for (const metric of state.history.metrics(phase).filter((name) => !isTest(name))) {
          const id = `${phase} ${metric}`;
          if (!charts.has(id)) {
            charts.set(id, chart({ title: metric }));
            sections.get(phase).append(charts.get(id).element);
          }
          charts.get(id).show({ series: metricSeries(state.history, phase, metric) });
        }
      }
      empty.hidden = sections.size > 0;
    },
  };
}
