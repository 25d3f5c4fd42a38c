// A curve without axes, the size of a word.

import { svg } from "./dom.js";

const [WIDTH, HEIGHT, MARGIN] = [100, 28, 2];

/** @returns {{element: SVGElement, show: (points: Array<[number, number]>, label: string) => void}} */
export function sparkline() {
  const area = svg("path", { class: "spark-area" });
  const line = svg("path", { class: "spark-line", "vector-effect": "non-scaling-stroke" });
  const element = svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" }, area, line);
  let shown = null;
  return {
    element,
    show(points, label) {
      const key = JSON.stringify(points);
      if (key === shown) return;
      shown = key;
      element.setAttribute("aria-label", label);
      const d = points.length ? curve(points) : "";
      line.setAttribute("d", d);
      area.setAttribute("d", d && `${d}V${HEIGHT}H0Z`);
    },
  };
}

function curve(points) {
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const [left, right, low, high] = [xs[0], xs[xs.length - 1], Math.min(...ys), Math.max(...ys)];
  const toX = (x) => (right > left ? (WIDTH * (x - left)) / (right - left) : 0);
  const toY = (y) => (high > low ? HEIGHT - MARGIN - ((HEIGHT - 2 * MARGIN) * (y - low)) / (high - low) : HEIGHT / 2);
  const text = ([x, y], i) => `${i ? "L" : "M"}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`;
  // One point is a level line.
  return points.map(text).join("") + (right > left ? "" : `H${WIDTH}`);
}
