// One chart per metric, grouped by phase.

import { isConstant } from "../chart/transform.js";
import { ChartBoard, loadMetrics } from "../lib/board.js";
import { words } from "../lib/format.js";
import { isTest, metricSeries } from "../lib/history.js";

export function metricsPanel(state) {
  const board = new ChartBoard({ settings: state.chartSettings, empty: "No metrics yet. The first ones appear after the first phase of the first epoch." });
  let known = null;
  let drawn = null;

  function addCharts() {
    const { history } = state;
    for (const phase of history.phases()) {
      for (const metric of history.metrics(phase).filter((name) => !isTest(name))) {
        const series = (axis) => metricSeries(state.history, phase, metric, axis);
        board.add({
          id: `${phase}/${metric}`, group: words(phase), title: metric, ...known.get(`${phase}/${metric}`),
          data: (axis) => ({ series: series(axis) }),
          isConstant: () => series("epoch").every(({ points }) => isConstant(points.y)),
        });
      }
    }
    for (const phase of history.timing.phases.keys()) {
      board.add({
        id: `time/${phase}`, group: "time per epoch", title: words(phase), unit: "s",
        data: (axis) => ({ series: [{ name: "seconds", style: 0, points: state.history.seconds(phase, axis) }] }),
      });
    }
  }

  return {
    element: board.element,
    async draw() {
      known ??= await loadMetrics();
      const { history } = state;
      if (drawn?.history === history && drawn.version === history.version) return;
      drawn = { history, version: history.version };
      addCharts();
      board.invalidate();
    },
  };
}
