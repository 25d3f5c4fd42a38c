// DOM helpers.

/** The namespace of SVG. */
export const SVG = "http://www.w3.org/2000/svg";

/** Creates an element. Attributes that start with "on" are listeners; null and false are skipped. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Creates an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value === "boolean") element[name] = value;
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Calls `draw` at most once per animation frame. */
export function perFrame(draw) {
  let scheduled = false;
  return () => {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      draw();
    });
  };
}

/** Calls `draw` at most once per `interval` milliseconds. */
export function throttle(draw, interval) {
  let last = -Infinity;
  let timer = null;
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      last = performance.now();
      draw();
    }, Math.max(0, last + interval - performance.now()));
  };
}

/** A message in place of missing content, with a hint. */
export function notice(text, hint) {
  return h("div", { class: "notice", role: "status" }, h("p", {}, text), hint ? h("p", { class: "muted" }, hint) : null);
}

/** A labeled slider with its value as text. */
export function slider({ label, min, max, step = 1, value, text, onchange }) {
  const output = h("output", {}, text(value));
  const range = h("input", {
    type: "range", min, max, step, value, "aria-valuetext": text(value),
    oninput: () => {
      show(Number(range.value));
      onchange(Number(range.value));
    },
  });
  const show = (value) => {
    output.textContent = text(value);
    range.setAttribute("aria-valuetext", text(value));
  };
  const element = h("label", { class: "slider" }, h("span", {}, label), range, output);
  return {
    element,
    range,
    set(value, { max } = {}) {
      if (max !== undefined) range.max = max;
      range.value = value;
      show(Number(range.value));
    },
  };
}
