// The tokenizer: reconstructions, and the codebook of the last checkpoint.

import { getMessage, runPath } from "../lib/api.js";
import { chart } from "../lib/chart.js";
import { h, notice } from "../lib/dom.js";
import { number, percent } from "../lib/format.js";
import { drawFrame, frameCanvas } from "../lib/frames.js";
import { evaluationImages } from "./evaluation_images.js";

export function tokenizerPanel(state) {
  const codebook = codebookSection(state);
  const usage = chart({ title: "Codebook usage" });
  const variance = chart({ title: "explained_variance" });
  const images = evaluationImages(state, "reconstructions.png", "Frames above, reconstructions below");
  const series = (name, style) => ({ name, style, points: state.history.points("tokenizer", name) });
  return {
    element: h("div", {},
      h("h2", {}, "Reconstructions"), images.element,
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

function codebook(header, payload) {
  const total = header.counts.reduce((sum, count) => sum + count, 0) || 1;
  const max = Math.max(...header.counts, 1);
  const cells = header.counts.map((count, code) => {
    const label = `code ${code}: ${count ? `${percent(count / total)} of tokens` : "dead"}`;
    const canvas = frameCanvas(header.patch_size, label);
    if (count) drawFrame(canvas, payload, code);
    const bar = h("span", { class: "usage" });
    bar.style.width = `${100 * Math.sqrt(count / max)}%`;
    return h("li", { class: count ? "code" : "code dead", title: label }, canvas, bar);
  });
  return [
    h("p", {}, `${header.active} of ${header.counts.length} codes active, perplexity ${number(header.perplexity)}.`),
    h("p", { class: "muted" }, `Counted over ${header.frames} replay frames with the tokenizer of epoch ${header.epoch}. Each image is the mean of the patches assigned to a code; bars show usage on a square-root scale; crosses mark dead codes.`),
    h("ul", { class: "codes", "aria-label": "Codes" }, cells),
  ];
}
