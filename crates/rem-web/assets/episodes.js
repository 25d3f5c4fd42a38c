// Episodes of the replay to scrub through, with what today's agent thinks at each step.

import { envelope, json, of, stamp } from "./api.js";
import { chart } from "./chart.js";
import { h, notice, slider } from "./dom.js";
import { meter } from "./dream.js";
import { number, percent, signed, words } from "./format.js";
import { paint, screen } from "./pictures.js";

export function episodesPanel(state) {
  const list = h("select", { "aria-label": "Episode", onchange: () => turnTo([0]) });
  // A long episode comes in parts.
  const part = (text, act) => h("button", { type: "button", onclick: act }, text);
  const earlier = part("◀ Earlier steps", () => turnTo(starts.slice(0, -1)));
  const later = part("Later steps ▶", () => turnTo([...starts, next]));
  const parts = h("div", { class: "row", hidden: true }, earlier, later);
  const stage = h("div", {});
  const element = h("div", {}, h("div", { class: "row fields" }, h("label", { class: "field" }, "Episode", list), parts), stage);
  let asked = null;
  let player = null;
  let loads = 0;
  /** The first steps of the parts up to the one that is shown, and that of the one after it. */
  let starts = [0];
  let next = null;

  async function refresh() {
    try {
      const { episodes, problem } = await json(of(state.name, "episodes"));
      if (!episodes.length) {
        if (!player) stage.replaceChildren(notice("There is no episode in the replay yet.", problem ?? "The replay is written at the end of each epoch."));
        return;
      }
      const chosen = list.value;
      list.replaceChildren(...episodes.map((e) => h("option", { value: e.number },
        `${e.number} · epoch ${e.epoch} · ${e.steps} steps · return ${number(e.total)} · ${e.outcome}`)));
      list.value = chosen;
      if (list.value) return;
      // The newest that is whole.
      list.value = (episodes.find((e) => e.outcome !== "still open") ?? episodes[0]).number;
      turnTo([0]);
    } catch (error) {
      asked = null;
      if (!player) stage.replaceChildren(notice(error.message, error.hint));
    }
  }

  async function turnTo(wanted) {
    const load = ++loads;
    player?.close();
    stage.setAttribute("aria-busy", "true");
    try {
      const { about, bytes } = await envelope(`${of(state.name, "episodes", list.value)}?from=${wanted.at(-1)}`);
      if (load !== loads) return;
      starts = wanted;
      next = about.from + about.steps.length;
      player = film(about, bytes);
      stage.replaceChildren(player.element);
      earlier.disabled = starts.length === 1;
      later.disabled = next >= about.episode.steps;
      parts.hidden = earlier.disabled && later.disabled;
    } catch (error) {
      if (load === loads) stage.replaceChildren(notice(error.message, error.hint));
    }
    stage.removeAttribute("aria-busy");
  }

  return {
    element,
    draw() {
      if (!state.details || stamp(state.details) === asked) return;
      asked = stamp(state.details);
      refresh();
    },
    close: () => player?.close(),
  };
}

function film(about, bytes) {
  const canvas = screen(about.size, "the frame of this step");
  const facts = h("dl", { class: "facts" });
  const policy = h("ul", { class: "policy", "aria-label": "Policy" });
  // A run without an agent that can be loaded has frames, actions and rewards all the same.
  const thought = about.steps.some((step) => step.policy.length);
  const values = chart({ title: thought ? "Value of each step, and its reward" : "Reward of each step", x: "step" });
  const at = (i) => about.from + i;
  let now = 0;
  let timer = null;

  function show(i) {
    now = i;
    const step = about.steps[i];
    paint(canvas, bytes, i);
    canvas.setAttribute("aria-label", `frame of step ${at(i)}`);
    facts.replaceChildren(...[["action", words(about.actions[step.action] ?? String(step.action))], ["reward", signed(step.reward)],
      ["value", number(step.value)], ["end", step.ended ? "yes" : "no"]]
      .map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]).flat());
    if (thought) policy.replaceChildren(...bars(about.actions, step.policy, step.action));
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
  const line = (name, look) => ({ name, look, points: about.steps.map((step, i) => [at(i), step[name]]) });
  values.show({ series: thought ? [line("value", 0), line("reward", 1)] : [line("reward", 1)] });
  show(0);
  const part = about.steps.length < about.episode.steps ? ` Steps ${at(0)} to ${at(about.steps.length - 1)} of ${about.episode.steps}.` : "";
  const played = `The episode was played in epoch ${about.episode.epoch}.${part}`;
  return {
    element: h("div", {},
      h("div", { class: "film" },
        h("div", {}, canvas, scrub.element, button),
        h("div", {}, facts, thought ? [h("h3", {}, "Policy"), policy]
          : notice("There is no policy and no value: no agent of this run can be loaded.", about.problem))),
      h("p", { class: "quiet" }, `${played}${thought ? ` Values and policy are those of the agent after epoch ${about.epoch}.` : ""}`),
      values.element),
    close: pause,
  };
}

/** The policy as bars; the action that was taken is marked. */
export function bars(actions, policy, taken) {
  return policy.map((share, action) => h("li", { class: action === taken ? "taken" : null },
    h("span", {}, words(actions[action] ?? String(action))), meter(`chance of ${actions[action]}`, share), h("span", { class: "number" }, percent(share))));
}

/** Where to begin to play: a new game, or any step of any episode. */
export function startForm(episodes, start) {
  const place = h("select", { "aria-label": "Start", onchange: () => show() },
    h("option", { value: "game" }, "a new game"),
    episodes.length ? h("option", { value: "episode" }, "an episode") : null);
  const field = (value) => h("input", { type: "number", min: 0, value, oninput: () => show() });
  const [episode, where] = [field(episodes.find((e) => e.steps > 1)?.number ?? 0), field(0)];
  const which = h("label", { class: "field", hidden: true }, "episode", episode);
  const what = h("span", {}, "seed");
  const about = h("p", { class: "quiet", role: "status" });

  function show() {
    const game = place.value === "game";
    const found = episodes.find((e) => e.number === Number(episode.value));
    which.hidden = game;
    what.textContent = game ? "seed" : "step";
    about.textContent = game ? "" : found
      ? `Episode ${found.number} of epoch ${found.epoch}: ${found.steps} steps, return ${number(found.total)}, ${found.outcome}.`
      : `They go from ${episodes.at(-1).number} to ${episodes[0].number}.`;
  }

  const element = h("form", {
    onsubmit: (event) => {
      event.preventDefault();
      // Keys are to play with from now on.
      if (document.activeElement.matches("input")) document.activeElement.blur();
      start();
    },
  },
  h("div", { class: "row fields" },
    h("label", { class: "field" }, "Start from", place), which, h("label", { class: "field" }, what, where),
    h("button", { type: "submit" }, "Start")),
  about);
  return {
    element,
    newGame() {
      place.value = "game";
      show();
    },
    place: () => (place.value === "game"
      ? { game: { seed: Number(where.value) } } : { episode: { number: Number(episode.value), step: Number(where.value) } }),
  };
}
