// Parts of a run that the table and the cards share. All are updated in place, so that focus and clicks are not lost.

import { h } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { sparkline } from "../lib/sparkline.js";

export function badge(state) {
  return h("span", { class: `badge ${state}` }, state);
}

/** Replaces the text of an element if it is another one. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The checkbox that selects a run. The same run can be in two groups. */
export function selector(name, selection) {
  const input = h("input", {
    type: "checkbox", "aria-label": `Select ${name} to compare`,
    onchange: () => selection.set([name], input.checked),
  });
  return {
    element: input,
    show: () => (input.checked = selection.has(name)),
  };
}

/** The link to a run, its title if it has one, and its tags. */
export function runName(name) {
  const title = h("a", { href: `#/run/${encodeURIComponent(name)}` }, name);
  const directory = h("span", { class: "muted directory", hidden: true }, name);
  const tags = h("span", { class: "tags" });
  return {
    element: h("div", { class: "run-name" }, title, directory, tags),
    show(run) {
      setText(title, run.title ?? name);
      directory.hidden = !run.title;
      title.title = run.note ?? "";
      if (tags.textContent !== run.tags.join("")) tags.replaceChildren(...run.tags.map((tag) => h("span", { class: "tag" }, tag)));
    },
  };
}

/** The curve of evaluations. */
export function scoreCurve() {
  const curve = sparkline();
  return {
    element: curve.element,
    show(run) {
      const [first, last] = [run.curve[0], run.curve[run.curve.length - 1]];
      curve.show(run.curve, run.curve.length
        ? `Return of ${run.curve.length} evaluations, from ${number(first[1])} to ${number(last[1])}` : "No evaluation yet");
    },
  };
}

/** The epoch as text and bar. */
export function epochProgress() {
  const text = h("span", {});
  const bar = h("span", { class: "bar-of-run", "aria-hidden": "true" }, h("span", {}));
  return {
    elements: [text, bar],
    show(run) {
      setText(text, `${run.epoch}${run.epochs ? ` / ${run.epochs}` : ""}`);
      bar.firstChild.style.width = `${100 * (run.epochs ? Math.min(1, run.epoch / run.epochs) : 0)}%`;
    },
  };
}

/** Shows elements in this order, and keeps the focus. */
export function arrange(parent, elements) {
  const same = elements.length === parent.childElementCount && elements.every((element, i) => element === parent.children[i]);
  if (same) return;
  const focused = document.activeElement;
  parent.replaceChildren(...elements);
  if (parent.contains(focused)) focused.focus();
}
