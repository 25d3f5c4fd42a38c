// The list of compared runs: the legend of all charts, and which of them are drawn.

import { lineSample } from "../lib/chart.js";
import { h } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { badge, setText } from "../runs/parts.js";

/**
 * @param {Array<{name: string, style: number, runs: string[]}>} series
 * @param {{hidden: Set<string>, settings: object, onchange: () => void}} options
 */
export function seriesList(series, { hidden, settings, onchange }) {
  const rows = series.map(({ name, style, runs }) => {
    const score = h("span", { class: "number" });
    const detail = h("span", { class: "muted" });
    const state = badge("training");
    const shown = h("input", {
      type: "checkbox", checked: !hidden.has(name), "aria-label": `Show ${name}`,
      onchange: () => {
        if (shown.checked) hidden.delete(name);
        else hidden.add(name);
        onchange();
      },
    });
    const title = runs.length === 1 ? h("a", { href: `#/run/${encodeURIComponent(runs[0])}` }, name) : h("span", {}, name);
    const element = h("li", {
      onpointerenter: () => settings.set({ highlight: name }), onpointerleave: () => settings.set({ highlight: null }),
      onfocusin: () => settings.set({ highlight: name }), onfocusout: () => settings.set({ highlight: null }),
    }, shown, h("span", { class: "sample-cell" }, lineSample(style)), h("span", { class: "series-name" }, title, state), detail, score);
    return {
      element,
      show(summaries) {
        const known = runs.map((run) => summaries.get(run)).filter(Boolean);
        const scores = known.map((run) => run.score).filter((value) => value !== null);
        setText(score, number(scores.length ? scores.reduce((a, b) => a + b, 0) / scores.length : null));
        const seeds = scores.length === runs.length ? runs.length : `${scores.length} of ${runs.length}`;
        setText(detail, runs.length > 1 ? `${seeds} seeds` : `epoch ${known[0]?.epoch ?? "–"}`);
        state.hidden = !known.some((run) => run.state === "training");
      },
    };
  });
  return {
    element: h("ul", { class: "series-list boxed", "aria-label": "Runs", tabindex: 0 }, rows.map(({ element }) => element)),
    show: (summaries) => rows.forEach((row) => row.show(summaries)),
  };
}
