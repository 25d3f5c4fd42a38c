// The overview: returns, key metrics, time per phase.

import { chart } from "../lib/chart.js";
import { h, notice } from "../lib/dom.js";
import { duration, number, percent, words } from "../lib/format.js";
import { returnSeries } from "../lib/history.js";

export function overviewPanel(state) {
  const returns = chart({ title: "Return", tall: true });
  const tiles = h("ul", { class: "tiles" });
  const phases = h("div", {});
  return {
    element: h("div", {}, returns.element, tiles, h("h2", {}, "Time per phase"), phases),
    draw() {
      returns.show({ series: returnSeries(state.history), references: state.details?.references ?? [] });
      tiles.replaceChildren(...keyMetrics(state));
      phases.replaceChildren(...phaseTimes(state.progress));
    },
  };
}

/** The last values of the metrics to watch first, by their names in `metrics.jsonl`. */
function keyMetrics({ history, details }) {
  const tile = (title, value, text) => h("li", { class: "tile" }, h("span", {}, title), h("strong", {}, value), h("span", { class: "muted" }, text));
  const codes = details?.vocabulary ? `of ${details.vocabulary} codes` : "codes in use";
  return [
    tile("explained_variance", percent(history.last("tokenizer", "explained_variance")), "tokenizer reconstructions"),
    tile("active_codes", number(history.last("tokenizer", "active_codes")), codes),
    tile("loss_obs", number(history.last("world_model", "loss_obs")), "world model, nats per token"),
    tile("imagined_return", number(history.last("actor_critic", "imagined_return")), "actor-critic, in imagination"),
    tile("mean_return", number(history.last("evaluate", "mean_return")), "last evaluation"),
    tile("steps", number(history.last("collect", "steps")), "environment steps"),
  ];
}

function phaseTimes(progress) {
  if (!progress) return [notice("No timings yet.")];
  const total = progress.phases.reduce((sum, phase) => sum + phase.seconds, 0) || 1;
  const phases = progress.phases.map((phase, style) => ({ ...phase, style, fraction: phase.seconds / total }));
  return [
    h("div", { class: "stacked-bar", "aria-hidden": "true" }, phases.map(({ fraction, style }) => {
      const bar = h("span", { class: `fill series-${style}` });
      bar.style.flexGrow = fraction;
      return bar;
    })),
    h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Phase", "Total", "Share", "Per epoch"].map((title, i) => h("th", { scope: "col", class: i ? "number" : null }, title)))),
      h("tbody", {}, phases.map((phase) => h("tr", {},
        h("th", { scope: "row" }, h("span", { class: `key series-${phase.style}`, "aria-hidden": "true" }), words(phase.name)),
        h("td", { class: "number" }, duration(phase.seconds)), h("td", { class: "number" }, percent(phase.fraction)),
        h("td", { class: "number" }, duration(phase.seconds_per_epoch))))))),
  ];
}
