// The tokenizer: reconstructions, and the codebook of the last checkpoint.

import { getMessage, runPath } from "../lib/api.js";
import { chart } from "../lib/chart.js";
import { h, notice } from "../lib/dom.js";
import { frameOf } from "../lib/sheet.js";
import { codebook } from "./codebook.js";
import { evaluationImages } from "./evaluation_images.js";

export function tokenizerPanel(state) {
  const codebook = codebookSection(state);
  const usage = chart({ title: "Codebook usage" });
  const variance = chart({ title: "explained_variance" });
  const images = evaluationImages(state, "reconstructions.png", "Frames above, reconstructions below", pairs);
  const series = (name, style) => ({ name, style, points: state.history.points("tokenizer", name) });
  return {
    element: h("div", {},
      h("h2", {}, "Reconstructions"), h("p", { class: "muted" }, "Frames above, their reconstructions below."), images.element,
      h("h2", {}, "Codebook"), h("div", { class: "charts" }, usage.element, variance.element), codebook.element),
    draw() {
      images.draw();
      codebook.draw();
      usage.show({ series: [series("active_codes", 0), series("code_perplexity", 1)] });
      variance.show({ series: [series("explained_variance", 2)] });
    },
  };
}

function codebookSection(state) {
  const codes = h("div", {});
  const reload = h("button", { type: "button", hidden: true, onclick: () => load() }, "Update");
  const element = h("div", {}, codes, reload);
  let loaded = null;

  const lastCheckpoint = () => state.details?.checkpoints.at(-1) ?? null;

  async function load() {
    loaded = lastCheckpoint();
    reload.hidden = true;
    codes.setAttribute("aria-busy", "true");
    try {
      const { header, payload } = await getMessage(runPath(state.name, "codebook"));
      codes.replaceChildren(...codebook(header, payload));
    } catch (error) {
      codes.replaceChildren(notice(error.message, error.hint));
    }
    codes.removeAttribute("aria-busy");
  }

  return {
    element,
    draw() {
      if (!state.details) return;
      if (lastCheckpoint() === null) {
        codes.replaceChildren(notice("No codebook: this run has no checkpoint yet.", "Training writes the first checkpoint when it starts."));
      } else if (loaded === null) {
        codes.replaceChildren(h("p", { class: "muted" }, "Loading the codebook…"));
        load();
      } else if (lastCheckpoint() !== loaded) {
        // Not automatic: inference slows down training on the same machine.
        reload.textContent = `Update to epoch ${lastCheckpoint()}`;
        reload.hidden = false;
      }
    },
  };
}

/** Frames above their reconstructions. */
function pairs(sheet, image) {
  const pair = (column) => h("li", {}, sheet.rows.map((_, row) => frameOf(sheet, image, column, row)));
  return h("ol", { class: "pairs" }, sheet.columns.map((_, column) => pair(column)));
}
