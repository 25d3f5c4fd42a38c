// Draws a chart on a surface.

import { number } from "../lib/format.js";
import { axis, tickLabel } from "./axis.js";
import { palette, seriesColor, seriesDashes } from "./palette.js";
import { padded, scale, ticks } from "./scale.js";
import { columns, smoothed, thinned } from "./transform.js";

/** With more series, only their lines are drawn: no values before smoothing, no dots. */
const FEW = 8;
const LINE = 1.8;
/** Browsers draw lines of one pixel several times faster than wider ones. */
const HAIRLINE = 1;

/**
 * The series to draw, and the ranges of both axes.
 * @param {{series: Array, references?: Array}} data as `chart` takes it
 * @param {{smoothing: number, log: boolean, zoom: [number, number] | null}} settings
 */
export function prepare({ series, references = [] }, { smoothing, log, zoom }) {
  const prepared = series.map((one) => {
    const { x, y, low, high } = columns(one.points);
    const smooth = (values) => (values && one.kind !== "stem" ? smoothed(values, smoothing) : values);
    return { ...one, x, raw: y, y: smooth(y), low: smooth(low), high: smooth(high), smoothed: smoothing > 0 && one.kind !== "stem" };
  }).filter((one) => one.x.length);
  if (!prepared.length) return { series: prepared, references: [], empty: true };
  const first = Math.min(...prepared.map((one) => one.x[0]));
  const last = Math.max(...prepared.map((one) => one.x[one.x.length - 1]));
  const xDomain = zoom ?? [first, Math.max(last, first + (last > first ? 0 : 1))];
  const [low, high] = extent(prepared, xDomain);
  const isLog = log && low > 0;
  const lines = references.filter(({ value }) => Number.isFinite(value) && (!isLog || value > 0));
  const values = lines.map(({ value }) => value);
  const yDomain = padded([Math.min(low, ...values), Math.max(high, ...values)], isLog);
  return { series: prepared, references: lines, empty: false, xDomain, yDomain, log: isLog, linearOnly: log && !isLog };
}

/** The least and the greatest value inside a range of x, or of all if there is none. */
function extent(series, [left, right]) {
  const find = (inside) => {
    let [low, high] = [Infinity, -Infinity];
    for (const { x, y, low: lows = y, high: highs = y, kind } of series) {
      for (let i = 0; i < x.length; i++) {
        if (!inside(x[i])) continue;
        if (lows[i] < low) low = lows[i];
        if (highs[i] > high) high = highs[i];
      }
      // Stems stand on 0.
      if (kind === "stem") [low, high] = [Math.min(low, 0), Math.max(high, 0)];
    }
    return [low, high];
  };
  const found = find((x) => x >= left && x <= right);
  return found[0] <= found[1] ? found : find(() => true);
}

/** Where things are in a chart of this size. */
export function layout(prepared, { width, height, x, top = 10 }) {
  const { yDomain, xDomain, log } = prepared;
  const bottom = height - 22;
  const yTicks = ticks(yDomain, Math.max(2, Math.floor((bottom - top) / 34)), log).map((tick) => [tick, tickLabel(tick)]);
  const left = Math.max(26, 12 + 6.3 * Math.max(...yTicks.map(([, text]) => text.length)));
  const right = width - 10;
  return {
    left, right, top, bottom, yTicks,
    toX: scale(xDomain, [left, right]),
    toY: scale(yDomain, [bottom, top], log),
    xTicks: axis(x).ticks(xDomain, Math.max(2, Math.floor((right - left) / 80))),
  };
}

/** Draws axes, references and series. */
export function draw(surface, prepared, at, x) {
  drawAxes(surface, at, x);
  drawReferences(surface, prepared.references, at);
  surface.clip(at.left - 4, at.top - 6, at.right - at.left + 8, at.bottom - at.top + 12, () => {
    const few = prepared.series.length <= FEW;
    // The first series is on top.
    const series = [...prepared.series].reverse();
    for (const one of series) drawBand(surface, one, at);
    for (const one of series) if (few && one.smoothed && !one.low) drawRaw(surface, one, at);
    for (const one of series) drawSeries(surface, one, at, few);
  });
}

