// RGB frames on canvases. CSS scales them without smoothing.

import { h } from "./dom.js";

export function frameCanvas(size, label) {
  return h("canvas", { class: "frame", width: size, height: size, role: "img", "aria-label": label });
}

/** Draws frame `index` of `bytes`. */
export function drawFrame(canvas, bytes, index = 0) {
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

/** Outlines positions of the token grid on an overlay. */
export function outlineTokens(canvas, grid, positions, color) {
  const scale = 32;
  canvas.width = canvas.height = grid * scale;
  const context = canvas.getContext("2d");
  context.strokeStyle = color;
  context.lineWidth = 3;
  for (const position of positions) {
    const [x, y] = [(position % grid) * scale, Math.floor(position / grid) * scale];
    context.strokeRect(x + 1.5, y + 1.5, scale - 3, scale - 3);
  }
}

/** Draws the part of an image that shows an enlarged frame. */
export function drawCut(canvas, image, [x, y], side) {
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(image, x, y, side, side, 0, 0, canvas.width, canvas.height);
}
