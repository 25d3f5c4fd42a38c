// Which charts are on the screen, or nearly: only those are drawn.

import { h } from "../lib/dom.js";

const CLASS = "chart-plot";
const callbacks = new WeakMap();

const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) callbacks.get(target)(isIntersecting);
}, { rootMargin: "150px" });

/**
 * A box for a chart. `changed(visible)` is called when it comes into view or leaves it, also by
 * removal from the page, and with {now: true} when it must be drawn at once.
 */
export function plotBox(changed, ...children) {
  const element = h("div", { class: CLASS }, children);
  callbacks.set(element, changed);
  observer.observe(element);
  return element;
}

// Paper has room for all of them.
addEventListener("beforeprint", () => {
  for (const element of document.getElementsByClassName(CLASS)) callbacks.get(element)(true, { now: true });
});
