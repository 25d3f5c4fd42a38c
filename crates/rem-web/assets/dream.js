// The dream beside reality, step by step.

import { envelope, json, of, stamp } from "./api.js";
import { h, notice } from "./dom.js";
import { number, percent, signed } from "./format.js";
import { mark, paint, screen } from "./pictures.js";

export function dreamPanel(state) {
  const box = h("div", {});
  let asked = null;
  let made = null;

  async function refresh() {
    try {
      const { episodes, problem } = await json(of(state.name, "episodes"));
      const long = episodes.filter((episode) => episode.steps > 1);
      if (made) {
        made.newest(Math.max(...long.map((episode) => episode.number)));
      } else if (long.length) {
        made = form(state, long);
        box.replaceChildren(...made.elements);
      } else {
        box.replaceChildren(notice("There is no episode in the replay to dream along with yet.", problem ?? "The replay is written at the end of each epoch."));
      }
    } catch (error) {
      asked = null;
      if (!made) box.replaceChildren(notice(error.message, error.hint));
    }
  }

  return {
    element: box,
    draw() {
      if (!state.details || stamp(state.details) === asked) return;
      asked = stamp(state.details);
      if (state.details.checkpoints.length || made) refresh();
      else box.replaceChildren(notice("There is no checkpoint yet, so there is nothing that dreams.", "The first one is written when training starts. The episodes can be looked at without it."));
    },
  };
}

function form(state, episodes) {
  const field = (label, attributes) => {
    const input = h("input", { type: "number", ...attributes });
    return { input, element: h("label", { class: "field" }, label, input) };
  };
  // The newest that is whole.
  const newest = episodes.find((episode) => episode.outcome !== "still open") ?? episodes[0];
  const episode = field("Episode", { min: 0, max: Math.max(...episodes.map((e) => e.number)), value: newest.number });
  const step = field("From step", { min: 0, value: 0 });
  const length = field("Frames", { min: 2, max: 64, value: Math.min(16, Math.max(2, newest.steps)) });
  const temperature = field("Temperature", { min: 0, max: 4, step: 0.1, value: 1 });
  const seed = field("Dream no.", { min: 0, value: 0 });
  const result = h("div", {});

  async function dream(event) {
    event?.preventDefault();
    result.setAttribute("aria-busy", "true");
    const query = new URLSearchParams({
      episode: episode.input.value, step: step.input.value, length: length.input.value,
      temperature: temperature.input.value, seed: seed.input.value,
    });
    try {
      const { about, bytes } = await envelope(`${of(state.name, "dream")}?${query}`);
      result.replaceChildren(...strip(about, bytes));
    } catch (error) {
      result.replaceChildren(notice(error.message, error.hint));
    }
    result.removeAttribute("aria-busy");
  }
  dream();
  const elements = [
    h("h2", {}, "The dream beside reality"),
    h("p", { class: "quiet" }, "The world model sees the first frames of a piece of a real episode; then it gets only the actions and makes up the rest. Above is reality, below the dream; squares mark tokens that differ from the real frame's. Under them: the action, the share of right tokens, the reward as it was and as it was dreamt with the chances of −1 (orange), 0 and +1 (blue), and the chance of an end."),
    h("form", { class: "row fields", onsubmit: dream },
      episode.element, step.element, length.element, temperature.element, seed.element,
      h("button", { type: "submit" }, "Dream")),
    result,
  ];
  return { elements, newest: (number) => (episode.input.max = number) };
}

function strip(about, bytes) {
  const dreamt = about.steps.filter((step) => !step.seen);
  const mean = dreamt.reduce((sum, step) => sum + step.accuracy, 0) / (dreamt.length || 1);
  return [
    h("p", {}, dreamt.length
      ? `${percent(mean)} of the dreamt tokens are those of reality, by the agent after epoch ${about.epoch}.`
      : "Nothing was dreamt: there are not enough frames after those that are seen."),
    h("div", { class: "scroll" }, h("ol", { class: "strip" }, about.steps.map((step, i) => column(about, step, bytes, i)))),
  ];
}

function column(about, step, bytes, i) {
  const name = (kind) => `${kind}, step ${step.step}`;
  const [real, dream] = [screen(about.size, name("reality")), screen(about.size, name("dream"))];
  paint(real, bytes, 2 * i);
  paint(dream, bytes, 2 * i + 1);
  const layer = h("canvas", { class: "marks", "aria-hidden": "true" });
  mark(layer, about.grid, step.wrong, "#ff9d3b");
  const beyond = i >= about.horizon;
  return h("li", { class: beyond ? "beyond" : null },
    h("span", { class: "quiet" }, `step ${step.step}`),
    h("span", { class: "quiet" }, step.seen ? "seen" : beyond ? "past its horizon" : "dreamt"),
    real, h("div", { class: "layers" }, dream, layer),
    step.seen ? null : [
      h("span", {}, about.actions[step.action]),
      h("span", {}, `tokens ${percent(step.accuracy)}`),
      meter("accuracy", step.accuracy),
      h("span", {}, `reward ${signed(step.reward)} / ${signed(step.dreamt_reward)}`),
      step.reward_odds.length ? odds(step.reward_odds) : null,
      h("span", {}, `end ${percent(step.end_odds)}${step.ended ? ", and it ended" : ""}`),
    ]);
}

/** The chances of a reward's signs, as a bar in three parts and in words. */
function odds(shares) {
  const text = `−1 ${percent(shares[0])}, 0 ${percent(shares[1])}, +1 ${percent(shares[2])}`;
  const parts = [1, 6, 0].map((look, sign) => {
    const part = h("span", { class: `fill series-${look}` });
    part.style.flexGrow = shares[sign];
    return part;
  });
  return h("span", { class: "shares thin", role: "img", title: `foresaw ${text}`, "aria-label": `foresaw reward ${text}` }, parts);
}

/** A bar that tells a share. */
export function meter(label, share) {
  const bar = h("span", { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": number(share) }, h("span", {}));
  bar.firstChild.style.width = `${100 * share}%`;
  return bar;
}
