// The lines of `metrics.jsonl`, newest first.

import { h } from "../lib/dom.js";
import { number, words } from "../lib/format.js";

export function logPanel(state) {
  const list = h("ol", { class: "log", tabindex: 0, "aria-label": "Log" });
  const metrics = (line) => Object.entries(line).filter(([key]) => key !== "epoch" && key !== "phase")
    .map(([key, value]) => `${key} ${number(value)}`).join(" · ");
  return {
    element: h("div", {}, list),
    draw() {
      const lines = [...state.history.lines].reverse();
      list.replaceChildren(...lines.map((line) => h("li", { class: line.phase === "note" ? "warning" : null },
        h("span", { class: "muted" }, `epoch ${line.epoch} `), h("strong", {}, words(line.phase)), " ", line.text ?? metrics(line))));
      if (!lines.length) list.replaceChildren(h("li", { class: "muted" }, "The log is empty."));
    },
  };
}
