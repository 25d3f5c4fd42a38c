// Which runs the list shows, in which order, in which groups.

/** The columns of the list that it can be sorted by, with their values. */
export const SORTABLE = {
  name: (run) => run.title ?? run.name,
  game: (run) => run.game,
  preset: (run) => run.preset && `${run.preset} ${String(run.preset_changes ?? 0).padStart(3)}`,
  state: (run) => run.state,
  epoch: (run) => run.epoch,
  score: (run) => run.score,
  updated: (run) => (run.idle_seconds === null ? null : -run.idle_seconds),
};

/** What the list can be grouped by: the names of the groups of a run. A run with two tags is in two groups. */
export const GROUPS = {
  none: () => [""],
  game: (run) => [run.game ?? "no game"],
  preset: (run) => [presetText(run)],
  "game and preset": (run) => [`${run.game ?? "no game"}, ${presetText(run)}`],
  tag: (run) => (run.tags.length ? run.tags : ["no tag"]),
  state: (run) => [run.state],
};

/** The nearest preset, and in how many keys the config differs from it. */
export function presetText({ preset, preset_changes: changes }) {
  if (!preset) return "–";
  return changes ? `${preset} + ${changes} changed` : preset;
}

/** Whether a run has all words of a search. */
export function matches(run, search) {
  const text = [run.name, run.title, run.game, run.preset, run.state, `seed${run.seed}`, ...run.tags, run.note ?? ""].join(" ").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Runs in order. Those without a value come last, either way. */
export function sorted(runs, key, descending) {
  const value = SORTABLE[key];
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  const isMissing = (run) => value(run) === null || value(run) === undefined;
  return [...runs].sort((a, b) => {
    if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
    return compare(value(a), value(b)) * (descending ? -1 : 1);
  });
}

/** Pairs of the name of a group and its runs, by name. */
export function grouped(runs, by) {
  const groups = new Map();
  for (const run of runs) {
    for (const name of GROUPS[by](run)) {
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(run);
    }
  }
  return [...groups].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
}
