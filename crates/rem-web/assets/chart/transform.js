// What happens to series before they are drawn: smoothing, means over seeds, thinning.

/** Points as columns {x, y} without gaps, from columns or from pairs [x, y]. */
export function columns(points) {
  if (!Array.isArray(points)) return points;
  const finite = points.filter(([, y]) => Number.isFinite(y));
  return { x: finite.map(([x]) => x), y: finite.map(([, y]) => y) };
}

/**
 * Exponential moving average with this weight of the past, without the bias of a start at zero.
 * @param {number[]} values
 */
export function smoothed(values, weight) {
  if (!weight) return values;
  let [sum, total] = [0, 0];
  return values.map((value) => {
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return sum / total;
  });
}

/** Whether a series has several values, all of them the same. */
export function isConstant(y) {
  return y.length > 1 && y.every((value) => value === y[0]);
}

/**
 * Series that differ in their seed only as one: their mean, minimum and maximum at each x. It ends where fewer than half
 * of the series go on, so that the mean is not that of a few.
 */
export function meanWithBand(list) {
  const ends = list.map(({ x }) => x[x.length - 1] ?? -Infinity).sort((a, b) => b - a);
  const end = ends[Math.ceil(list.length / 2) - 1];
  const at = new Map();
  for (const { x, y } of list) {
    for (let i = 0; i < x.length && x[i] <= end; i++) {
      const found = at.get(x[i]);
      if (!found) at.set(x[i], { sum: y[i], count: 1, low: y[i], high: y[i] });
      else {
        found.sum += y[i];
        found.count++;
        if (y[i] < found.low) found.low = y[i];
        if (y[i] > found.high) found.high = y[i];
      }
    }
  }
  const x = [...at.keys()].sort((a, b) => a - b);
  const all = x.map((key) => at.get(key));
  return { x, y: all.map((p) => p.sum / p.count), low: all.map((p) => p.low), high: all.map((p) => p.high) };
}

/** Columns with other values of x, at most two per pixel: the least and the greatest value of each. */
export function thinned({ x, y }, toX) {
  if (x.length < 3) return { x, y };
  const width = Math.abs(toX(x[x.length - 1]) - toX(x[0]));
  if (x.length < 2 * width) return { x, y };
  const kept = { x: [], y: [] };
  let start = 0;
  while (start < x.length) {
    const pixel = Math.floor(toX(x[start]));
    let [low, high, end] = [start, start, start];
    for (; end < x.length && Math.floor(toX(x[end])) === pixel; end++) {
      if (y[end] < y[low]) low = end;
      if (y[end] > y[high]) high = end;
    }
    for (const i of low < high ? [low, high] : low > high ? [high, low] : [low]) {
      kept.x.push(x[i]);
      kept.y.push(y[i]);
    }
    start = end;
  }
  return kept;
}
