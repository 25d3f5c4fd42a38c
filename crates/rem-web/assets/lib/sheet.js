// Sheets of frames that evaluations write as PNG. `rem-sheet`, a text chunk of the file, says where the frames are and what
// they show.

import { drawCut, frameCanvas } from "./frames.js";

const TEXT_CHUNK = "iTXt";
const KEYWORD = "rem-sheet";

/** The description of a sheet, or null: files of older versions have none. */
export function description(buffer) {
  const view = new DataView(buffer);
  const text = (from, to) => new TextDecoder().decode(new Uint8Array(buffer, from, to - from));
  // After the signature, a chunk is: length, type, data, checksum.
  for (let at = 8; at + 12 <= buffer.byteLength;) {
    const end = at + 8 + view.getUint32(at);
    if (text(at + 4, at + 8) === TEXT_CHUNK && end <= buffer.byteLength) {
      // Keyword, compression flag and method, language, translated keyword, text.
      const parts = text(at + 8, end).split("\0");
      if (parts[0] === KEYWORD) return JSON.parse(parts.slice(5).join("\0"));
    }
    at = end + 4;
  }
  return null;
}

/** The frame of a row and a column, or null if the episode has none there. */
export function frameOf({ size, scale, rows, columns }, image, column, row) {
  const corner = columns[column].frames[row];
  if (!corner) return null;
  const canvas = frameCanvas(size, `${rows[row]}, ${columns[column].caption[0] ?? `frame ${column}`}`);
  drawCut(canvas, image, corner, size * scale);
  return canvas;
}
