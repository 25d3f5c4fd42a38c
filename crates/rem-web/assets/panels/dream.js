// Dreams along replay episodes: imagined next to real frames.

import { getJson, getMessage, replayVersion, runPath } from "../lib/api.js";
import { h, notice } from "../lib/dom.js";
import { percent, signed, words } from "../lib/format.js";
import { filmstrip, panel } from "../lib/filmstrip.js";
import { drawFrame, frameCanvas, outlineTokens } from "../lib/frames.js";
import { meter } from "../lib/meter.js";
import { frameOf } from "../lib/sheet.js";
import { evaluationImages } from "./evaluation_images.js";

export function dreamPanel(state) {
  const dream = dreamSection(state);
  const images = evaluationImages(state, "dream.png", "Real frames above, imagined frames below", evaluationStrip);
  const text = "A part of the first episode of each evaluation, up to its last reward or end. The world model sees the context, then only the actions. Rewards are real/imagined.";
  return {
    element: h("div", {}, dream.element, h("h2", {}, "Evaluations"), h("p", { class: "muted" }, text), images.element),
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
      result.replaceChildren(...dreamStrip(header, payload));
    } catch (error) {
      result.replaceChildren(notice(error.message, error.hint));
    }
    result.removeAttribute("aria-busy");
  }
  submit();
  const elements = [
    h("h2", {}, "Real and imagined frames"),
    h("p", { class: "muted" }, "The world model sees the first frames of a replay segment, then only the actions. Squares mark tokens that differ. Bars show the token accuracy and the predicted probabilities of the rewards −1 (orange), 0 and +1 (blue). The end of an episode has a column of its own: the replay holds its last reward, but no frame after it."),
    h("form", { class: "row fields", onsubmit: submit },
      episode.element, step.element, length.element, temperature.element, seed.element,
      h("button", { type: "submit" }, "Dream")),
    result,
  ];
  return { elements, setLastEpisode: (number) => (episode.input.max = number) };
}

/** A dream along a replay segment. */
function dreamStrip(header, payload) {
  const imagined = header.steps.filter((step) => !step.context && step.tokens);
  const accuracy = imagined.reduce((sum, step) => sum + step.tokens.accuracy, 0) / (imagined.length || 1);
  return [
    h("p", {}, imagined.length
      ? `Token accuracy ${percent(accuracy)} over ${imagined.length} imagined frames (agent of epoch ${header.epoch}).`
      : "No imagined frames: the segment is not longer than the context."),
    filmstrip(["reality", "dream"], header.steps.map((step, i) => (step.tokens ? frameColumn(header, step, payload, i) : endColumn(header, step)))),
  ];
}

function frameColumn(header, step, payload, i) {
  const label = (kind) => `${kind} frame, step ${step.step}`;
  const [real, imagined] = [frameCanvas(header.frame_size, label("real")), frameCanvas(header.frame_size, label("imagined"))];
  drawFrame(real, payload, 2 * i);
  drawFrame(imagined, payload, 2 * i + 1);
  const overlay = h("canvas", { class: "overlay", "aria-hidden": "true" });
  outlineTokens(overlay, header.grid, step.tokens.mismatches, "#ff9d3b");
  const beyond = i >= header.horizon;
  return {
    class: beyond ? "beyond" : null,
    head: [`step ${step.step}`, step.context ? "context" : beyond ? "beyond horizon" : "imagined"],
    frames: [real, h("div", { class: "layers" }, imagined, overlay)],
    below: step.context ? [] : [
      h("span", {}, words(header.actions[step.action])),
      h("span", {}, `accuracy ${percent(step.tokens.accuracy)}`),
      meter("token accuracy", step.tokens.accuracy),
      ...rewards(step),
      h("span", {}, `P(end) ${percent(step.termination_probability)}`),
    ],
  };
}

/** The transition that ends an episode: a reward and a termination, but no frame. */
function endColumn(header, step) {
  const probability = step.termination_probability;
  return {
    class: "end",
    head: [`step ${step.step}`, "episode end"],
    frames: [
      panel(h("strong", {}, step.outcome), h("span", {}, `reward ${signed(step.reward)}`)),
      panel(h("strong", {}, `P(end) ${percent(probability)}`), h("span", {}, `reward ${signed(step.predicted_reward)}`)),
    ],
    below: [h("span", {}, words(header.actions[step.action])), ...rewards(step)],
  };
}

/** Real and predicted reward. */
function rewards(step) {
  return [
    h("span", {}, `reward ${signed(step.reward)} / ${signed(step.predicted_reward)}`),
    step.reward_probabilities.length ? rewardBar(step.reward_probabilities) : null,
  ];
}

/** A dream along an evaluation episode. */
function evaluationStrip(sheet, image) {
  return filmstrip(sheet.rows, sheet.columns.map(({ caption }, i) => ({
    head: [caption[0]],
    frames: sheet.rows.map((_, row) => frameOf(sheet, image, i, row) ?? panel(h("strong", {}, "end"))),
    below: caption.slice(1).map((field) => h("span", {}, words(field))),
  })));
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
