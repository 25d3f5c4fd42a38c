// Pointer and keys on a chart: the cursor, the range to zoom into, the series that stands out.

import { nearestIndex } from "./scale.js";

/** A shorter drag is a click. */
const MIN_DRAG = 6;
/** Series farther from the pointer do not stand out. */
const REACH = 40;

/**
 * @param {HTMLElement} plot
 * @param {() => {prepared: object, at: object} | null} drawn what is on the screen
 * @param {import("./settings.js").ChartSettings} settings
 * @param {(range: [number, number] | null) => void} select shows a range while it is dragged
 */
export function listen(plot, drawn, settings, select) {
  let dragFrom = null;
  const leave = () => {
    dragFrom = null;
    select(null);
    settings.set({ cursor: null, highlight: null });
  };
  plot.addEventListener("pointerdown", (event) => {
    if (event.button || event.pointerType === "touch" || !drawn()) return;
    dragFrom = event.offsetX;
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    const now = drawn();
    if (!now) return;
    if (dragFrom !== null && Math.abs(event.offsetX - dragFrom) >= MIN_DRAG) select(inOrder(dragFrom, event.offsetX));
    const cursor = nearestX(now.prepared, now.at.toX.invert(event.offsetX));
    settings.set({ cursor, highlight: nearestSeries(now, cursor, event.offsetY) });
  });
  plot.addEventListener("pointerup", (event) => {
    const now = drawn();
    if (now && dragFrom !== null && Math.abs(event.offsetX - dragFrom) >= MIN_DRAG) {
      const inside = (x) => Math.min(now.at.right, Math.max(now.at.left, x));
      settings.set({ zoom: inOrder(dragFrom, event.offsetX).map((x) => now.at.toX.invert(inside(x))) });
    }
    dragFrom = null;
    select(null);
  });
  plot.addEventListener("dblclick", () => settings.set({ zoom: null }));
  plot.addEventListener("pointerleave", leave);
  plot.addEventListener("pointercancel", leave);
  plot.addEventListener("blur", leave);
  plot.addEventListener("keydown", (event) => {
    const now = drawn();
    const change = now && !event.ctrlKey && !event.metaKey && keyChange(event.key, now.prepared, settings);
    if (!change) return;
    event.preventDefault();
    settings.set(change);
  });
}

const inOrder = (a, b) => (a < b ? [a, b] : [b, a]);

/** Arrows move the cursor, + and − zoom around it, 0 shows everything. */
function keyChange(key, { series, xDomain }, { cursor }) {
  const [left, right] = xDomain;
  const center = cursor ?? (left + right) / 2;
  const zoom = (half) => ({ zoom: [center - half, center + half] });
  if (key === "+" || key === "=") return zoom((right - left) / 4);
  if (key === "-" || key === "−") return zoom(right - left);
  if (key === "0" || key === "Escape") return { zoom: null };
  const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[key];
  if (!step) return null;
  const all = [...new Set(series.flatMap((one) => one.x))].filter((x) => x >= left && x <= right).sort((a, b) => a - b);
  const index = cursor === null ? all.length - 1 : nearestIndex(all, cursor) + step;
  return { cursor: all[Math.min(all.length - 1, Math.max(0, index))] ?? null };
}

/** The value of x nearest to `wanted` that some series has. */
function nearestX({ series }, wanted) {
  let nearest = null;
  for (const { x } of series) {
    const value = x[nearestIndex(x, wanted)];
    if (nearest === null || Math.abs(value - wanted) < Math.abs(nearest - wanted)) nearest = value;
  }
  return nearest;
}

/** The name of the series nearest to the pointer, if there are several. */
function nearestSeries({ prepared: { series }, at }, cursor, y) {
  if (series.length < 2) return null;
  let [name, distance] = [null, REACH];
  for (const one of series) {
    const i = nearestIndex(one.x, cursor);
    const away = Math.hypot(at.toX(one.x[i]) - at.toX(cursor), at.toY(one.y[i]) - y);
    if (away < distance) [name, distance] = [one.name, away];
  }
  return name;
}
