// Bars for fractions.

import { h } from "./dom.js";
import { number, percent, words } from "./format.js";

export function meter(label, fraction) {
  const bar = h("span", { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": number(fraction) }, h("span", {}));
  bar.firstChild.style.width = `${100 * fraction}%`;
  return bar;
}

/** A policy as one bar per action, with the action taken marked. */
export function policyBars(actions, policy, taken) {
  return policy.map((probability, action) => h("li", { class: action === taken ? "taken" : null },
    h("span", {}, words(actions[action] ?? String(action))), meter(`probability of ${actions[action]}`, probability), h("span", { class: "number" }, percent(probability))));
}
