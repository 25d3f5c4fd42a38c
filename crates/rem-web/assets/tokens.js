// A lens on the tokens of a dreamt frame: how sure each was, and what else one might have been.

import { h } from "./dom.js";
import { percent } from "./format.js";
import { paint, screen } from "./pictures.js";

/** While a dream runs on, tokens are asked for no oftener, in milliseconds: each answer is six frames to draw. */
const EVERY = 330;

/**
 * @param {{ask: (place: number) => Promise, running: () => boolean, size: () => number}} how
 */
export function tokenLens({ ask, running, size }) {
  const layer = h("canvas", { class: "marks", "aria-hidden": "true" });
  const doubt = h("input", { type: "checkbox", onchange: () => draw() });
  const text = h("p", { class: "quiet", "aria-live": "polite" });
  const list = h("ol", { class: "alternatives", "aria-label": "What the token might have been" });
  const element = h("div", {},
    h("label", {}, doubt, "Shade tokens by doubt"), text, list);
  let moment = null;
  let place = null;
  let asking = false;
  const lens = { layer, element, on: false, toggle, key, show };

  const grid = () => Math.sqrt(moment?.tokens.length ?? 1);

  function hint() {
    const forgotten = "The chances of this frame's tokens are forgotten: it is too long ago.";
    const seen = "This frame was seen, not dreamt: no token of it was drawn.";
    text.textContent = moment?.chances.length
      ? "Point at the frame, or press I and use the arrows: the likeliest codes of a token appear here."
      : moment && moment.end_odds !== null ? forgotten : seen;
    list.replaceChildren();
  }

  function draw() {
    const scale = 64;
    const side = grid();
    layer.width = layer.height = side * scale;
    const context = layer.getContext("2d");
    if (doubt.checked) {
      moment?.chances.forEach((chance, i) => {
        context.fillStyle = `rgb(255 157 59 / ${0.8 * (1 - chance)})`;
        context.fillRect((i % side) * scale, Math.floor(i / side) * scale, scale, scale);
      });
    }
    if (place !== null) {
      context.strokeStyle = "#ff9d3b";
      context.lineWidth = 4;
      context.strokeRect((place % side) * scale + 2, Math.floor(place / side) * scale + 2, scale - 4, scale - 4);
    }
  }

  function look(next) {
    place = next;
    draw();
    if (place === null || !moment?.chances.length) hint();
    else if (!asking) follow();
  }

  /** Asks until the answer is about the place and the moment that are looked at. */
  async function follow() {
    asking = true;
    let told = null;
    const wanted = () => `${place} at ${moment.id}`;
    while (place !== null && moment.chances.length && told !== wanted()) {
      told = wanted();
      const { id, step } = moment;
      try {
        const { about, bytes } = await ask(place);
        if (about.moment === id) tell(about, step, bytes);
      } catch (error) {
        text.textContent = error.message;
        list.replaceChildren();
      }
      if (running()) await new Promise((resolve) => setTimeout(resolve, EVERY));
    }
    asking = false;
    if (place === null || !moment.chances.length) hint();
  }

  function tell({ place, drawn, codes }, step, bytes) {
    text.textContent = `Token ${place}: code ${drawn} was drawn at step ${step}.`;
    list.replaceChildren(...codes.map(({ code, chance }, i) => {
      const canvas = screen(size(), `the frame with code ${code} at this place`);
      paint(canvas, bytes, i);
      return h("li", { class: code === drawn ? "taken" : null }, canvas, h("span", {}, `code ${code}`), h("span", { class: "number" }, percent(chance)));
    }));
  }

  layer.addEventListener("pointermove", (event) => {
    const box = layer.getBoundingClientRect();
    const at = (share) => Math.min(grid() - 1, Math.max(0, Math.floor(share * grid())));
    const next = at((event.clientY - box.top) / box.height) * grid() + at((event.clientX - box.left) / box.width);
    if (next !== place) look(next);
  });
  layer.addEventListener("pointerleave", () => !lens.on && look(null));

  function toggle() {
    lens.on = !lens.on;
    look(lens.on ? (place ?? 0) : null);
  }

  /** Whether a key moved the lens. */
  function key(event) {
    if (!moment) return false;
    const side = grid();
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -side, ArrowDown: side }[event.key];
    if (event.key === "Escape") toggle();
    else if (step) look((place + step + moment.tokens.length) % moment.tokens.length);
    else return false;
    return true;
  }

  function show(next) {
    moment = next;
    if (place === null) {
      draw();
      hint();
    } else {
      look(place);
    }
  }

  return lens;
}
