// A chart of lines: grows with its data, fits any width, is read by pointer and by keyboard.

import { coalesced, h, svg } from "./dom.js";
import { number } from "./format.js";

const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4", "5 2 1 2 1 2", "1 2", "4 4"];
const HEIGHT = 220;
const SPACE = { left: 52, right: 12, top: 12, bottom: 30 };

let count = 0;

/**
 * @param {{title: string, x?: string, tall?: boolean}} about
 * @returns {{element: HTMLElement, show: (data: {series: Array, references?: Array}) => void}}
 * A series is {name, points: [[x, y], …], look}, look being the number of its colour and dashes; a reference, a line across, is
 * {name, value}.
 */
export function chart({ title, x = "epoch", tall = false }) {
  const id = `chart-${count++}`;
  const picture = svg("svg", { role: "img", tabindex: 0, "aria-labelledby": id, class: "chart" });
  const legend = h("ul", { class: "legend" });
  const reading = h("p", { class: "reading", "aria-live": "polite" });
  const element = h("figure", { class: tall ? "chart-box tall" : "chart-box" },
    h("figcaption", { id }, title), picture, legend, reading);
  let data = { series: [], references: [] };
  let at = null;

  const draw = coalesced(() => {
    const width = Math.max(240, picture.clientWidth || 320);
    const height = tall ? HEIGHT + 80 : HEIGHT;
    render(picture, data, { width, height, x, at });
    legend.replaceChildren(...(data.series.length > 1 ? entries(data) : []));
    reading.textContent = at === null ? latest(data, x) : values(data, x, at);
  });

  const columns = () => [...new Set(data.series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
  const look = (column) => {
    at = column;
    draw();
  };
  picture.addEventListener("pointermove", (event) => {
    const all = columns();
    if (!all.length) return;
    const box = picture.getBoundingClientRect();
    const share = (event.clientX - box.left - SPACE.left) / (box.width - SPACE.left - SPACE.right);
    const wanted = all[0] + share * (all[all.length - 1] - all[0]);
    look(all.reduce((best, column) => (Math.abs(column - wanted) < Math.abs(best - wanted) ? column : best)));
  });
  picture.addEventListener("pointerleave", () => look(null));
  picture.addEventListener("blur", () => look(null));
  picture.addEventListener("keydown", (event) => {
    const all = columns();
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -all.length, End: all.length }[event.key];
    if (!step || !all.length) return;
    event.preventDefault();
    const now = at === null ? all.length - 1 : all.indexOf(at) + step;
    look(all[Math.min(all.length - 1, Math.max(0, now))]);
  });
  new ResizeObserver(draw).observe(picture);

  return {
    element,
    show(next) {
      data = { references: [], ...next };
      draw();
    },
  };
}

function entries({ series }) {
  const sample = (look, dashes) => svg("svg", { class: "sample", viewBox: "0 0 28 8", "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 28, y1: 4, y2: 4, class: look, "stroke-dasharray": dashes }));
  return series.filter((s) => s.points.length)
    .map((s) => h("li", {}, sample(`line series-${s.look % 8}`, DASHES[s.look % 8]), s.name));
}

function latest({ series }, x) {
  const last = series.filter((s) => s.points.length).map((s) => s.points[s.points.length - 1]);
  if (!last.length) return "nothing yet";
  return series.filter((s) => s.points.length)
    .map((s, i) => `${series.length > 1 ? `${s.name} ` : ""}${number(last[i][1])}`).join(" · ")
    .concat(` at ${x} ${number(Math.max(...last.map((p) => p[0])))}`);
}

function values({ series }, x, at) {
  const read = series.map((s) => [s.name, s.points.find((p) => p[0] === at)]).filter(([, point]) => point);
  return `${x} ${number(at)}: ${read.map(([name, point]) => `${series.length > 1 ? `${name} ` : ""}${number(point[1])}`).join(" · ")}`;
}

/** A tick with no more digits than it needs. */
function tidy(tick) {
  const size = Math.abs(tick);
  const plain = tick === 0 || (size >= 1e-3 && size < 1e6);
  return plain ? String(Number(tick.toPrecision(6))).replace("-", "−") : number(tick);
}

/** Round steps that divide a range into about `wanted` parts. */
export function ticks(low, high, wanted) {
  if (!(high > low)) return [low];
  const rough = (high - low) / wanted;
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

function render(picture, { series, references }, { width, height, x, at }) {
  const points = series.flatMap((s) => s.points).filter((p) => Number.isFinite(p[1]));
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("height", height);
  if (!points.length) {
    picture.replaceChildren(svg("text", { x: width / 2, y: height / 2, class: "axis", "text-anchor": "middle" }, "no numbers yet"));
    return;
  }
  const [left, right] = [Math.min(...points.map((p) => p[0])), Math.max(...points.map((p) => p[0]), Math.min(...points.map((p) => p[0])) + 1)];
  const [low, high] = range([...points.map((p) => p[1]), ...references.map((r) => r.value)]);
  const toX = (value) => SPACE.left + ((value - left) / (right - left)) * (width - SPACE.left - SPACE.right);
  const toY = (value) => height - SPACE.bottom - ((value - low) / (high - low)) * (height - SPACE.top - SPACE.bottom);
  const parts = [];
  for (const tick of ticks(low, high, 4)) {
    parts.push(svg("line", { class: "grid", x1: SPACE.left, x2: width - SPACE.right, y1: toY(tick), y2: toY(tick) }));
    parts.push(svg("text", { class: "axis", x: SPACE.left - 8, y: toY(tick) + 4, "text-anchor": "end" }, tidy(tick)));
  }
  const whole = ticks(left, right, Math.max(2, Math.floor(width / 110))).filter((tick) => Number.isInteger(tick));
  for (const tick of whole) {
    parts.push(svg("text", { class: "axis", x: toX(tick), y: height - 10, "text-anchor": tick === right ? "end" : "middle" }, tick === whole[0] ? `${x} ${tick}` : number(tick)));
  }
  for (const reference of references) {
    parts.push(svg("line", { class: "line reference", x1: SPACE.left, x2: width - SPACE.right, y1: toY(reference.value), y2: toY(reference.value), "stroke-dasharray": "3 4" }));
    parts.push(svg("text", { class: "axis", x: width - SPACE.right, y: toY(reference.value) - 5, "text-anchor": "end" }, `${reference.name} ${number(reference.value)}`));
  }
  for (const one of series) {
    const drawn = one.points.filter((p) => Number.isFinite(p[1]));
    if (!drawn.length) continue;
    const path = drawn.map(([px, py], i) => `${i ? "L" : "M"}${toX(px).toFixed(1)} ${toY(py).toFixed(1)}`).join("");
    parts.push(svg("path", { class: `line series-${one.look % 8}`, d: path, "stroke-dasharray": DASHES[one.look % 8] }));
    if (drawn.length < 40) {
      for (const [px, py] of drawn) parts.push(svg("circle", { class: `dot series-${one.look % 8}`, cx: toX(px), cy: toY(py), r: 2.6 }));
    }
  }
  if (at !== null) {
    parts.push(svg("line", { class: "cursor", x1: toX(at), x2: toX(at), y1: SPACE.top, y2: height - SPACE.bottom }));
    for (const one of series) {
      const point = one.points.find((p) => p[0] === at);
      if (point && Number.isFinite(point[1])) parts.push(svg("circle", { class: `dot series-${one.look % 8}`, cx: toX(at), cy: toY(point[1]), r: 5 }));
    }
  }
  picture.replaceChildren(...parts);
}
