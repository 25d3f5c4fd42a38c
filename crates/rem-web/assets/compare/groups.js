// Runs that differ in their seed only, as one series: their mean, with a band from minimum to maximum.

/** Keys in which runs of one group may differ. */
const PER_RUN = ["seed", "device", "threads"];

/** Settings of single games in games.toml: where the game differs, its name says it all. */
const OF_GAME = ["env.max_steps.train", "env.max_steps.test", "collect.temperature"];

/**
 * The groups of some runs: {name, runs}.
 * @param {{runs: string[], keys: Array<{key: string, values: Array<string | null>}>}} differences
 */
export function groupsOf({ runs, keys }) {
  const distinguishing = keys.filter(({ key }) => !PER_RUN.includes(key));
  const groups = new Map();
  runs.forEach((run, i) => {
    const id = JSON.stringify(distinguishing.map(({ values }) => values[i]));
    if (!groups.has(id)) groups.set(id, { name: name(distinguishing, i), runs: [] });
    groups.get(id).runs.push(run);
  });
  return [...groups.values()].map((group, i, all) => ({ ...group, name: unique(group.name, i, all) }));
}

/** The game alone if nothing else differs, or up to three settings. */
function name(keys, run) {
  const text = (value) => (value ?? "–").replaceAll('"', "");
  const game = keys.find(({ key }) => key === "env.game");
  const others = keys.filter((key) => key !== game && key.values[run] !== null && !(game && OF_GAME.includes(key.key)));
  const settings = others.slice(0, game ? 2 : 3).map(({ key, values }) => `${key.split(".").at(-1)} ${text(values[run])}`);
  const parts = [...(game ? [text(game.values[run])] : []), ...settings];
  return parts.join(", ") || "all runs";
}

function unique(name, i, all) {
  return all.some((other, j) => j < i && other.name === name) ? `${name} (${i + 1})` : name;
}
