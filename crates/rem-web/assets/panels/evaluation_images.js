// The images of every evaluation, with a slider over epochs. Follows the last one until the slider is moved back.

import { runPath } from "../lib/api.js";
import { h, notice, slider } from "../lib/dom.js";

/** @param {string} kind the end of the file names, as `dream.png` */
export function evaluationImages(state, kind, title) {
  const image = h("img", { class: "sheet", alt: title });
  const element = h("div", {});
  let files = [];
  let follow = true;
  let shown = null;
  const show = (index) => {
    const file = files[index];
    if (!file || file.file === shown) return;
    shown = file.file;
    image.alt = `${title}, epoch ${file.epoch}`;
    image.src = runPath(state.name, "media", file.file);
  };
  const epochSlider = slider({
    label: "Epoch", min: 0, max: 0, value: 0,
    text: (index) => (files[index] ? `epoch ${files[index].epoch}` : ""),
    onchange(index) {
      follow = index === files.length - 1;
      show(index);
    },
  });
  return {
    element,
    draw() {
      files = (state.details?.media ?? []).filter((file) => file.kind === kind);
      if (!files.length) {
        element.replaceChildren(notice("No images yet.", "Evaluations write images. `evaluate.every` in the config sets the interval."));
        return;
      }
      if (!element.contains(image)) element.replaceChildren(epochSlider.element, h("div", { class: "scroll" }, image));
      const index = follow ? files.length - 1 : Number(epochSlider.range.value);
      epochSlider.set(index, { max: files.length - 1 });
      show(index);
    },
  };
}
