// Replay episodes, with policy and value of the last agent at each step.

import { getJson, getMessage, replayVersion, runPath } from "../lib/api.js";
import { chart } from "../lib/chart.js";
import { h, notice, slider } from "../lib/dom.js";
import { number, signed, words } from "../lib/format.js";
import { drawFrame, frameCanvas } from "../lib/frames.js";
import { policyBars } from "../lib/meter.js";

const PLAYBACK_MS = 120;

export function episodesPanel(state) {
  const list = h("select", { "aria-label": "Episode", onchange: () => load([0]) });
  // A long episode is loaded in pages.
  const pageButton = (text, onclick) => h("button", { type: "button", onclick }, text);
  const previous = pageButton("◀ Previous steps", () => load(pages.slice(0, -1)));
  const next = pageButton("Next steps ▶", () => load([...pages, nextPage]));
  const pager = h("div", { class: "row", hidden: true }, previous, next);
  const stage = h("div", {});
  const element = h("div", {}, h("div", { class: "row fields" }, h("label", { class: "field" }, "Episode", list), pager), stage);
  let version = null;
  let player = null;
  let loads = 0;
  /** The first steps of the pages up to the current one, and of the next one. */
  let pages = [0];
  let nextPage = null;

  async function refresh() {
    try {
      const { episodes, problem } = await getJson(runPath(state.name, "episodes"));
      if (!episodes.length) {
        if (!player) stage.replaceChildren(notice("The replay has no episodes yet.", problem ?? "Each epoch adds its episodes when it ends."));
        return;
      }
      const selected = list.value;
      list.replaceChildren(...episodes.map((e) => h("option", { value: e.number },
        `${e.number} · epoch ${e.epoch} · ${e.steps} steps · return ${number(e.return)} · ${e.outcome}`)));
      list.value = selected;
      if (list.value) return;
      // The last finished episode.
      list.value = (episodes.find((e) => e.outcome !== "running") ?? episodes[0]).number;
      load([0]);
    } catch (error) {
      version = null;
      if (!player) stage.replaceChildren(notice(error.message, error.hint));
    }
  }

  async function load(wanted) {
    const id = ++loads;
    player?.close();
    stage.setAttribute("aria-busy", "true");
    try {
      const { header, payload } = await getMessage(`${runPath(state.name, "episodes", list.value)}?from=${wanted.at(-1)}`);
      if (id !== loads) return;
      pages = wanted;
      nextPage = header.from + header.steps.length;
      player = episodePlayer(header, payload);
      stage.replaceChildren(player.element);
      previous.disabled = pages.length === 1;
      next.disabled = nextPage >= header.episode.steps;
      pager.hidden = previous.disabled && next.disabled;
    } catch (error) {
      if (id === loads) stage.replaceChildren(notice(error.message, error.hint));
    }
    stage.removeAttribute("aria-busy");
  }

  return {
    element,
    draw() {
      if (!state.details || replayVersion(state.details) === version) return;
      version = replayVersion(state.details);
      refresh();
    },
    close: () => player?.close(),
  };
}

function episodePlayer(header, payload) {
  const canvas = frameCanvas(header.frame_size, "frame");
  const facts = h("dl", { class: "facts" });
  const policy = h("ul", { class: "policy", "aria-label": "Policy" });
  // Without a loadable agent there are still frames, actions and rewards.
  const hasAgent = header.steps.some((step) => step.policy.length);
  const values = chart({ title: hasAgent ? "Value and reward" : "Reward", x: "step" });
  const stepNumber = (i) => header.from + i;
  let current = 0;
  let timer = null;

  function show(i) {
    current = i;
    const step = header.steps[i];
    drawFrame(canvas, payload, i);
    canvas.setAttribute("aria-label", `frame of step ${stepNumber(i)}`);
    facts.replaceChildren(...[["action", words(header.actions[step.action] ?? String(step.action))], ["reward", signed(step.reward)],
      ["value", number(step.value)], ["terminated", step.terminated ? "yes" : "no"]]
      .map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]).flat());
    if (hasAgent) policy.replaceChildren(...policyBars(header.actions, step.policy, step.action));
  }

  const stepSlider = slider({
    label: "Step", min: 0, max: header.steps.length - 1, value: 0,
    text: (i) => `${stepNumber(i)} of ${header.episode.steps - 1}`,
    onchange: show,
  });
  const button = h("button", { type: "button", onclick: () => (timer ? pause() : play()) }, "▶ Play");
  const pause = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "▶ Play";
  };
  const play = () => {
    if (current === header.steps.length - 1) current = -1;
    button.textContent = "❚❚ Pause";
    timer = setInterval(() => {
      stepSlider.set(current + 1);
      show(current + 1);
      if (current === header.steps.length - 1) pause();
    }, PLAYBACK_MS);
  };
  const series = (name, style, kind) => ({ name, style, kind, points: header.steps.map((step, i) => [stepNumber(i), step[name]]) });
  const reward = series("reward", 1, "stem");
  values.show({ series: hasAgent ? [series("value", 0), reward] : [reward] });
  show(0);
  const page = header.steps.length < header.episode.steps ? `, steps ${stepNumber(0)} to ${stepNumber(header.steps.length - 1)} of ${header.episode.steps}` : "";
  const collected = `Collected in epoch ${header.episode.epoch}${page}.`;
  return {
    element: h("div", {},
      h("div", { class: "episode-player" },
        h("div", {}, canvas, stepSlider.element, button),
        h("div", {}, facts, hasAgent ? [h("h3", {}, "Policy"), policy]
          : notice("No policy and value: the agent of this run cannot be loaded.", header.problem))),
      h("p", { class: "muted" }, `${collected}${hasAgent ? ` Policy and value of the agent of epoch ${header.epoch}.` : ""}`),
      values.element),
    close: pause,
  };
}
