// The x axes of charts: what they are called, and how their values are written.

import { number } from "../lib/format.js";
import { ticks } from "./scale.js";

const UNITS = [["s", 1], ["min", 60], ["h", 3600], ["days", 86400]];
const PREFIXES = [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9]];

/** The largest unit of which a value has two, or the first one. */
const unitOf = (units, value) => units.findLast(([, size]) => value >= 2 * size) ?? units[0];

function plain(value) {
  return String(Number(value.toPrecision(6))).replace("-", "−");
}

/** A tick label without superfluous digits. */
export function tickLabel(tick) {
  const size = Math.abs(tick);
  if (size >= 1e4 && size < 1e12) return prefixed(tick, size);
  return tick === 0 || (size >= 1e-3 && size < 1e12) ? plain(tick) : number(tick);
}

/** With the unit prefix of a size: 20k. */
function prefixed(value, size) {
  const [prefix, factor] = PREFIXES.findLast(([, factor]) => size >= factor);
  return value ? plain(value / factor) + prefix : "0";
}

function timeText(seconds) {
  const [unit, size] = unitOf(UNITS, seconds);
  return `${number(seconds / size)} ${unit}`;
}

/** Counts, as epochs: ticks are whole numbers. */
const count = (label) => ({
  label,
  text: (value) => `${label} ${number(value)}`,
  ticks: (domain, n) => ticks(domain, n).filter(Number.isInteger).map((tick) => [tick, tickLabel(tick)]),
});

const AXES = {
  epoch: count("epoch"),
  steps: {
    label: "steps",
    text: (value) => `step ${Math.round(value).toLocaleString("en")}`,
    ticks: (domain, n) => ticks(domain, n).map((tick) => [tick, prefixed(tick, domain[1])]),
  },
  time: {
    label: "time",
    text: timeText,
    ticks(domain, n) {
      const [unit, size] = unitOf(UNITS, domain[1]);
      return ticks(domain.map((value) => value / size), n).map((tick) => [tick * size, tick ? `${plain(tick)} ${unit}` : "0"]);
    },
  },
};

/** The axis with a name. Any other name is that of a count, as `step`. */
export function axis(name) {
  return AXES[name] ?? count(name);
}
