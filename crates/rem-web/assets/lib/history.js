// The metrics of a run over epochs.

/** The lines of `metrics.jsonl` so far. */
export class History {
  constructor() {
    this.lines = [];
  }

  /** Applies an event of type `metrics`. */
  apply({ reset, lines }) {
    if (reset) this.lines = [];
    this.lines.push(...lines);
  }

  /** The phases with metrics, in the order of an epoch. */
  phases() {
    const order = ["collect", "tokenizer", "world_model", "actor_critic", "evaluate"];
    const found = new Set(this.lines.map((line) => line.phase).filter((phase) => phase !== "note"));
    return [...order.filter((phase) => found.delete(phase)), ...found];
  }

  /** The metrics of a phase, its total loss first. */
  metrics(phase) {
    const keys = this.lines.filter((line) => line.phase === phase).flatMap(Object.keys);
    const metrics = [...new Set(keys)].filter((key) => key !== "epoch" && key !== "phase");
    return metrics.sort((a, b) => (b === "loss") - (a === "loss"));
  }

  /** A metric over epochs: [[epoch, value], …]. */
  points(phase, metric) {
    const has = (line) => line.phase === phase && typeof line[metric] === "number";
    return this.lines.filter(has).map((line) => [line.epoch, line[metric]]);
  }

  last(phase, metric) {
    const points = this.points(phase, metric);
    return points.length ? points[points.length - 1][1] : null;
  }
}

/** The returns of evaluation and collection. */
export function returnSeries(history) {
  return [
    { name: "evaluation", points: history.points("evaluate", "mean_return"), style: 0 },
    { name: "collection", points: history.points("collect", "mean_return"), style: 1 },
  ];
}

/** Whether an evaluation logs this metric on test episodes, as `test/NAME` for a metric `NAME` of the world model. */
export function isTest(metric) {
  return metric.startsWith("test/");
}

/** A metric, and the same on test episodes if they are in the log. */
export function metricSeries(history, phase, metric) {
  const test = phase === "world_model" ? history.points("evaluate", `test/${metric}`) : [];
  return [
    { name: test.length ? "training" : metric, style: 0, points: history.points(phase, metric) },
    ...(test.length ? [{ name: "test episodes", style: 1, points: test }] : []),
  ];
}
