// A responsive line chart with a cursor for pointer and keyboard.

import { h, perFrame, svg } from "./dom.js";
import { number } from "./format.js";

const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4", "5 2 1 2 1 2", "1 2", "4 4"];
const HEIGHT = 220;
const MARGIN = { left: 52, right: 12, top: 12, bottom: 30 };

let count = 0;

/**
 * A series is {name, points: [[x, y], …], style}, where `style` selects color and dashes. A reference is a horizontal line
 * {name, value}.
 * @param {{title: string, x?: string, tall?: boolean}} options
 * @returns {{element: HTMLElement, show: (data: {series: Array, references?: Array}) => void}}
 */
export function chart({ title, x = "epoch", tall = false }) {
  const id = `chart-${count++}`;
  const plot = svg("svg", { role: "img", tabindex: 0, "aria-labelledby": id, class: "chart" });
  const legend = h("ul", { class: "legend" });
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const element = h("figure", { class: tall ? "chart-box tall" : "chart-box" },
    h("figcaption", { id }, title), plot, legend, readout);
  let data = { series: [], references: [] };
  let cursor = null;

  const draw = perFrame(() => {
    const width = Math.max(240, plot.clientWidth || 320);
    const height = tall ? HEIGHT + 80 : HEIGHT;
    render(plot, data, { width, height, x, cursor });
    legend.replaceChildren(...(data.series.length > 1 ? legendEntries(data) : []));
    readout.textContent = cursor === null ? lastValues(data, x) : valuesAt(data, x, cursor);
  });

  const columns = () => [...new Set(data.series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
  const moveCursor = (column) => {
    cursor = column;
    draw();
  };
  plot.addEventListener("pointermove", (event) => {
    const all = columns();
    if (!all.length) return;
    const box = plot.getBoundingClientRect();
    const fraction = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    const wanted = all[0] + fraction * (all[all.length - 1] - all[0]);
    moveCursor(all.reduce((best, column) => (Math.abs(column - wanted) < Math.abs(best - wanted) ? column : best)));
  });
  plot.addEventListener("pointerleave", () => moveCursor(null));
  plot.addEventListener("blur", () => moveCursor(null));
  plot.addEventListener("keydown", (event) => {
    const all = columns();
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -all.length, End: all.length }[event.key];
    if (!step || !all.length) return;
    event.preventDefault();
    const index = cursor === null ? all.length - 1 : all.indexOf(cursor) + step;
    moveCursor(all[Math.min(all.length - 1, Math.max(0, index))]);
  });
  new ResizeObserver(draw).observe(plot);

  return {
    element,
    show(next) {
      data = { references: [], ...next };
      draw();
    },
  };
}

function legendEntries({ series }) {
  const sample = (style, dashes) => svg("svg", { class: "sample", viewBox: "0 0 28 8", "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 28, y1: 4, y2: 4, class: style, "stroke-dasharray": dashes }));
  return series.filter((s) => s.points.length)
    .map((s) => h("li", {}, sample(`line series-${s.style % 8}`, DASHES[s.style % 8]), s.name));
}

function lastValues({ series }, x) {
  const last = series.filter((s) => s.points.length).map((s) => s.points[s.points.length - 1]);
  if (!last.length) return "no data yet";
  return series.filter((s) => s.points.length)
    .map((s, i) => `${series.length > 1 ? `${s.name} ` : ""}${number(last[i][1])}`).join(" · ")
    .concat(` at ${x} ${number(Math.max(...last.map((p) => p[0])))}`);
}

function valuesAt({ series }, x, at) {
  const read = series.map((s) => [s.name, s.points.find((p) => p[0] === at)]).filter(([, point]) => point);
  return `${x} ${number(at)}: ${read.map(([name, point]) => `${series.length > 1 ? `${name} ` : ""}${number(point[1])}`).join(" · ")}`;
}

/** A tick label without superfluous digits. */
function tickLabel(tick) {
  const size = Math.abs(tick);
  const plain = tick === 0 || (size >= 1e-3 && size < 1e6);
  return plain ? String(Number(tick.toPrecision(6))).replace("-", "−") : number(tick);
}

/** Round numbers that divide a range into about `count` parts. */
function ticks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

function range(values) {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (low === high) [low, high] = [low - (Math.abs(low) / 10 || 1), high + (Math.abs(high) / 10 || 1)];
  const margin = 0.06 * (high - low);
  return [low - margin, high + margin];
}

function render(plot, { series, references }, { width, height, x, cursor }) {
  const points = series.flatMap((s) => s.points).filter((p) => Number.isFinite(p[1]));
  plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
  plot.setAttribute("height", height);
  if (!points.length) {
    plot.replaceChildren(svg("text", { x: width / 2, y: height / 2, class: "axis", "text-anchor": "middle" }, "no data yet"));
    return;
  }
  const [left, right] = [Math.min(...points.map((p) => p[0])), Math.max(...points.map((p) => p[0]), Math.min(...points.map((p) => p[0])) + 1)];
  const [low, high] = range([...points.map((p) => p[1]), ...references.map((r) => r.value)]);
  const toX = (value) => MARGIN.left + ((value - left) / (right - left)) * (width - MARGIN.left - MARGIN.right);
  const toY = (value) => height - MARGIN.bottom - ((value - low) / (high - low)) * (height - MARGIN.top - MARGIN.bottom);
  const parts = [];
  for (const tick of ticks(low, high, 4)) {
    parts.push(svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: toY(tick), y2: toY(tick) }));
    parts.push(svg("text", { class: "axis", x: MARGIN.left - 8, y: toY(tick) + 4, "text-anchor": "end" }, tickLabel(tick)));
  }
  const whole = ticks(left, right, Math.max(2, Math.floor(width / 110))).filter((tick) => Number.isInteger(tick));
  for (const tick of whole) {
    parts.push(svg("text", { class: "axis", x: toX(tick), y: height - 10, "text-anchor": tick === right ? "end" : "middle" }, tick === whole[0] ? `${x} ${tick}` : number(tick)));
  }
  for (const reference of references) {
    parts.push(svg("line", { class: "line reference", x1: MARGIN.left, x2: width - MARGIN.right, y1: toY(reference.value), y2: toY(reference.value), "stroke-dasharray": "3 4" }));
    parts.push(svg("text", { class: "axis", x: width - MARGIN.right, y: toY(reference.value) - 5, "text-anchor": "end" }, `${reference.name} ${number(reference.value)}`));
  }
  for (const one of series) {
    const drawn = one.points.filter((p) => Number.isFinite(p[1]));
    if (!drawn.length) continue;
    const path = drawn.map(([px, py], i) => `${i ? "L" : "M"}${toX(px).toFixed(1)} ${toY(py).toFixed(1)}`).join("");
    parts.push(svg("path", { class: `line series-${one.style % 8}`, d: path, "stroke-dasharray": DASHES[one.style % 8] }));
    if (drawn.length < 40) {
      for (const [px, py] of drawn) parts.push(svg("circle", { class: `dot series-${one.style % 8}`, cx: toX(px), cy: toY(py), r: 2.6 }));
    }
  }
  if (cursor !== null) {
    parts.push(svg("line", { class: "cursor", x1: toX(cursor), x2: toX(cursor), y1: MARGIN.top, y2: height - MARGIN.bottom }));
    for (const one of series) {
      const point = one.points.find((p) => p[0] === cursor);
      if (point && Number.isFinite(point[1])) parts.push(svg("circle", { class: `dot series-${one.style % 8}`, cx: toX(cursor), cy: toY(point[1]), r: 5 }));
    }
  }
  plot.replaceChildren(...parts);
}
