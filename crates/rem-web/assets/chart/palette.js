// The colors of charts, from the style sheet.

const SERIES = 8;
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [12, 4], [5, 2, 1, 2, 1, 2], [1, 3], [4, 4]];

let cached = null;
const listeners = new Set();

/** The colors of the current scheme. */
export function palette() {
  if (!cached) {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    cached = {
      background: color("surface"), text: color("text"), muted: color("muted"), grid: color("grid"), axis: color("axis"),
      series: Array.from({ length: SERIES }, (_, i) => color(`series-${i}`)),
    };
  }
  return cached;
}

/** The color of a series. */
export function seriesColor(style) {
  return palette().series[style % SERIES];
}

/** The dashes of a series: the first eight are solid lines. */
export function seriesDashes(style) {
  return DASHES[Math.floor(style / SERIES) % DASHES.length];
}

/** Calls `redraw` when the color scheme changes. Returns a function that stops it. */
export function onSchemeChange(redraw) {
  listeners.add(redraw);
  return () => listeners.delete(redraw);
}

function changed() {
  cached = null;
  for (const redraw of listeners) redraw();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
addEventListener("schemechange", changed);
