// The frames of every evaluation, with a slider over epochs. Follows the last one until the slider is moved back.

import { getBytes, runPath } from "../lib/api.js";
import { h, notice, slider } from "../lib/dom.js";
import { description } from "../lib/sheet.js";

/**
 * @param {string} kind the end of the file names, as `dream.png`
 * @param {(sheet: object, image: HTMLImageElement) => HTMLElement} show draws a sheet from its description
 */
export function evaluationImages(state, kind, title, show) {
  // Shown as it is if the file has no description.
  const image = h("img", { class: "sheet", alt: title });
  const frames = h("div", {});
  const stage = h("div", {}, frames, h("div", { class: "scroll" }, image));
  const element = h("div", {});
  let files = [];
  let follow = true;
  let shown = null;

  async function load(index) {
    const file = files[index];
    if (!file || file.file === shown) return;
    shown = file.file;
    const address = runPath(state.name, "media", file.file);
    image.alt = `${title}, epoch ${file.epoch}`;
    image.src = address;
    try {
      const [sheet] = await Promise.all([getBytes(address).then(description), image.decode()]);
      if (shown !== file.file) return;
      image.hidden = sheet !== null;
      frames.replaceChildren(...(sheet ? [show(sheet, image)] : []));
    } catch (error) {
      if (shown !== file.file) return;
      image.hidden = true;
      frames.replaceChildren(notice(`The images of epoch ${file.epoch} cannot be shown.`, error.message));
    }
  }

  const epochSlider = slider({
    label: "Epoch", min: 0, max: 0, value: 0,
    text: (index) => (files[index] ? `epoch ${files[index].epoch}` : ""),
    onchange(index) {
      follow = index === files.length - 1;
      load(index);
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
      if (!element.contains(stage)) element.replaceChildren(epochSlider.element, stage);
      const index = follow ? files.length - 1 : Number(epochSlider.range.value);
      epochSlider.set(index, { max: files.length - 1 });
      load(index);
    },
  };
}
