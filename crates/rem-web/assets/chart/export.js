// A chart as a file: SVG, PNG or CSV.

import { h } from "../lib/dom.js";
import { draw, layout } from "./draw.js";
import { palette, seriesColor, seriesDashes } from "./palette.js";
import { CanvasSurface, SvgSurface } from "./surface.js";

const SIZE = { width: 640, height: 360 };
const PNG_RATIO = 2;
/** The margin below the legend. */
const BOTTOM = 6;
const LEGEND_COLUMNS = 3;
const LEGEND_ROW = 18;
/** A longer legend would be larger than the chart. */
const MAX_LEGEND = 24;

/** @param {{title: string, x: string, prepared: object}} chart */
export function save(format, chart) {
  const name = `${chart.title.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "chart"}.${format}`;
  if (format === "csv") return download(name, new Blob([csv(chart)], { type: "text/csv" }));
  const height = SIZE.height + legendHeight(chart.prepared.series) + BOTTOM;
  if (format === "svg") {
    const surface = new SvgSurface(SIZE.width, height);
    figure(surface, chart, height);
    return download(name, new Blob([surface.toString()], { type: "image/svg+xml" }));
  }
  const canvas = h("canvas", {});
  figure(new CanvasSurface(canvas, SIZE.width, height, PNG_RATIO), chart, height);
  canvas.toBlob((blob) => download(name, blob), "image/png");
}

/** A chart that stands alone: with title, legend and background. */
function figure(surface, { title, x, prepared }, height) {
  surface.rect(0, 0, SIZE.width, height, palette().background);
  surface.text(14, 24, title, { color: palette().text, size: 15, bold: true });
  if (!prepared.empty) draw(surface, prepared, layout(prepared, { ...SIZE, height: SIZE.height - 8, x, top: 46 }), x);
  const column = (SIZE.width - 28) / LEGEND_COLUMNS;
  shownInLegend(prepared.series).forEach(({ name, style }, i) => {
    const [left, y] = [14 + (i % LEGEND_COLUMNS) * column, SIZE.height + 12 + LEGEND_ROW * Math.floor(i / LEGEND_COLUMNS)];
    surface.line([left, left + 22], [y - 4, y - 4], { color: seriesColor(style), dashes: seriesDashes(style), width: 2 });
    surface.text(left + 28, y, name, { color: palette().text });
  });
}

function shownInLegend(series) {
  return series.length > 1 ? series.slice(0, MAX_LEGEND) : [];
}

function legendHeight(series) {
  return LEGEND_ROW * Math.ceil(shownInLegend(series).length / LEGEND_COLUMNS);
}

/** One row per value of x, one column per series, without smoothing. */
export function csv({ x, prepared }) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const list = prepared.series.flatMap(({ name, x, raw, low, high }) => [
    { name, x, y: raw }, ...(low ? [{ name: `${name} min`, x, y: low }, { name: `${name} max`, x, y: high }] : []),
  ]);
  const at = list.map(({ x, y }) => new Map(x.map((value, i) => [value, y[i]])));
  const rows = [...new Set(list.flatMap((one) => one.x))].sort((a, b) => a - b);
  const line = (cells) => `${cells.join(",")}\n`;
  return line([x, ...list.map(({ name }) => quoted(name))]) + rows.map((row) => line([row, ...at.map((map) => map.get(row) ?? "")])).join("");
}

function download(name, blob) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
