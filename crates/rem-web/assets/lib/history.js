// The metrics of a run over epochs, by column.

const PHASES = ["collect", "tokenizer", "world_model", "actor_critic", "evaluate"];

/** Columns of logs so far, by phase: {epoch: [], values: {name: []}}. Missing values are null. */
class Table {
  constructor() {
    this.phases = new Map();
  }

  append(columns) {
    for (const [phase, { epoch, values }] of Object.entries(columns)) {
      if (!this.phases.has(phase)) this.phases.set(phase, { epoch: [], values: new Map() });
      const table = this.phases.get(phase);
      const rows = table.epoch.length;
      push(table.epoch, epoch);
      for (const [name, added] of Object.entries(values)) {
        if (!table.values.has(name)) table.values.set(name, new Array(rows).fill(null));
        push(table.values.get(name), added);
      }
      for (const column of table.values.values()) while (column.length < table.epoch.length) column.push(null);
    }
  }
}

/** Appends in place; a spread of a long list would overflow the stack. */
function push(list, added) {
  for (const value of added) list.push(value);
}

/** The logs of a run so far. */
export class History {
  constructor() {
    this.table = new Table();
    this.timing = new Table();
    this.notes = [];
    /** Increases with every change. */
    this.version = 0;
    this.axes = new Map();
  }

  /** Applies an event of type `metrics` or `timing`. */
  apply({ type, reset, columns, notes = [] }) {
    if (type === "metrics") {
      if (reset) [this.table, this.notes] = [new Table(), []];
      this.table.append(columns);
      this.notes.push(...notes);
    } else {
      if (reset) this.timing = new Table();
      this.timing.append(columns);
    }
    this.version++;
    this.axes.clear();
  }

  /** The phases with metrics, in the order of an epoch. */
  phases() {
    const found = new Set(this.table.phases.keys());
    return [...PHASES.filter((phase) => found.delete(phase)), ...found];
  }

  /** The metrics of a phase, its total loss first. */
  metrics(phase) {
    const metrics = [...(this.table.phases.get(phase)?.values.keys() ?? [])];
    return metrics.sort((a, b) => (b === "loss") - (a === "loss"));
  }

  /** A metric over epochs, steps or time, as columns {x, y} without missing values. */
  points(phase, metric, axis = "epoch") {
    return this.columns(this.table, phase, metric, axis);
  }

  /** The seconds of a phase in each epoch. */
  seconds(phase, axis = "epoch") {
    return this.columns(this.timing, phase, "seconds", axis);
  }

  columns(table, phase, name, axis) {
    const found = table.phases.get(phase);
    const values = found?.values.get(name) ?? [];
    const toX = this.axis(axis);
    const [x, y] = [[], []];
    for (let i = 0; i < values.length; i++) {
      const at = values[i] === null ? undefined : toX(found.epoch[i]);
      if (at === undefined) continue;
      x.push(at);
      y.push(values[i]);
    }
    return { x, y };
  }

  last(phase, metric) {
    const { y } = this.points(phase, metric);
    return y.length ? y[y.length - 1] : null;
  }

  /** From an epoch to its value of x: itself, environment steps so far, or seconds so far. */
  axis(name) {
    if (name === "epoch") return (epoch) => epoch;
    if (!this.axes.has(name)) this.axes.set(name, name === "steps" ? this.stepsByEpoch() : this.secondsByEpoch());
    const map = this.axes.get(name);
    return (epoch) => map.get(epoch);
  }

  /** Epochs without collection have the steps of the one before. */
  stepsByEpoch() {
    const { x, y } = this.points("collect", "steps");
    const steps = new Map(x.map((epoch, i) => [epoch, y[i]]));
    return filled(steps, this.lastEpoch(), (previous, own) => own ?? previous);
  }

  secondsByEpoch() {
    const seconds = new Map();
    for (const { epoch, values } of this.timing.phases.values()) {
      const own = values.get("seconds") ?? [];
      epoch.forEach((at, i) => seconds.set(at, (seconds.get(at) ?? 0) + (own[i] ?? 0)));
    }
    return filled(seconds, this.lastEpoch(), (previous, own) => previous + (own ?? 0));
  }

  lastEpoch() {
    const ends = [...this.table.phases.values()].map(({ epoch }) => epoch[epoch.length - 1] ?? 0);
    return Math.max(0, ...ends);
  }

  /** Notes and metrics in the order of epochs, the newest first: {epoch, phase, text} or {epoch, phase, values}. */
  newestLines(count) {
    const lines = this.notes.map((note) => ({ ...note, phase: "note", order: -1 }));
    this.phases().forEach((phase, order) => {
      const { epoch, values } = this.table.phases.get(phase);
      for (let i = Math.max(0, epoch.length - count); i < epoch.length; i++) {
        const own = [...values].filter(([, column]) => column[i] !== null).map(([name, column]) => [name, column[i]]);
        lines.push({ epoch: epoch[i], phase, order, values: own });
      }
    });
    return lines.sort((a, b) => b.epoch - a.epoch || b.order - a.order).slice(0, count);
  }

  get lineCount() {
    return [...this.table.phases.values()].reduce((sum, { epoch }) => sum + epoch.length, this.notes.length);
  }
}

/** A map with a value for every epoch up to `last`, each from the one before and its own. */
function filled(map, last, next) {
  let value = 0;
  const all = new Map();
  for (let epoch = 0; epoch <= last; epoch++) {
    value = next(value, map.get(epoch));
    all.set(epoch, value);
  }
  return all;
}

/** Whether an evaluation logs this metric on test episodes, as `test/NAME` for a metric `NAME` of the world model. */
export function isTest(metric) {
  return metric.startsWith("test/");
}

/** The returns of evaluation and collection. */
export function returnSeries(history, axis) {
  return [
    { name: "evaluation", points: history.points("evaluate", "mean_return", axis), style: 0 },
    { name: "collection", points: history.points("collect", "mean_return", axis), style: 1 },
  ];
}

/** A metric, and the same on test episodes if they are in the log. */
export function metricSeries(history, phase, metric, axis) {
  const test = phase === "world_model" ? history.points("evaluate", `test/${metric}`, axis) : { x: [] };
  return [
    { name: test.x.length ? "training" : metric, style: 0, points: history.points(phase, metric, axis) },
    ...(test.x.length ? [{ name: "test episodes", style: 1, points: test }] : []),
  ];
}
