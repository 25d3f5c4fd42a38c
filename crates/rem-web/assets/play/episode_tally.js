// The returns of the episodes that ended since the page was opened. Branches of an episode do not count: its last end does.

import { h } from "../lib/dom.js";
import { number, signed } from "../lib/format.js";

/** Returns that are listed; older ones only count. */
const LISTED = 12;

export function episodeTally() {
  const element = h("p", { class: "tally", role: "status" });
  const returns = [];
  let last = null;
  return {
    element,
    /** Adds the end of an episode, which has a timeline of its own. */
    add(timeline, node) {
      if (timeline === last) returns.pop();
      last = timeline;
      returns.push(node.return);
      const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length;
      const episodes = returns.length === 1 ? "1 episode" : `${returns.length} episodes`;
      element.replaceChildren(`${episodes}, mean return ${number(mean)}: `,
        ...returns.slice(-LISTED).map((value) => h("span", { class: value > 0 ? "won" : value < 0 ? "lost" : null }, signed(value))));
    },
  };
}
