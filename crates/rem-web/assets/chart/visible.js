// Which elements are on the screen, or nearly: only charts that can be seen are drawn.

const callbacks = new WeakMap();

const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) callbacks.get(target)(isIntersecting);
}, { rootMargin: "150px" });

/** Calls `changed(visible)` when an element comes into view or leaves it, also by removal from the page. */
export function whenVisible(element, changed) {
  callbacks.set(element, changed);
  observer.observe(element);
}
