// The log of a run as curves.

/** All lines of `metrics.jsonl` so far. */
export class History {
  constructor() {
    this.lines = [];
  }

  /** Takes an event of the kind `metrics` in. */
  take({ restarted, lines }) {
    if (restarted) this.lines = [];
    this.lines.push(...lines);
  }

  /** The phases that have numbers, in the order in which they come in an epoch. */
  phases() {
    const order = ["collect", "tokenizer", "world_model", "actor_critic", "evaluate"];
    const found = new Set(this.lines.map((line) => line.phase).filter((phase) => phase !== "note"));
    return [...order.filter((phase) => found.delete(phase)), ...found];
  }

  /** What a phase measures, its loss first. */
  keys(phase) {
    const keys = this.lines.filter((line) => line.phase === phase).flatMap(Object.keys);
    const measured = [...new Set(keys)].filter((key) => key !== "epoch" && key !== "phase");
    return measured.sort((a, b) => (b === "loss") - (a === "loss"));
  }

  /** A value over epochs: [[epoch, value], …]. */
  points(phase, key) {
    const has = (line) => line.phase === phase && typeof line[key] === "number";
    return this.lines.filter(has).map((line) => [line.epoch, line[key]]);
  }

  last(phase, key) {
    const points = this.points(phase, key);
    return points.length ? points[points.length - 1][1] : null;
  }

  notes() {
    return this.lines.filter((line) => line.phase === "note");
  }
}

/** Returns while collecting and at evaluations. */
export function returns(history, first = 0) {
  return [
    { name: "evaluation", points: history.points("evaluate", "mean_return"), look: first },
    { name: "while collecting", points: history.points("collect", "mean_return"), look: first + 1 },
  ];
}
