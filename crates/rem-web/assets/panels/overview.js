// The overview: returns, key metrics, time per phase.

import { chart } from "../lib/chart.js";
import { h, notice } from "../lib/dom.js";
import { duration, number, percent, words } from "../lib/format.js";
import { returnSeries } from "../lib/history.js";
import { sparkline } from "../lib/sparkline.js";

/** The metrics to watch first, by their names in `metrics.jsonl`. */
const KEY_METRICS = [
  ["evaluate", "mean_return", number, () => "last evaluation"],
  ["collect", "steps", number, () => "environment steps"],
  ["tokenizer", "explained_variance", percent, () => "tokenizer reconstructions"],
  ["tokenizer", "active_codes", number, ({ details }) => (details.vocabulary ? `of ${details.vocabulary} codes` : "codes in use")],
  ["world_model", "loss_obs", number, () => "world model, nats per token"],
  ["actor_critic", "imagined_return", number, () => "actor-critic, in imagination"],
];

/** Most points of a tile's curve. */
const CURVE_POINTS = 80;

export function overviewPanel(state) {
  const returns = chart({ title: "Return", tall: true, settings: state.chartSettings });
  const tiles = KEY_METRICS.map(tile);
  const phases = h("div", { class: "boxed" });
  returns.follow(() => ({
    series: returnSeries(state.history, state.chartSettings.axis), references: state.details.references,
  }));
  return {
    element: h("div", {},
      h("div", { class: "overview" }, returns.element, h("ul", { class: "tiles" }, tiles.map(({ element }) => element))),
      h("h2", {}, "Time per phase"), phases),
    draw() {
      returns.invalidate();
      for (const { show } of tiles) show(state);
      phases.replaceChildren(...phaseTimes(state.progress));
    },
  };
}

/** The last value of a metric above its curve. */
function tile([phase, metric, format, description]) {
  const value = h("strong", {});
  const text = h("span", { class: "muted" });
  const curve = sparkline();
  return {
    element: h("li", { class: "tile" }, h("span", {}, metric), value, text, curve.element),
    show(state) {
      const { x, y } = state.history.points(phase, metric);
      value.textContent = format(y.length ? y[y.length - 1] : null);
      text.textContent = description(state);
      const every = Math.max(1, Math.ceil(x.length / CURVE_POINTS));
      const points = x.map((epoch, i) => [epoch, y[i]]).filter((_, i) => (x.length - 1 - i) % every === 0);
      curve.show(points, `${metric} over ${x.length} epochs`);
    },
  };
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
