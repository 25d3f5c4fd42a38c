// Numbers and durations for display.

/** A number with three to four significant digits. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e6 || size < 1e-3) return value.toExponential(1).replace("-", "−").replace("e+", "e");
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  const text = Number.isInteger(value) ? String(value) : value.toFixed(digits);
  return text.replace("-", "−");
}

export function percent(fraction) {
  return fraction === null || fraction === undefined ? "–" : `${Math.round(100 * fraction)}%`;
}

/** A number with its sign, for rewards. */
export function signed(value) {
  return value > 0 ? `+${number(value)}` : number(value);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.round(hours / 24)} days`;
}

/** The time of day in so many seconds, with the date if it is not today. */
export function timeOfDay(secondsFromNow) {
  const then = new Date(Date.now() + 1000 * secondsFromNow);
  const time = then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const today = then.toDateString() === new Date().toDateString();
  return today ? time : `${then.toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" })}, ${time}`;
}

/** `world_model` as "world model". */
export function words(key) {
  return key.replaceAll("_", " ");
}
