// Columns of real and generated frames, one below the other, with labels of the rows and texts as parts of the page.

import { h } from "./dom.js";

/**
 * A column is {head, frames, below, class}: texts above, one element per row, and elements below.
 * @param {string[]} rows the labels of the rows
 */
export function filmstrip(rows, columns) {
  const labels = h("li", { class: "labels", "aria-hidden": "true" },
    h("span", {}), rows.map((row) => h("span", { class: "row-label" }, row)), h("span", {}));
  return h("div", { class: "scroll" }, h("ol", { class: "filmstrip" }, labels, columns.map((column) => h("li", { class: column.class },
    h("div", { class: "head" }, column.head.map((text) => h("span", { class: "muted" }, text))),
    column.frames,
    h("div", { class: "below" }, column.below)))));
}

/** A panel in place of a frame that does not exist. */
export function panel(...content) {
  return h("div", { class: "frame panel" }, content);
}
