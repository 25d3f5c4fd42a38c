// Episodes of the replay to scrub through, with what today's agent thinks at each step.

import { envelope, json, of } from "./api.js";
import { chart } from "./chart.js";
import { h, notice, slider } from "./dom.js";
import { meter } from "./dream.js";
import { number, percent, signed, words } from "./format.js";
import { paint, screen } from "./pictures.js";

export function episodesPanel(state) {
  const list = h("select", { "aria-label": "Episode", onchange: () => load() });
  const stage = h("div", {});
  const element = h("div", {}, h("div", { class: "row" }, h("label", { class: "field" }, "Episode", list)), stage);
  let begun = false;
  let player = null;

  async function begin() {
    try {
      const { episodes, problem } = await json(of(state.name, "episodes"));
      if (!episodes.length) {
        begun = false;
        stage.replaceChildren(notice("There is no episode in the replay yet.", problem ?? "The replay is written at the end of each epoch."));
        return;
      }
      list.replaceChildren(...episodes.map((e) => h("option", { value: e.number },
        `${e.number} · epoch ${e.epoch} · ${e.steps} steps · return ${number(e.total)} · ${e.outcome}`)));
      // The newest that is whole.
      list.value = (episodes.find((e) => e.outcome !== "still open") ?? episodes[0]).number;
      await load();
    } catch (error) {
      stage.replaceChildren(notice(error.message, error.hint));
    }
  }

  async function load() {
    player?.close();
    stage.setAttribute("aria-busy", "true");
    try {
      const { about, bytes } = await envelope(of(state.name, "episodes", list.value));
      player = film(about, bytes);
      stage.replaceChildren(player.element);
    } catch (error) {
      stage.replaceChildren(notice(error.message, error.hint));
    }
    stage.removeAttribute("aria-busy");
  }

  return {
    element,
    draw() {
      if (begun || !state.details?.checkpoints.length) return;
      begun = true;
      begin();
    },
    close: () => player?.close(),
  };
}

function film(about, bytes) {
  const canvas = screen(about.size, "the frame of this step");
  const facts = h("dl", { class: "facts" });
  const policy = h("ul", { class: "policy", "aria-label": "Policy" });
  const values = chart({ title: "Value of each step, and its reward", x: "step" });
  const at = (i) => about.from + i;
  let now = 0;
  let timer = null;

  function show(i) {
    now = i;
    const step = about.steps[i];
    paint(canvas, bytes, i);
    canvas.setAttribute("aria-label", `frame of step ${at(i)}`);
    facts.replaceChildren(...[["action", about.actions[step.action]], ["reward", signed(step.reward)],
      ["value", number(step.value)], ["end", step.ended ? "yes" : "no"]]
      .map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]).flat());
    policy.replaceChildren(...bars(about.actions, step.policy, step.action));
  }

  const scrub = slider({
    label: "Step", min: 0, max: about.steps.length - 1, value: 0,
    text: (i) => `${at(i)} of ${about.episode.steps - 1}`,
    onchange: show,
  });
  const button = h("button", { type: "button", onclick: () => (timer ? pause() : run()) }, "▶ Run");
  const pause = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "▶ Run";
  };
  const run = () => {
    if (now === about.steps.length - 1) now = -1;
    button.textContent = "❚❚ Pause";
    timer = setInterval(() => {
      scrub.set(now + 1);
      show(now + 1);
      if (now === about.steps.length - 1) pause();
    }, 120);
  };
  values.show({
    series: [
      { name: "value", look: 0, points: about.steps.map((step, i) => [at(i), step.value]) },
      { name: "reward", look: 1, points: about.steps.map((step, i) => [at(i), step.reward]) },
    ],
  });
  show(0);
  const rest = about.episode.steps > about.from + about.steps.length;
  return {
    element: h("div", {},
      h("div", { class: "film" },
        h("div", {}, canvas, scrub.element, button),
        h("div", {}, facts, h("h3", {}, "Policy"), policy)),
      h("p", { class: "quiet" }, `Values and policy are those of the agent after epoch ${about.epoch}; the episode was played in epoch ${about.episode.epoch}.${rest ? ` The first ${about.steps.length} of ${about.episode.steps} steps.` : ""}`),
      values.element),
    close: pause,
  };
}

/** The policy as bars; the action that was taken is marked. */
export function bars(actions, policy, taken) {
  return policy.map((share, action) => h("li", { class: action === taken ? "taken" : null },
    h("span", {}, words(actions[action] ?? String(action))), meter(`chance of ${actions[action]}`, share), h("span", { class: "number" }, percent(share))));
}
