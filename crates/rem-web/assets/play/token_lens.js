// Inspects the tokens of an imagined frame: their entropy, and the most likely codes at a position.

import { h } from "../lib/dom.js";
import { number, percent } from "../lib/format.js";
import { drawFrame, frameCanvas } from "../lib/frames.js";

/** Shortest time between two queries while a dream runs: each response has six frames to draw. */
const QUERY_MS = 330;

/**
 * @param {{query: (position: number) => Promise, running: () => boolean, frameSize: () => number}} session
 */
export function tokenLens({ query, running, frameSize }) {
  const overlay = h("canvas", { class: "overlay", "aria-hidden": "true" });
  const shade = h("input", { type: "checkbox", onchange: () => draw() });
  const text = h("p", { class: "muted", "aria-live": "polite" });
  const list = h("ol", { class: "alternatives", "aria-label": "Most likely codes" });
  const element = h("div", {},
    h("label", {}, shade, "Shade tokens by entropy"), text, list);
  let node = null;
  let position = null;
  let querying = false;
  const lens = { overlay, element, active: false, toggle, handleKey, show };

  const grid = () => Math.sqrt(node?.tokens.length ?? 1);

  function showHelp() {
    const evicted = "The token probabilities of this step were dropped to save memory.";
    const real = "Real frame: its tokens are encoded, not sampled.";
    text.textContent = node?.entropies.length
      ? "Point at a token, or press I and use the arrow keys, to see its most likely codes."
      : node && node.termination_probability !== null ? evicted : real;
    list.replaceChildren();
  }

  function draw() {
    const scale = 64;
    const side = grid();
    overlay.width = overlay.height = side * scale;
    const context = overlay.getContext("2d");
    if (shade.checked) {
      // 1 - 1 / perplexity: 0 for a certain token, 0.5 for two equally likely codes.
      node?.entropies.forEach((entropy, i) => {
        context.fillStyle = `rgb(255 157 59 / ${0.8 * (1 - Math.exp(-entropy))})`;
        context.fillRect((i % side) * scale, Math.floor(i / side) * scale, scale, scale);
      });
    }
    if (position !== null) {
      context.strokeStyle = "#ff9d3b";
      context.lineWidth = 4;
      context.strokeRect((position % side) * scale + 2, Math.floor(position / side) * scale + 2, scale - 4, scale - 4);
    }
  }

  function select(next) {
    position = next;
    draw();
    if (position === null || !node?.entropies.length) showHelp();
    else if (!querying) queryLoop();
  }

  /** Queries until the response belongs to the selected token of the current node. */
  async function queryLoop() {
    querying = true;
    let last = null;
    const selected = () => `${position} at ${node.id}`;
    while (position !== null && node.entropies.length && last !== selected()) {
      last = selected();
      const queried = node;
      try {
        const { header, payload } = await query(position);
        if (header.node === queried.id) showCodes(header, queried, payload);
      } catch (error) {
        text.textContent = error.message;
        list.replaceChildren();
      }
      if (running()) await new Promise((resolve) => setTimeout(resolve, QUERY_MS));
    }
    querying = false;
    if (position === null || !node.entropies.length) showHelp();
  }

  function showCodes({ position, sampled, codes }, { step, entropies }, payload) {
    text.textContent = `Token ${position}, step ${step}: sampled code ${sampled}, entropy ${number(entropies[position])} nats.`;
    list.replaceChildren(...codes.map(({ code, probability }, i) => {
      const canvas = frameCanvas(frameSize(), `frame with code ${code}`);
      drawFrame(canvas, payload, i);
      return h("li", { class: code === sampled ? "taken" : null }, canvas, h("span", {}, `code ${code}`), h("span", { class: "number" }, percent(probability)));
    }));
  }

  overlay.addEventListener("pointermove", (event) => {
    const box = overlay.getBoundingClientRect();
    const index = (fraction) => Math.min(grid() - 1, Math.max(0, Math.floor(fraction * grid())));
    const next = index((event.clientY - box.top) / box.height) * grid() + index((event.clientX - box.left) / box.width);
    if (next !== position) select(next);
  });
  overlay.addEventListener("pointerleave", () => !lens.active && select(null));

  function toggle() {
    lens.active = !lens.active;
    select(lens.active ? (position ?? 0) : null);
  }

  /** Returns whether the key was handled. */
  function handleKey(event) {
    if (!node) return false;
    const side = grid();
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -side, ArrowDown: side }[event.key];
    if (event.key === "Escape") toggle();
    else if (step) select((position + step + node.tokens.length) % node.tokens.length);
    else return false;
    return true;
  }

  function show(next) {
    node = next;
    if (position === null) {
      draw();
      showHelp();
    } else {
      select(position);
    }
  }

  return lens;
}
