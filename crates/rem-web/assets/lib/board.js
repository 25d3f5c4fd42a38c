// Many charts under one set of controls: search, smoothing, scales, pinned charts, groups that fold.

import { ChartSettings } from "../chart/settings.js";
import { getJson } from "./api.js";
import { chart } from "./chart.js";
import { h, notice, perFrame } from "./dom.js";
import { preferences } from "./preferences.js";

const PINNED = "Pinned";
const DEFAULTS = { smoothing: 0, log: false, axis: "epoch", hideConstant: false, pinned: [], folded: [] };

let metricList = null;

/** Units and descriptions of metrics, by phase and name. Charts do without them if they cannot be loaded. */
export async function loadMetrics() {
  metricList ??= getJson("/api/metrics").catch(() => []);
  const list = await metricList;
  return new Map(list.map((metric) => [`${metric.phase}/${metric.name}`, metric]));
}

/** Settings of charts as they were last chosen, in all views. */
export function storedSettings() {
  const { smoothing, log, axis } = preferences("charts", DEFAULTS);
  return new ChartSettings({ smoothing, log, axis });
}

export class ChartBoard {
  /**
   * @param {{settings?: ChartSettings, controls?: Array<Node>, legend?: boolean, empty: string}} options `controls` are further ones of the
   *   view; `legend` is false in a view with a legend of its own; `empty` is shown without any chart
   */
  constructor({ settings = storedSettings(), controls = [], legend = true, empty }) {
    this.legend = legend;
    this.settings = settings;
    this.stored = preferences("charts", DEFAULTS);
    this.charts = new Map();
    this.groups = new Map();
    this.empty = notice(empty);
    this.noMatch = notice("No matching charts.", "The search covers phases and names of metrics.");
    this.body = h("div", {}, this.empty, this.noMatch);
    this.search = h("input", { type: "search", placeholder: "Search metrics…", "aria-label": "Search metrics", oninput: () => this.filter() });
    this.toolbar = h("div", { class: "toolbar", role: "group", "aria-label": "Charts" }, this.search, this.axisField(), this.smoothingField(),
      this.checkbox("Log scale", "log", (log) => this.settings.set({ log })),
      this.checkbox("Hide constant", "hideConstant", () => this.filter()), controls);
    this.element = h("div", { class: "board" }, this.toolbar, this.body);
    this.filter = perFrame(() => this.filterNow());
    this.filter();
  }

  axisField() {
    const options = [["epoch", "Epoch"], ["steps", "Environment steps"], ["time", "Time"]];
    const select = h("select", {
      "aria-label": "Horizontal axis",
      onchange: () => {
        this.stored.set({ axis: select.value });
        this.settings.set({ axis: select.value, zoom: null, cursor: null });
      },
    }, options.map(([value, text]) => h("option", { value }, text)));
    select.value = this.settings.axis;
    return select;
  }

  smoothingField() {
    const output = h("output", {}, this.settings.smoothing.toFixed(2));
    const range = h("input", {
      type: "range", min: 0, max: 0.98, step: 0.02, value: this.settings.smoothing,
      oninput: () => {
        const smoothing = Number(range.value);
        output.textContent = smoothing.toFixed(2);
        this.stored.set({ smoothing });
        this.settings.set({ smoothing });
      },
    });
    return h("label", { class: "inline" }, "Smoothing", range, output);
  }

  checkbox(text, key, change) {
    const input = h("input", {
      type: "checkbox", checked: this.stored[key],
      onchange: () => {
        this.stored.set({ [key]: input.checked });
        change(input.checked);
      },
    });
    return h("label", { class: "inline" }, input, text);
  }

  /**
   * Adds a chart, once per id.
   * @param {{id: string, group: string, title: string, unit?: string, description?: string, tall?: boolean,
   *   data: (axis: string) => {series: Array, references?: Array}, isConstant?: () => boolean}} options
   */
  add({ id, group, title, unit, description, tall, data, isConstant = () => false }) {
    if (this.charts.has(id)) return;
    const { settings } = this;
    const added = chart({ title, unit, description, tall, settings, legend: this.legend, actions: () => [[this.isPinned(id) ? "Unpin" : "Pin to the top", () => this.togglePin(id)]] });
    added.follow(() => data(settings.axis));
    this.charts.set(id, { id, group, chart: added, text: `${group} ${title}`.toLowerCase(), isConstant });
    this.place(id);
    this.filter();
  }

  /** The data of all charts has changed. */
  invalidate() {
    for (const { chart } of this.charts.values()) chart.invalidate();
    this.filter();
  }

  isPinned(id) {
    return this.stored.pinned.includes(id);
  }

  togglePin(id) {
    const { pinned } = this.stored;
    this.stored.set({ pinned: this.isPinned(id) ? pinned.filter((other) => other !== id) : [...pinned, id] });
    this.place(id);
    this.filter();
  }

  /** Puts a chart into its group, in the order in which charts were added. */
  place(id) {
    const own = this.charts.get(id);
    const { grid } = this.group(this.isPinned(id) ? PINNED : own.group);
    const order = [...this.charts.keys()];
    const after = [...grid.children].find((other) => order.indexOf(other.dataset.id) > order.indexOf(id));
    own.chart.element.dataset.id = id;
    grid.insertBefore(own.chart.element, after ?? null);
  }

  group(name) {
    if (this.groups.has(name)) return this.groups.get(name);
    const grid = h("div", { class: "charts" });
    const number = h("span", { class: "count" });
    const element = h("details", { class: "group", open: !this.stored.folded.includes(name) },
      h("summary", {}, h("h2", {}, name), number), grid);
    element.addEventListener("toggle", () => {
      const others = this.stored.folded.filter((other) => other !== name);
      this.stored.set({ folded: element.open ? others : [...others, name] });
    });
    if (name === PINNED) this.body.prepend(element);
    else this.body.append(element);
    this.groups.set(name, { element, grid, number });
    return this.groups.get(name);
  }

  /** Hides charts that the search or the choice of constant ones leaves out, and groups without any. */
  filterNow() {
    const wanted = this.search.value.toLowerCase().split(/\s+/);
    for (const { chart, text, isConstant } of this.charts.values()) {
      chart.element.hidden = !wanted.every((word) => text.includes(word)) || (this.stored.hideConstant && isConstant());
    }
    let shown = 0;
    for (const { element, grid, number } of this.groups.values()) {
      const visible = [...grid.children].filter((child) => !child.hidden).length;
      element.hidden = !visible;
      number.textContent = visible === grid.childElementCount ? visible : `${visible} of ${grid.childElementCount}`;
      shown += visible;
    }
    this.empty.hidden = this.charts.size > 0;
    this.noMatch.hidden = !this.charts.size || shown > 0;
  }
}
