// Scales and ticks of charts.

/** A mapping from values to positions. `log` needs values above 0. */
export function scale([low, high], [from, to], log = false) {
  const f = log ? Math.log10 : (value) => value;
  const [a, b] = [f(low), f(high)];
  const factor = b === a ? 0 : (to - from) / (b - a);
  const position = (value) => from + (f(value) - a) * factor;
  position.invert = (at) => {
    const value = factor ? a + (at - from) / factor : a;
    return log ? 10 ** value : value;
  };
  return position;
}

/** The range of some values with a margin, so that no line touches the frame. */
export function padded([low, high], log = false) {
  if (log) {
    const margin = Math.max(0.04 * Math.log10(high / low), 0.02);
    return [low / 10 ** margin, high * 10 ** margin];
  }
  const margin = high > low ? 0.06 * (high - low) : Math.abs(low) / 10 || 1;
  return [low - margin, high + margin];
}

/** Round numbers that divide a range into about `count` parts. */
export function ticks([low, high], count, log = false) {
  if (!(high > low)) return [low];
  if (log) return logTicks(low, high, count);
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

/** Powers of ten, or the multiples 2 and 5 too in a range of few decades. Linear ticks within half a decade. */
function logTicks(low, high, count) {
  const decades = Math.log10(high / low);
  if (decades < 0.6) return ticks([low, high], count);
  const multiples = decades < 2.5 ? [1, 2, 5] : [1];
  const every = multiples.length > 1 ? 1 : Math.max(1, Math.ceil(decades / (count + 1)));
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    if (power % every) continue;
    for (const multiple of multiples) {
      const tick = multiple * 10 ** power;
      if (tick >= low && tick <= high) found.push(tick);
    }
  }
  return found;
}

/** The index of the value nearest to `wanted` in an ascending list; -1 in an empty one. */
export function nearestIndex(values, wanted) {
  let [low, high] = [0, values.length - 1];
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low > 0 && wanted - values[low - 1] <= values[low] - wanted ? low - 1 : low;
}
