// Several runs side by side: their returns on one chart, and every number that two of them share.

import { listen } from "./api.js";
import { chart } from "./chart.js";
import { History } from "./curves.js";
import { coalesced, h, notice } from "./dom.js";
import { number, words } from "./format.js";
import { badge } from "./runs.js";

export function compareView(chosen) {
  const names = [...new Set(chosen)];
  const histories = new Map(names.map((name) => [name, new History()]));
  const summaries = new Map();
  const evaluations = chart({ title: "Return at evaluations", tall: true });
  const collecting = chart({ title: "Return while collecting", tall: true });
  const charts = new Map();
  const more = h("div", { class: "charts" });
  const trouble = h("div", {});
  const heads = h("ul", { class: "tiles" });
  const element = h("section", {},
    h("h1", {}, `${names.length} runs side by side`),
    trouble, heads, evaluations.element, collecting.element, h("h2", {}, "Losses and other numbers"), more);

  const series = (phase, key) => names.map((name, look) => ({ name, look, points: histories.get(name).points(phase, key) }));

  const draw = coalesced(() => {
    heads.replaceChildren(...names.map((name) => {
      const summary = summaries.get(name);
      return h("li", { class: "tile" },
        h("a", { href: `#/run/${encodeURIComponent(name)}` }, name),
        summary ? badge(summary.state) : null,
        h("strong", {}, number(summary?.score)), h("span", { class: "quiet" }, `return · epoch ${summary?.epoch ?? "–"}`));
    }));
    evaluations.show({ series: series("evaluate", "mean_return") });
    collecting.show({ series: series("collect", "mean_return") });
    for (const history of histories.values()) {
      for (const phase of history.phases().filter((phase) => phase !== "collect" && phase !== "evaluate")) {
        for (const key of history.keys(phase)) {
          const id = `${phase}/${key}`;
          if (charts.has(id)) continue;
          const made = chart({ title: `${words(phase)}: ${words(key)}` });
          charts.set(id, { made, phase, key });
          more.append(made.element);
        }
      }
    }
    for (const { made, phase, key } of charts.values()) made.show({ series: series(phase, key) });
  });

  const stop = listen(names, {
    again() {
      trouble.replaceChildren();
      names.forEach((name) => histories.set(name, new History()));
    },
    event(event) {
      if (event.is === "metrics") histories.get(event.run).take(event);
      if (event.is === "summary") summaries.set(event.run, event.summary);
      draw();
    },
    broken(why) {
      trouble.replaceChildren(notice(`What is shown is not the latest: ${why}.`));
    },
  });
  draw();
  return { title: "Comparison", where: [["Compare", null]], element, close: stop };
}
