// The line below a chart: the last values, or those at the cursor.

import { number } from "../lib/format.js";
import { axis } from "./axis.js";
import { nearestIndex } from "./scale.js";

/** With more series, the line says how they are distributed. */
const LISTED = 4;

/** The last value of every series, each with its own last x. */
export function lastValues({ series, linearOnly }, x) {
  if (!series.length) return "no data yet";
  const { text } = axis(x);
  const last = series.map((one) => one.x[one.x.length - 1]);
  const note = linearOnly ? " · linear: not all values are above 0" : "";
  const [first, end] = [Math.min(...last), Math.max(...last)];
  const values = series.map((one) => valueText(one, one.x.length - 1, series.length));
  if (series.length > LISTED) {
    const range = first === end ? text(end) : `${text(first)} to ${axis(x).text(end).replace(/^\D+/, "")}`;
    return `${distribution(series, series.map((one) => one.y[one.y.length - 1]))}, last at ${range}${note}`;
  }
  if (first === end) return `${values.join(" · ")} at ${text(end)}${note}`;
  return values.map((value, i) => `${value} at ${text(last[i])}`).join(" · ") + note;
}

/** The values at x, of series that have begun and not ended there. `highlight` is the name of the series to list first. */
export function valuesAt({ series }, x, at, highlight) {
  const there = series.map((one) => [one, nearestIndex(one.x, at)])
    .filter(([one]) => one.x[0] <= at && at <= one.x[one.x.length - 1]);
  const head = axis(x).text(at);
  if (!there.length) return `${head}: no values`;
  if (series.length <= LISTED) return `${head}: ${there.map(([one, i]) => valueText(one, i, series.length)).join(" · ")}`;
  const chosen = there.find(([one]) => one.name === highlight);
  const all = distribution(there, there.map(([one, i]) => one.y[i]));
  return `${head}: ${chosen ? `${valueText(...chosen, series.length)} · ` : ""}${all}`;
}

function valueText({ name, raw, y, smoothed, low, high }, i, count) {
  const band = low ? ` (${number(low[i])} to ${number(high[i])})` : "";
  const value = smoothed && !low ? `${number(raw[i])} (smoothed ${number(y[i])})` : number(y[i]);
  return `${count > 1 ? `${name} ` : ""}${value}${band}`;
}

function distribution(list, values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
  return `${list.length} series from ${number(sorted[0])} to ${number(sorted[sorted.length - 1])}, median ${number(middle)}`;
}
