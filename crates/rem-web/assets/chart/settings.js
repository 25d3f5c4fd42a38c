// How charts are drawn, shared by all charts of a view: a change in one of them changes all.

export class ChartSettings {
  constructor({ smoothing = 0, log = false, axis = "epoch" } = {}) {
    /** The weight of the past in the moving average, from 0 to 1. */
    this.smoothing = smoothing;
    this.log = log;
    /** The x axis: epoch, steps or time. */
    this.axis = axis;
    /** The visible range of x, or null for all. */
    this.zoom = null;
    /** The value of x at the cursor. */
    this.cursor = null;
    /** The name of the series that stands out. */
    this.highlight = null;
    this.listeners = new Set();
  }

  /** Changes some settings and tells the charts, with whether only the cursor has moved. */
  set(change) {
    const changed = Object.keys(change).filter((key) => this[key] !== change[key]);
    if (!changed.length) return;
    Object.assign(this, change);
    const onlyCursor = changed.every((key) => key === "cursor" || key === "highlight");
    for (const listener of this.listeners) listener(onlyCursor);
  }
}
