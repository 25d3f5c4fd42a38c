// Where a session starts: a reset of the environment, or a step of a replay episode.

import { h } from "../lib/dom.js";
import { number } from "../lib/format.js";

export function startForm(episodes, onStart) {
  const source = h("select", { "aria-label": "Start from", onchange: () => change() },
    h("option", { value: "reset" }, "reset"),
    episodes.length ? h("option", { value: "episode" }, "replay episode") : null);
  const field = (value) => h("input", { type: "number", min: 0, value, oninput: () => update() });
  const [episode, seedOrStep] = [field(episodes.find((e) => e.steps > 1)?.number ?? 0), field(0)];
  const episodeField = h("label", { class: "field", hidden: true }, "Episode", episode);
  const seedOrStepLabel = h("span", {}, "Seed");
  const description = h("p", { class: "muted", role: "status" });

  /** The seed and the step share a field. */
  let other = 0;
  function change() {
    [other, seedOrStep.value] = [seedOrStep.value, other];
    update();
  }

  function update() {
    const reset = source.value === "reset";
    const found = episodes.find((e) => e.number === Number(episode.value));
    episodeField.hidden = reset;
    seedOrStepLabel.textContent = reset ? "Seed" : "Step";
    description.textContent = reset ? "" : found
      ? `Episode ${found.number}, epoch ${found.epoch}: ${found.steps} steps, return ${number(found.return)}, ${found.outcome}.`
      : `The replay has episodes ${episodes.at(-1).number} to ${episodes[0].number}.`;
  }

  const element = h("form", {
    onsubmit: (event) => {
      event.preventDefault();
      // Give the keys back to the game.
      if (document.activeElement.matches("input")) document.activeElement.blur();
      onStart();
    },
  },
  h("div", { class: "row fields" },
    h("label", { class: "field" }, "Start from", source), episodeField, h("label", { class: "field" }, seedOrStepLabel, seedOrStep),
    h("button", { type: "submit" }, "Start")),
  description);
  return {
    element,
    selectReset() {
      if (source.value === "reset") return;
      source.value = "reset";
      change();
    },
    /** The next start is a reset with another seed. A replay episode starts as before. */
    nextSeed() {
      if (source.value === "reset") seedOrStep.value = Number(seedOrStep.value) + 1;
    },
    value: () => (source.value === "reset"
      ? { reset: { seed: Number(seedOrStep.value) } } : { episode: { number: Number(episode.value), step: Number(seedOrStep.value) } }),
  };
}
