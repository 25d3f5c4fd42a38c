// Frames on canvases: RGB bytes, drawn pixel by pixel and enlarged by the style sheet without smoothing.

import { h } from "./dom.js";

/** A canvas for frames of so many pixels. */
export function screen(size, label) {
  return h("canvas", { class: "frame", width: size, height: size, role: "img", "aria-label": label });
}

/** Draws the `index`-th frame of `bytes`. */
export function paint(canvas, bytes, index = 0) {
  const size = canvas.width;
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  let from = index * size * size * 3;
  for (let to = 0; to < image.data.length; to += 4) {
    image.data[to] = bytes[from++];
    image.data[to + 1] = bytes[from++];
    image.data[to + 2] = bytes[from++];
    image.data[to + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** Marks places of the token grid on a layer above a frame. */
export function mark(canvas, grid, places, colour) {
  const scale = 32;
  canvas.width = canvas.height = grid * scale;
  const context = canvas.getContext("2d");
  context.strokeStyle = colour;
  context.lineWidth = 3;
  for (const place of places) {
    const [x, y] = [(place % grid) * scale, Math.floor(place / grid) * scale];
    context.strokeRect(x + 1.5, y + 1.5, scale - 3, scale - 3);
  }
}