function drawAxes(surface, { left, right, bottom, xTicks, yTicks, toX, toY }, x) {
  const { grid, muted, axis: line } = palette();
  for (const [tick, label] of yTicks) {
    surface.line([left, right], [toY(tick), toY(tick)], { color: grid });
    surface.text(left - 7, toY(tick) + 4, label, { color: muted, anchor: "end" });
  }
  surface.line([left, right], [bottom, bottom], { color: line });
  let end = -Infinity;
  xTicks.filter(([tick]) => toX(tick) <= right + 1).forEach(([tick, label], i) => {
    const text = i ? label : `${axis(x).label} ${label}`;
    const width = 6.2 * text.length;
    const anchor = i === 0 ? "start" : toX(tick) + width / 2 > right + 8 ? "end" : "middle";
    const start = toX(tick) - { start: 2, middle: width / 2, end: width }[anchor];
    if (start < end) return;
    end = start + width + 10;
    surface.text(Math.max(start, left - 2), bottom + 16, text, { color: muted });
    surface.line([toX(tick), toX(tick)], [bottom, bottom + 4], { color: line });
  });
}

function drawReferences(surface, references, { left, right, top, toY }) {
  const { muted } = palette();
  let free = Infinity;
  for (const { name, value } of [...references].sort((a, b) => a.value - b.value)) {
    surface.line([left, right], [toY(value), toY(value)], { color: muted, dashes: [2, 4], width: 1.2 });
    // Labels that would overlap move up.
    free = Math.max(top + 8, Math.min(toY(value) - 5, free - 13));
    surface.text(right, free, `${name} ${number(value)}`, { color: muted, anchor: "end" });
  }
}

function drawBand(surface, { x, low, high, style }, { toX, toY }) {
  if (low) surface.area(x.map(toX), low.map(toY), high.map(toY), seriesColor(style), 0.16);
}

function drawRaw(surface, one, at) {
  trace(surface, one.x, one.raw, at, { color: seriesColor(one.style), width: 1, alpha: 0.3 });
}

function drawSeries(surface, one, at, few) {
  const color = seriesColor(one.style);
  if (one.kind === "stem") return drawStems(surface, one, at, color);
  trace(surface, one.x, one.y, at, { color, width: few ? LINE : HAIRLINE, dashes: seriesDashes(one.style) });
  const spacing = (at.toX(one.x[one.x.length - 1]) - at.toX(one.x[0])) / (one.x.length - 1);
  if (one.x.length === 1 || (few && spacing > 14)) {
    one.x.forEach((x, i) => surface.dot(at.toX(x), at.toY(one.y[i]), 2.4, color));
  }
}

/** One series, drawn to stand out. */
export function drawHighlight(surface, one, at) {
  surface.clip(at.left - 4, at.top - 6, at.right - at.left + 8, at.bottom - at.top + 12, () => {
    trace(surface, one.x, one.y, at, { color: palette().background, width: 6, alpha: 0.9 });
    trace(surface, one.x, one.y, at, { color: seriesColor(one.style), width: 2.8, dashes: seriesDashes(one.style) });
  });
}

function trace(surface, x, y, { toX, toY }, look) {
  const kept = thinned({ x, y }, toX);
  surface.line(kept.x.map(toX), kept.y.map(toY), look);
}

/** Values other than 0 as vertical lines from 0, as rare events are drawn. */
function drawStems(surface, { x, y }, { left, right, toX, toY }, color) {
  surface.line([left, right], [toY(0), toY(0)], { color: palette().axis });
  const radius = Math.max(1.5, Math.min(4, (0.3 * (right - left)) / x.length));
  x.forEach((at, i) => {
    if (!y[i]) return;
    surface.line([toX(at), toX(at)], [toY(0), toY(y[i])], { color, width: Math.min(2, radius) });
    surface.dot(toX(at), toY(y[i]), radius, color);
  });
}
