// The codes of the tokenizer, most used first. A selected code shows frames that it occurs in.

import { h } from "../lib/dom.js";
import { number, percent } from "../lib/format.js";
import { drawFrame, frameCanvas, outlineTokens } from "../lib/frames.js";

export function codebook(header, payload) {
  const { counts } = header;
  const byUse = counts.map((_, code) => code).sort((a, b) => counts[b] - counts[a] || a - b);
  const used = byUse.filter((code) => counts[code]);
  const unused = byUse.filter((code) => !counts[code]);
  const detail = h("div", { class: "code-detail", "aria-live": "polite" });
  const select = (code) => {
    for (const button of list.querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.value) === code));
    detail.replaceChildren(...occurrences(header, payload, code));
  };
  const list = h("ul", { class: "codes", "aria-label": "Codes, most used first" },
    byUse.map((code) => tile(header, payload, code, () => select(code))));
  if (used.length) select(used[0]);
  return [
    h("p", {}, `${header.active} of ${counts.length} codes active, perplexity ${number(header.perplexity)}.`),
    h("p", { class: "muted" }, `Counted over ${header.frames} replay frames with the tokenizer of epoch ${header.epoch}. Each image is the mean of the patches assigned to a code; bars show usage on a square-root scale.${unused.length ? ` Crosses mark ${unused.length} dead codes.` : ""} Select a code to see where it occurs.`),
    list,
    detail,
  ];
}

function usage({ counts }, code) {
  const total = counts.reduce((sum, count) => sum + count, 0) || 1;
  const share = counts[code] / total;
  return share > 0 && share < 0.01 ? "under 1%" : percent(share);
}

function tile(header, payload, code, onclick) {
  const count = header.counts[code];
  const label = `code ${code}: ${count ? `${usage(header, code)} of tokens` : "dead"}`;
  const canvas = frameCanvas(header.patch_size, label);
  if (!count) return h("li", { class: "code dead", title: label }, canvas);
  drawFrame(canvas, payload, code);
  const bar = h("span", { class: "usage" });
  bar.style.width = `${100 * Math.sqrt(count / Math.max(...header.counts))}%`;
  return h("li", { class: "code", title: label },
    h("button", { type: "button", value: code, "aria-label": label, "aria-pressed": "false", onclick }, canvas, bar));
}

/** Frames with a code, each of its positions outlined. */
function occurrences(header, payload, code) {
  const patches = header.counts.length * header.patch_size ** 2 * 3;
  const bytes = payload.subarray(patches);
  const found = header.occurrences[code];
  const frames = found.map(({ frame, positions }, i) => {
    const times = `${positions.length} ${positions.length === 1 ? "token" : "tokens"}`;
    const canvas = frameCanvas(header.frame_size, `frame ${i + 1} with code ${code}: ${times}`);
    drawFrame(canvas, bytes, frame);
    const overlay = h("canvas", { class: "overlay", "aria-hidden": "true" });
    outlineTokens(overlay, header.grid, positions, "#ff9d3b");
    return h("li", {}, h("div", { class: "layers" }, canvas, overlay), h("span", { class: "muted" }, times));
  });
  return [
    h("h3", {}, `Code ${code}`),
    h("p", { class: "muted" }, `${usage(header, code)} of tokens. Some frames that it occurs in:`),
    h("ul", { class: "occurrences" }, frames),
  ];
}
