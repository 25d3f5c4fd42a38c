// Elements out of plain values.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Attributes that begin with "on" are listeners; null and false are left out. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
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

/** Runs `draw` once before the next picture, however often it is asked to. */
export function coalesced(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

/** Runs `draw` soon, but not more often than every `apart` milliseconds, for what comes by itself and often. */
export function paced(draw, apart) {
  let last = -Infinity;
  let timer = null;
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      last = performance.now();
      draw();
    }, Math.max(0, last + apart - performance.now()));
  };
}

/** What is shown where something is missing, and what can be done about it. */
export function notice(text, hint) {
  return h("div", { class: "notice", role: "status" }, h("p", {}, text), hint ? h("p", { class: "quiet" }, hint) : null);
}

/** A labelled slider with its value as text: `[label][range][text]`. */
export function slider({ label, min, max, step = 1, value, text, onchange }) {
  const shown = h("output", {}, text(value));
  const range = h("input", {
    type: "range", min, max, step, value, "aria-valuetext": text(value),
    oninput: () => {
      show(Number(range.value));
      onchange(Number(range.value));
    },
  });
  const show = (value) => {
    shown.textContent = text(value);
    range.setAttribute("aria-valuetext", text(value));
  };
  const element = h("label", { class: "slider" }, h("span", {}, label), range, shown);
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
