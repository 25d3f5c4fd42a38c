// A chart: lines, bands and stems on a canvas, with a cursor for pointer and keyboard.

import { draw, drawHighlight, layout, prepare } from "../chart/draw.js";
import { save } from "../chart/export.js";
import { onSchemeChange, palette, seriesColor, seriesDashes } from "../chart/palette.js";
import { listen } from "../chart/pointer.js";
import { lastValues, valuesAt } from "../chart/readout.js";
import { nearestIndex } from "../chart/scale.js";
import { ChartSettings } from "../chart/settings.js";
import { CanvasSurface } from "../chart/surface.js";
import { plotBox } from "../chart/visible.js";
import { h, perFrame, svg } from "./dom.js";

/** A legend of more series would be larger than the chart. */
const MAX_LEGEND = 8;

let count = 0;

/**
 * A series is {name, points, style, kind}. `points` are pairs [x, y] or columns {x, y, low, high} with an optional band;
 * `style` selects color and dashes; `kind` is "line" or, for rare events such as rewards, "stem". A reference is a
 * horizontal line {name, value}.
 * @param {{title: string, x?: string, unit?: string, description?: string, tall?: boolean, legend?: boolean,
 *   settings?: ChartSettings, actions?: () => Array<[string, () => void]>}} options `x` is the name of the axis; `legend` is
 *   false in a view with a legend of its own; `actions` are added to the menu
 */
export function chart({
  title, x = "epoch", unit = "", description, tall = false, legend: hasLegend = true, settings = new ChartSettings({ axis: x }), actions = () => [],
}) {
  const id = `chart-${count++}`;
  const plot = h("canvas", { class: "chart", role: "img", tabindex: 0, "aria-labelledby": id, "aria-describedby": `${id}-readout` });
  const overlay = h("canvas", { class: "chart-overlay", "aria-hidden": "true" });
  const box = plotBox(showIfVisible, plot, overlay);
  const legend = h("ul", { class: "legend" });
  const readout = h("p", { class: "readout", id: `${id}-readout` });
  const unzoom = h("button", { type: "button", class: "small quiet", hidden: true, onclick: () => settings.set({ zoom: null }) }, "Reset zoom");
  const exported = (format) => () => save(format, { title, x: settings.axis, prepared: prepare(source(), settings) });
  const element = h("figure", { class: tall ? "chart-box tall" : "chart-box" },
    h("figcaption", { id, title: description ?? null }, h("span", { class: "chart-title" }, title), unit && unit !== title ? [" ", h("span", { class: "unit" }, unit)] : null),
    h("div", { class: "chart-tools" }, unzoom, menu(`Menu of ${title}`, () => [
      ["Save as SVG", exported("svg")], ["Save as PNG", exported("png")], ["Save as CSV", exported("csv")], ...actions()])),
    box, legend, readout);
  let source = () => ({ series: [] });
  /** What is on the canvas. */
  let drawn = null;
  let visible = false;
  let selected = null;
  let legendKey = null;
  let stopListening = () => {};
  const drawAll = perFrame(drawNow);
  const drawCursor = perFrame(drawCursorNow);

  function drawNow() {
    if (!visible) return;
    const [width, height] = [box.clientWidth, box.clientHeight];
    if (!width) return;
    const data = source();
    const prepared = prepare(data, settings);
    drawn = null;
    const surface = new CanvasSurface(plot, width, height);
    if (prepared.empty) {
      surface.text(width / 2, height / 2, "no data yet", { color: palette().muted, anchor: "middle", size: 12 });
    } else {
      drawn = { prepared, at: layout(prepared, { width, height, x: settings.axis }), width, height };
      draw(surface, prepared, drawn.at, settings.axis);
    }
    plot.dataset.series = prepared.series.length;
    plot.dataset.points = prepared.series.reduce((sum, one) => sum + one.x.length, 0);
    unzoom.hidden = settings.zoom === null;
    showLegend(data, prepared);
    drawCursorNow();
  }

  /** Lines that have data, and references: they are named in the text of the page, too. */
  function showLegend({ references = [] }, { series }) {
    const listed = hasLegend && series.length > 1 && series.length <= MAX_LEGEND ? series : [];
    const entries = [...listed.map(({ name, style }) => [name, style]), ...references.map(({ name }) => [name, null])];
    const key = JSON.stringify(entries) + palette().text;
    if (key === legendKey) return;
    legendKey = key;
    legend.replaceChildren(...entries.map(([name, style]) => h("li", {}, lineSample(style), name)));
  }

  function drawCursorNow() {
    if (!visible) return;
    const { cursor, highlight } = settings;
    if (!drawn) {
      readout.textContent = "no data yet";
      return;
    }
    const { prepared, at, width, height } = drawn;
    const surface = new CanvasSurface(overlay, width, height);
    const chosen = prepared.series.find((one) => one.name === highlight);
    if (chosen && prepared.series.length > 1) drawHighlight(surface, chosen, at);
    if (selected) surface.rect(selected[0], at.top, selected[1] - selected[0], at.bottom - at.top, palette().text, 0.1);
    const inside = cursor !== null && cursor >= prepared.xDomain[0] && cursor <= prepared.xDomain[1];
    if (inside) drawCursorLine(surface, prepared, at, cursor, chosen);
    readout.textContent = inside ? valuesAt(prepared, settings.axis, cursor, highlight) : lastValues(prepared, settings.axis);
  }

  listen(plot, () => drawn, settings, (range) => {
    selected = range;
    drawCursor();
  });
  // Only the chart with the focus speaks: all follow the same cursor.
  plot.addEventListener("focus", () => readout.setAttribute("aria-live", "polite"));
  plot.addEventListener("blur", () => readout.removeAttribute("aria-live"));
  const changed = (onlyCursor) => {
    if (onlyCursor) drawCursor();
    else drawAll();
  };

  /** A chart out of view follows neither settings nor colors: it is drawn when it comes back. */
  function showIfVisible(isVisible, { now = false } = {}) {
    visible = isVisible;
    stopListening();
    if (!visible) return;
    settings.listeners.add(changed);
    const stopScheme = onSchemeChange(drawAll);
    stopListening = () => {
      settings.listeners.delete(changed);
      stopScheme();
    };
    if (now) drawNow();
    else drawAll();
  }
  new ResizeObserver(drawAll).observe(box);

  return {
    element,
    title,
    /** Shows this data. */
    show(data) {
      source = () => data;
      changed(false);
    },
    /** Shows what `next` returns whenever the chart is drawn, which it is only in view. */
    follow(next) {
      source = next;
      changed(false);
    },
    /** The data has changed. */
    invalidate() {
      changed(false);
    },
  };
}

