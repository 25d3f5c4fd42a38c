// Dreams along replay episodes: imagined next to real frames.

import { getJson, getMessage, replayVersion, runPath } from "../lib/api.js";
import { h, notice } from "../lib/dom.js";
import { percent, signed } from "../lib/format.js";
import { drawFrame, frameCanvas, outlineTokens } from "../lib/frames.js";
import { meter } from "../lib/meter.js";
import { evaluationImages } from "./evaluation_images.js";

export function dreamPanel(state) {
  const dream = dreamSection(state);
  const images = evaluationImages(state, "dream.png", "Real frames above, imagined frames below");
  return {
    element: h("div", {}, dream.element, h("h2", {}, "Evaluations"), images.element),
    draw() {
      dream.draw();
      images.draw();
    },
  };
}

function dreamSection(state) {
  const element = h("div", {});
  let version = null;
  let form = null;

  async function refresh() {
    try {
      const { episodes, problem } = await getJson(runPath(state.name, "episodes"));
      const usable = episodes.filter((episode) => episode.steps > 1);
      if (form) {
        form.setLastEpisode(Math.max(...usable.map((episode) => episode.number)));
      } else if (usable.length) {
        form = dreamForm(state, usable);
        element.replaceChildren(...form.elements);
      } else {
        element.replaceChildren(notice("The replay has no episodes yet.", problem ?? "Each epoch adds its episodes when it ends."));
      }
    } catch (error) {
      version = null;
      if (!form) element.replaceChildren(notice(error.message, error.hint));
    }
  }

  return {
    element,
    draw() {
      if (!state.details || replayVersion(state.details) === version) return;
      version = replayVersion(state.details);
      if (state.details.checkpoints.length || form) refresh();
      else element.replaceChildren(notice("No dream: this run has no checkpoint yet.", "Training writes the first checkpoint when it starts. Episodes can be viewed without one."));
    },
  };
}

function dreamForm(state, episodes) {
  const field = (label, attributes) => {
    const input = h("input", { type: "number", ...attributes });
    return { input, element: h("label", { class: "field" }, label, input) };
  };
  // The last finished episode.
  const last = episodes.find((episode) => episode.outcome !== "running") ?? episodes[0];
  const episode = field("Episode", { min: 0, max: Math.max(...episodes.map((e) => e.number)), value: last.number });
  const step = field("From step", { min: 0, value: 0 });
  const length = field("Frames", { min: 2, max: 64, value: Math.min(16, Math.max(2, last.steps)) });
  const temperature = field("Temperature", { min: 0, max: 4, step: 0.1, value: 1 });
  const seed = field("Seed", { min: 0, value: 0 });
  const result = h("div", {});

  async function submit(event) {
    event?.preventDefault();
    result.setAttribute("aria-busy", "true");
    const query = new URLSearchParams({
      episode: episode.input.value, step: step.input.value, length: length.input.value,
      temperature: temperature.input.value, seed: seed.input.value,
    });
    try {
      const { header, payload } = await getMessage(`${runPath(state.name, "dream")}?${query}`);
      result.replaceChildren(...filmstrip(header, payload));
    } catch (error) {
      result.replaceChildren(notice(error.message, error.hint));
    }
    result.removeAttribute("aria-busy");
  }
  submit();
  const elements = [
    h("h2", {}, "Real and imagined frames"),
    h("p", { class: "muted" }, "The world model sees the first frames of a replay segment, then only the actions. Real frames are above, imagined frames below; squares mark tokens that differ. Each step shows the action, token accuracy, real / predicted reward with the probabilities of −1 (orange), 0 and +1 (blue), and the probability of termination."),
    h("form", { class: "row fields", onsubmit: submit },
      episode.element, step.element, length.element, temperature.element, seed.element,
      h("button", { type: "submit" }, "Dream")),
    result,
  ];
  return { elements, setLastEpisode: (number) => (episode.input.max = number) };
}

function filmstrip(header, payload) {
  const imagined = header.steps.filter((step) => !step.context);
  const accuracy = imagined.reduce((sum, step) => sum + step.accuracy, 0) / (imagined.length || 1);
  return [
    h("p", {}, imagined.length
      ? `Token accuracy ${percent(accuracy)} over ${imagined.length} imagined frames (agent of epoch ${header.epoch}).`
      : "No imagined frames: the segment is not longer than the context."),
    h("div", { class: "scroll" }, h("ol", { class: "filmstrip" }, header.steps.map((step, i) => column(header, step, payload, i)))),
  ];
}

function column(header, step, payload, i) {
  const label = (kind) => `${kind} frame, step ${step.step}`;
  const [real, imagined] = [frameCanvas(header.frame_size, label("real")), frameCanvas(header.frame_size, label("imagined"))];
  drawFrame(real, payload, 2 * i);
  drawFrame(imagined, payload, 2 * i + 1);
  const overlay = h("canvas", { class: "overlay", "aria-hidden": "true" });
  outlineTokens(overlay, header.grid, step.mismatches, "#ff9d3b");
  const beyond = i >= header.horizon;
  return h("li", { class: beyond ? "beyond" : null },
    h("span", { class: "muted" }, `step ${step.step}`),
    h("span", { class: "muted" }, step.context ? "context" : beyond ? "beyond horizon" : "imagined"),
    real, h("div", { class: "layers" }, imagined, overlay),
    step.context ? null : [
      h("span", {}, header.actions[step.action]),
      h("span", {}, `accuracy ${percent(step.accuracy)}`),
      meter("token accuracy", step.accuracy),
      h("span", {}, `reward ${signed(step.reward)} / ${signed(step.predicted_reward)}`),
      step.reward_probabilities.length ? rewardBar(step.reward_probabilities) : null,
      h("span", {}, `P(end) ${percent(step.termination_probability)}${step.terminated ? " · ended" : ""}`),
    ]);
}

/** The probabilities of the reward's signs as a stacked bar. */
function rewardBar(probabilities) {
  const text = `P(−1) ${percent(probabilities[0])}, P(0) ${percent(probabilities[1])}, P(+1) ${percent(probabilities[2])}`;
  const parts = [1, 6, 0].map((style, i) => {
    const part = h("span", { class: `fill series-${style}` });
    part.style.flexGrow = probabilities[i];
    return part;
  });
  return h("span", { class: "stacked-bar thin", role: "img", title: text, "aria-label": `predicted reward: ${text}` }, parts);
}
