// Metrics and notes of every epoch, the newest first.

import { h } from "../lib/dom.js";
import { number, words } from "../lib/format.js";

/** Lines that are shown at first, and added by the button. */
const PAGE = 200;

export function logPanel(state) {
  const list = h("ol", { class: "log", tabindex: 0, "aria-label": "Log" });
  const more = h("button", { type: "button", onclick: () => show(count + PAGE) }, "Older lines");
  let count = PAGE;
  const line = ({ epoch, phase, text, values }) => h("li", { class: phase === "note" ? "warning" : null },
    h("span", { class: "muted" }, `epoch ${epoch} `), h("strong", {}, words(phase)), " ",
    text ?? values.map(([key, value]) => `${key} ${number(value)}`).join(" · "));

  function show(wanted) {
    count = wanted;
    list.replaceChildren(...state.history.newestLines(count).map(line));
    if (!list.childElementCount) list.replaceChildren(h("li", { class: "muted" }, "The log is empty."));
    more.hidden = state.history.lineCount <= count;
  }

  return {
    element: h("div", {}, list, more),
    draw: () => show(count),
  };
}
