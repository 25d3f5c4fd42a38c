// The codebook of the last checkpoint: every code as it looks, and how often the replay's frames use it.

import { envelope, of } from "./api.js";
import { h, notice } from "./dom.js";
import { number, percent } from "./format.js";
import { paint, screen } from "./pictures.js";

export function codebookPanel(state) {
  const codes = h("div", {});
  const again = h("button", { type: "button", hidden: true, onclick: () => load() }, "Look again");
  const element = h("div", {}, codes, again);
  let asked = null;

  const newest = () => state.details?.checkpoints.at(-1) ?? null;

  async function load() {
    asked = newest();
    again.hidden = true;
    codes.setAttribute("aria-busy", "true");
    try {
      const { about, bytes } = await envelope(of(state.name, "codebook"));
      codes.replaceChildren(...pictures(about, bytes));
    } catch (error) {
      codes.replaceChildren(notice(error.message, error.hint));
    }
    codes.removeAttribute("aria-busy");
  }

  return {
    element,
    draw() {
      if (!state.details) return;
      if (newest() === null) {
        codes.replaceChildren(notice("There is no checkpoint yet, so there is no codebook to look at.", "The first one is written when training starts."));
      } else if (asked === null) {
        codes.replaceChildren(h("p", { class: "quiet" }, "Asking the tokenizer…"));
        load();
      } else if (newest() !== asked) {
        // Not by itself at every checkpoint: it takes time from a training on the same machine.
        again.textContent = `Look again, after epoch ${newest()}`;
        again.hidden = false;
      }
    },
  };
}

function pictures(about, bytes) {
  const total = about.counts.reduce((sum, count) => sum + count, 0) || 1;
  const most = Math.max(...about.counts, 1);
  const cells = about.counts.map((count, code) => {
    const label = `code ${code}: ${count ? `${percent(count / total)} of tokens` : "dead"}`;
    const canvas = screen(about.patch, label);
    if (count) paint(canvas, bytes, code);
    const bar = h("span", { class: "use" });
    bar.style.width = `${100 * Math.sqrt(count / most)}%`;
    return h("li", { class: count ? "code" : "code dead", title: label }, canvas, bar);
  });
  return [
    h("p", {}, `${about.alive} of ${about.counts.length} codes are alive; perplexity ${number(about.perplexity)}.`),
    h("p", { class: "quiet" }, `Counted in ${about.frames} frames of the replay, as the tokenizer after epoch ${about.epoch} sees them. Each picture is the mean of all pieces of frames that its code stands for; the bar below is its use, dead codes are crossed out.`),
    h("ul", { class: "codes", "aria-label": "Codes" }, cells),
  ];
}
