// The runs as a grid of cards: one look at all of them while they train.

import { h } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { presetText } from "./order.js";
import { arrange, badge, epochProgress, runName, scoreCurve, selector, setText } from "./parts.js";

export function runCards(selection) {
  const cards = new Map();
  const groups = new Map();
  const element = h("div", {});

  function group(name) {
    if (!groups.has(name)) {
      const grid = h("ul", { class: "cards" });
      groups.set(name, { grid, element: h("section", {}, name ? h("h2", {}, name) : null, grid) });
    }
    return groups.get(name);
  }

  return {
    element,
    show(shown) {
      arrange(element, shown.map(([name, runs]) => {
        const { grid, element } = group(name);
        arrange(grid, runs.map((run) => {
          const key = JSON.stringify([name, run.name]);
          if (!cards.has(key)) cards.set(key, card(run.name, selection));
          cards.get(key).show(run);
          return cards.get(key).element;
        }));
        return element;
      }));
    },
  };
}

function card(name, selection) {
  const [select, title, progress, curve] = [selector(name, selection), runName(name), epochProgress(), scoreCurve()];
  const state = h("span", {});
  const facts = h("p", { class: "muted" });
  const score = h("strong", {});
  return {
    element: h("li", { class: "card" },
      h("div", { class: "card-head" }, select.element, title.element, state),
      facts, curve.element,
      h("div", { class: "card-foot" }, h("span", {}, score, h("span", { class: "muted" }, " return")), h("span", { class: "muted epochs" }, "epoch ", progress.elements))),
    show(run) {
      for (const part of [select, title, progress, curve]) part.show(run);
      if (state.textContent !== run.state) state.replaceChildren(badge(run.state));
      const seed = run.seed === null ? "" : ` · seed ${run.seed}`;
      setText(facts, `${run.game ?? "–"} · ${presetText(run)}${seed}`);
      setText(score, number(run.score));
    },
  };
}
