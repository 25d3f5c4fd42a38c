// Several runs: what differs in their configs, and one chart per metric.

import { isConstant, meanWithBand } from "../chart/transform.js";
import { differencesTable } from "../compare/differences.js";
import { groupsOf } from "../compare/groups.js";
import { seriesList } from "../compare/legend.js";
import { getJson, subscribe } from "../lib/api.js";
import { ChartBoard, loadMetrics, storedSettings } from "../lib/board.js";
import { chart } from "../lib/chart.js";
import { h, notice, throttle } from "../lib/dom.js";
import { words } from "../lib/format.js";
import { History, isTest } from "../lib/history.js";

/** Redraws caused by events are at least this far apart. */
const REDRAW_MS = 300;

export async function compareView(selected) {
  const names = [...new Set(selected)];
  // An unknown run is an error of the whole page.
  const query = `?runs=${encodeURIComponent(JSON.stringify(names))}`;
  const [differences, known] = await Promise.all([getJson(`/api/differences${query}`), loadMetrics()]);
  return new Comparison(differences.runs, differences, known);
}

class Comparison {
  constructor(names, differences, known) {
    this.names = names;
    this.known = known;
    this.groups = groupsOf(differences);
    this.histories = new Map(names.map((name) => [name, new History()]));
    this.summaries = new Map();
    this.hidden = new Set();
    this.bySeed = false;
    this.settings = storedSettings();
    this.build(differences);
    this.drawLater = throttle(() => this.draw(), REDRAW_MS);
    this.unsubscribe = subscribe(names, {
      onReset: () => {
        this.errors.replaceChildren();
        names.forEach((name) => this.histories.set(name, new History()));
      },
      onEvent: (event) => this.apply(event),
      onError: (reason) => this.errors.replaceChildren(notice(`This page is out of date: ${reason}.`)),
    });
    this.title = "Compare";
    this.breadcrumbs = [["Compare", null]];
  }

  build(differences) {
    const { settings } = this;
    this.errors = h("div", {});
    this.returns = this.returnCharts(settings);
    this.legend = h("div", { class: "legend-column" });
    // Of use only if some runs differ in nothing but the seed.
    const hasSeeds = this.groups.some(({ runs }) => runs.length > 1);
    const mean = h("label", { class: "inline" }, h("input", {
      type: "checkbox", onchange: ({ target }) => this.showBySeed(target.checked),
    }), "Mean and range over seeds");
    this.board = new ChartBoard({ settings, controls: hasSeeds ? [mean] : [], legend: false, empty: "No metrics yet." });
    this.showLegend();
    this.element = h("section", { class: "compare" },
      h("div", { class: "page-head" }, h("h1", {}, `Compare ${this.names.length} runs`)),
      this.errors,
      this.board.toolbar,
      h("div", { class: "compare-head" }, h("div", { class: "compare-charts" }, this.returns.map((one) => one.element)), this.legend),
      differencesTable(differences, (name) => name),
      this.board.body);
  }

  returnCharts(settings) {
    return [["Evaluation return", "evaluate"], ["Collection return", "collect"]].map(([title, phase]) => {
      const added = chart({ title, tall: true, settings, legend: false });
      added.follow(() => ({ series: this.series((history, axis) => history.points(phase, "mean_return", axis)) }));
      return added;
    });
  }

  /** What is drawn in each chart: runs, or groups of runs that differ in the seed only. */
  drawn() {
    const list = this.bySeed ? this.groups : this.names.map((name) => ({ name, runs: [name] }));
    return list.map((one, style) => ({ ...one, style }));
  }

  /** The series of a metric. */
  series(read) {
    return this.drawn().filter(({ name }) => !this.hidden.has(name)).map(({ name, runs, style }) => {
      const histories = runs.map((run) => this.histories.get(run));
      return { name, style, points: histories.length > 1 ? this.mean(histories, read) : read(histories[0], this.settings.axis) };
    });
  }

  /** The mean over seeds at the same epoch, at the steps or time of the longest run. */
  mean(histories, read) {
    const points = meanWithBand(histories.map((history) => read(history, "epoch")));
    const longest = histories.reduce((a, b) => (b.lastEpoch() > a.lastEpoch() ? b : a));
    return { ...points, x: points.x.map(longest.axis(this.settings.axis)) };
  }

  showLegend() {
    this.list = seriesList(this.drawn(), { hidden: this.hidden, settings: this.settings, onchange: () => this.draw() });
    this.legend.replaceChildren(this.list.element);
    this.list.show(this.summaries);
  }

  showBySeed(bySeed) {
    this.bySeed = bySeed;
    this.hidden.clear();
    this.showLegend();
    this.draw();
  }

  apply(event) {
    if (event.type === "metrics" || event.type === "timing") this.histories.get(event.run).apply(event);
    if (event.type === "metrics") this.addCharts(this.histories.get(event.run));
    if (event.type === "summary") this.summaries.set(event.run, event.summary);
    this.drawLater();
  }

  /** A chart for every metric of a run but the returns, which are at the top. */
  addCharts(history) {
    for (const phase of history.phases()) {
      const shown = (metric) => metric !== "mean_return" && (phase !== "evaluate" || isTest(metric) || metric === "mean_length");
      for (const metric of history.metrics(phase).filter(shown)) {
        const read = (history, axis) => history.points(phase, metric, axis);
        this.board.add({
          id: `${phase}/${metric}`, group: words(phase), title: metric, ...this.known.get(`${phase}/${metric}`),
          data: () => ({ series: this.series(read) }),
          isConstant: () => [...this.histories.values()].every((one) => isConstant(read(one, "epoch").y)),
        });
      }
    }
  }

  draw() {
    for (const one of this.returns) one.invalidate();
    this.list.show(this.summaries);
    this.board.invalidate();
  }

  close() {
    this.unsubscribe();
  }
}