/** The sample of a line in a legend; a reference has no style. */
export function lineSample(style) {
  const [color, dashes] = style === null ? [palette().muted, [2, 4]] : [seriesColor(style), seriesDashes(style)];
  return svg("svg", { class: "sample", viewBox: "0 0 24 8", "aria-hidden": "true" },
    svg("line", { x1: 1, x2: 23, y1: 4, y2: 4, stroke: color, "stroke-dasharray": dashes.join(" ") || null }));
}

function drawCursorLine(surface, { series }, at, cursor, chosen) {
  const x = at.toX(cursor);
  surface.line([x, x], [at.top, at.bottom], { color: palette().muted });
  const marked = series.length <= MAX_LEGEND ? series : chosen ? [chosen] : [];
  for (const one of marked) {
    const i = nearestIndex(one.x, cursor);
    if (one.x[i] !== cursor) continue;
    surface.dot(x, at.toY(one.y[i]), 5, palette().background);
    surface.dot(x, at.toY(one.y[i]), 3.6, seriesColor(one.style));
  }
}

/** A menu whose entries are made when it opens: a page has many menus. */
export function menu(label, entries) {
  const list = h("div", { class: "menu-list" });
  const element = h("details", { class: "menu" }, h("summary", { "aria-label": label, title: label }, "⋯"), list);
  const close = () => (element.open = false);
  element.addEventListener("toggle", () => {
    if (!element.open) return list.replaceChildren();
    list.replaceChildren(...entries().map(([text, action]) => h("button", {
      type: "button",
      onclick: () => {
        close();
        action();
      },
    }, text)));
  });
  element.addEventListener("focusout", ({ relatedTarget }) => element.contains(relatedTarget) || close());
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    close();
    element.firstChild.focus();
  });
  return element;
}
