// The play view: a human or the agent, in the real game or in a dream.

import { getJson, runPath } from "../lib/api.js";
import { h, notice, slider } from "../lib/dom.js";
import { number, percent, signed, words } from "../lib/format.js";
import { drawFrame, frameCanvas } from "../lib/frames.js";
import { policyBars } from "../lib/meter.js";
import { keyOf } from "../play/actions.js";
import { branchTree } from "../play/branch_tree.js";
import { Connection } from "../play/connection.js";
import { episodeTally } from "../play/episode_tally.js";
import { HeldKeys } from "../play/keyboard.js";
import { startForm } from "../play/start_form.js";
import { Timeline } from "../play/timeline.js";
import { tokenLens } from "../play/token_lens.js";

/** How long the end of an episode is shown before the next one starts, while running. */
const END_MS = 1000;

const INTRO = {
  dream: "You act inside the world model: it imagines every frame from the frames before and your action. Each key or button press is one step; Run plays on.",
  real: "You act in the real game. Each key or button press is one step; Run plays on.",
};

export async function playView(run) {
  const details = await getJson(runPath(run));
  // Without a readable replay a session can still start from a reset.
  const { episodes } = await getJson(runPath(run, "episodes")).catch(() => ({ episodes: [] }));
  const session = new PlaySession(run, details, episodes);
  return {
    title: `Play ${run}`,
    breadcrumbs: [[run, `#/run/${encodeURIComponent(run)}`], ["Play", null]],
    element: session.element,
    close: () => session.close(),
  };
}

class PlaySession {
  constructor(run, details, episodes) {
    this.run = run;
    this.details = details;
    this.actions = [];
    this.episodes = episodes;
    this.connection = new Connection(run);
    this.heldKeys = new HeldKeys(this.actions);
    this.timeline = new Timeline();
    this.settings = { world: "dream", player: "human", temperature: 1, fps: 8 };
    this.running = false;
    /** Whether the last step ended an episode: the next action starts another one. */
    this.ended = false;
    this.loops = 0;
    this.usesPointer = false;
    this.pending = 0;
    this.last = Promise.resolve();
    this.recordFrom = null;
    this.build();
    this.listeners = new AbortController();
    const on = (type, handler) => addEventListener(type, handler, { signal: this.listeners.signal });
    on("keydown", (event) => this.keyDown(event));
    on("pointerdown", () => (this.usesPointer = true));
    on("keyup", (event) => this.heldKeys.release(event.key));
    on("blur", () => this.heldKeys.down.clear());
    this.start();
  }

  build() {
    this.canvas = frameCanvas(1, "frame");
    this.lens = tokenLens({
      query: (position) => this.connection.send({ type: "token", position }),
      running: () => this.running,
      frameSize: () => this.canvas.width,
    });
    this.startForm = startForm(this.episodes, () => this.start());
    this.pad = h("div", { class: "pad", role: "group", "aria-label": "Actions" });
    this.status = h("p", { class: "status", role: "status" });
    this.errors = h("div", {});
    this.memory = h("p", { class: "memory" });
    this.value = h("p", { class: "muted" });
    this.policy = h("ul", { class: "policy", "aria-label": "Policy" });
    this.predictions = h("dl", { class: "facts" });
    this.branches = branchTree({ goto: (id) => this.goto(id), selectBranch: (tip) => this.selectBranch(tip) });
    this.tally = episodeTally();
    this.intro = h("p", { class: "muted intro" });
    this.runButton = this.button("▶ Run", "P", () => this.toggle());
    this.recordButton = this.button("● Record", "R", () => this.record());
    this.stepSlider = slider({
      label: "Step", min: 0, max: 0, value: 0, text: (i) => this.stepText(i),
      onchange: (i) => this.goto(this.timeline.branch[i]?.id),
    });
    const temperature = slider({
      label: "Temperature", min: 0, max: 2, step: 0.1, value: 1, text: (t) => (t ? t.toFixed(1) : "0 (greedy)"),
      onchange: (t) => (this.settings.temperature = t),
    });
    const speed = slider({
      label: "Speed", min: 1, max: 30, value: this.settings.fps, text: (fps) => `${fps} steps/s`,
      onchange: (fps) => (this.settings.fps = fps),
    });
    // After a click, arrows and Space are action keys again; keyboard users keep the focus.
    const releaseFocus = (event) => this.usesPointer && event.target.closest("button, input[type=radio]")?.blur();
    this.element = h("section", { class: "play", onclick: releaseFocus },
      h("h1", {}, `Play ${this.details.game ?? this.run}`),
      this.intro,
      this.errors,
      h("div", { class: "stage" },
        h("div", { class: "left" },
          h("div", { class: "layers big" }, this.canvas, this.lens.overlay),
          this.status, this.tally.element, this.memory,
          h("div", { class: "row transport" },
            this.button("◀ Back", "B", () => this.back()), this.runButton, this.button("Step ▶", "N", () => this.stepOnce())),
          this.stepSlider.element,
          this.pad),
        h("div", { class: "right" },
          this.choices(), this.startForm.element,
          h("details", { open: true }, h("summary", {}, "Policy and value"), this.value, this.policy, this.predictions),
          h("details", { open: true }, h("summary", {}, "Branches"),
            h("p", { class: "muted" }, "Go back and take another action to branch off. All branches of an episode are kept; squares are ends."), this.branches.element),
          h("details", { open: true }, h("summary", {}, "Tokens"), this.lens.element),
          h("details", { open: true }, h("summary", {}, "Dream"), temperature.element, speed.element,
            h("div", { class: "row" }, this.button("Reset memory", "F", () => this.dream()))),
          h("details", { open: true }, h("summary", {}, "Recording"),
            h("div", { class: "row" }, this.recordButton,
              this.button("Save GIF", "G", () => this.save("gif")), this.button("Save episode", "E", () => this.save("npz"))),
            h("p", { class: "muted" }, "Episodes are .npz files, for `rem episodes FILE` or NumPy.")),
          keysHelp())));
  }

  button(text, key, onclick) {
    return h("button", { type: "button", "aria-keyshortcuts": key, onclick }, text, " ", h("kbd", {}, key));
  }

  /** Player and world. */
  choices() {
    const group = (title, name, options) => h("fieldset", {}, h("legend", {}, title), options.map(([value, text]) => h("label", {},
      h("input", {
        type: "radio", name, value, checked: this.settings[name] === value,
        onchange: () => this.choose(name, value),
      }), text)));
    return h("div", { class: "row choices" },
      group("Player", "player", [["human", "Human"], ["agent", "Agent"]]),
      group("World", "world", [["real", "Real game"], ["dream", "Dream"]]));
  }

  choose(name, value) {
    this.settings[name] = value;
    if (name !== "world") return;
    // A dream can continue from the real game, but not the other way round.
    const { current } = this.timeline;
    if (value === "dream" && current?.world === "real" && current.resumable && !current.over) {
      this.dream();
      return;
    }
    if (value === "real") this.startForm.selectReset();
    this.start();
  }

  setActions(names) {
    if (names.join() === this.actions.join()) return;
    this.actions = names;
    this.heldKeys.actions = names;
    this.pad.replaceChildren(...names.map((name, action) => this.padButton(name, action)));
  }

  /** An action button for touch and mouse. */
  padButton(name, action) {
    return h("button", {
      type: "button",
      onpointerdown: (event) => {
        event.target.setPointerCapture(event.pointerId);
        this.padAction = action;
        if (!this.running) this.act(action);
      },
      onpointerup: () => (this.padAction = null),
      onpointercancel: () => (this.padAction = null),
      // Keyboard only: pointers are handled above.
      onclick: (event) => event.detail === 0 && this.act(action),
    }, words(name), keyOf(name) ? h("kbd", {}, keyOf(name)) : null);
  }

  keyDown(event) {
    this.usesPointer = false;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest?.("input:not([type=radio]):not([type=checkbox]):not([type=range]), select, textarea");
    if (typing) return;
    // Sliders and radio buttons keep the arrow keys.
    const keepsArrows = event.target.matches?.("input[type=range], input[type=radio]") && event.key.startsWith("Arrow");
    if (keepsArrows) return;
    if (event.key === "i" || event.key === "I") return this.lens.toggle();
    if (this.lens.active && this.lens.handleKey(event)) return event.preventDefault();
    const onButton = event.target.closest?.("button, a, summary, input:not([type=range])");
    if (onButton && (event.key === " " || event.key === "Enter")) return;
    const shortcut = {
      p: () => this.toggle(), n: () => this.stepOnce(), b: () => this.back(), f: () => this.dream(),
      r: () => this.record(), g: () => this.save("gif"), e: () => this.save("npz"),
    }[event.key.toLowerCase()];
    if (shortcut) {
      event.preventDefault();
      if (!event.repeat) shortcut();
    } else if (this.heldKeys.press(event.key)) {
      event.preventDefault();
      // While paused, a key takes one step. Key repeat waits for the response.
      if (this.running || (event.repeat && (this.pending || this.ended))) return;
      this.act(this.heldKeys.action());
    }
  }

  /** Sends a command and shows the resulting state or error. Commands are sent one after the other. */
  async send(command) {
    const before = this.last;
    let done;
    this.last = new Promise((resolve) => (done = resolve));
    this.pending++;
    await before;
    if (command.type === "start") {
      // Only now: earlier responses refer to the old timeline.
      this.timeline = new Timeline();
      this.setRecording(null);
    }
    try {
      const response = await this.connection.send(command);
      this.errors.replaceChildren();
      if (response.header.type === "state") {
        this.ended = command.type === "step" && response.header.over;
        this.show(response);
        if (this.ended) this.tally.add(this.timeline, response.header);
      }
      return response;
    } catch (error) {
      this.pause();
      this.errors.replaceChildren(notice(error.message, error.hint));
      if (this.timeline.current) this.setWorld(this.timeline.current.world);
      return null;
    } finally {
      this.pending--;
      done();
    }
  }

  start() {
    this.pause();
    const from = this.startForm.value();
    // The replay has no environment state: only a dream can start there.
    if (from.episode) this.setWorld("dream");
    return this.send({ type: "start", from, world: this.settings.world });
  }

  /** Starts another episode: of the environment, with the next seed. */
  nextEpisode() {
    this.startForm.nextSeed();
    return this.send({ type: "start", from: this.startForm.value(), world: this.settings.world });
  }

  /** Takes a step, or starts another episode after an end. */
  act(action) {
    this.pause();
    return this.ended ? this.nextEpisode() : this.step(action);
  }

  setWorld(world) {
    this.settings.world = world;
    this.intro.textContent = INTRO[world];
    for (const input of this.element.querySelectorAll("input[name=world]")) input.checked = input.value === world;
  }

  /** Starts a dream at the current step, or resets the memory of the current dream. */
  dream() {
    return this.send({ type: "dream" });
  }

  /** Pauses and takes one step of the player. A dream continues after a predicted end. */
  stepOnce() {
    this.pause();
    return this.ended && this.timeline.current.world === "real" ? this.nextEpisode() : this.step();
  }

  step(action) {
    const human = action ?? this.padAction ?? this.heldKeys.action();
    const sampled = this.settings.player === "agent" && action === undefined;
    return this.send({ type: "step", action: sampled ? null : human, temperature: this.settings.temperature });
  }

  back() {
    this.pause();
    return this.goto(this.timeline.current?.parent);
  }

  goto(node) {
    if (node === undefined || node === null) return null;
    this.pause();
    return this.send({ type: "goto", node });
  }

  toggle() {
    if (this.running) this.pause();
    else this.runLoop();
  }

  async runLoop() {
    // A paused loop may still wait for its next step. It must not run concurrently with this one.
    const loop = ++this.loops;
    this.running = true;
    this.runButton.firstChild.textContent = "❚❚ Pause";
    let next = performance.now();
    while (this.running && loop === this.loops) {
      next = Math.max(next + 1000 / this.settings.fps, performance.now());
      const response = await (this.ended ? this.nextEpisode() : this.step());
      if (loop !== this.loops) return;
      // Another episode would drop a recording.
      if (!response || (this.ended && this.recordFrom !== null)) this.pause();
      if (this.ended) next = Math.max(next, performance.now() + END_MS);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
    }
  }

  pause() {
    this.running = false;
    this.runButton.firstChild.textContent = "▶ Run";
  }

  record() {
    this.setRecording(this.recordFrom === null ? this.timeline.current : null);
  }

  setRecording(node) {
    this.recordFrom = node?.id ?? null;
    this.recordButton.classList.toggle("recording", this.recordFrom !== null);
    this.recordButton.firstChild.textContent = node ? `■ Recording from step ${node.step}` : "● Record";
  }

  async save(format) {
    this.pause();
    const response = await this.send({ type: "save", format, from: this.recordFrom, frame_ms: Math.round(1000 / this.settings.fps) });
    if (!response) return;
    const { header, payload } = response;
    const type = format === "gif" ? "image/gif" : "application/octet-stream";
    const address = URL.createObjectURL(new Blob([payload], { type }));
    h("a", { href: address, download: header.name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    this.status.textContent = `Saved ${header.name}: ${header.steps} steps, ${number(payload.length / 1024)} KiB.`;
  }

  stepText(i) {
    const node = this.timeline.branch[i];
    return node ? `${node.step} of ${this.timeline.branch.at(-1).step}` : "";
  }

  show({ header: node, payload }) {
    this.timeline.update(node);
    this.setActions(node.actions);
    this.setWorld(node.world);
    if (this.canvas.width !== node.frame_size) this.canvas.width = this.canvas.height = node.frame_size;
    drawFrame(this.canvas, payload);
    const world = node.world === "dream" ? "Dream" : "Real game";
    this.canvas.setAttribute("aria-label", `${world}, step ${node.step}`);
    this.element.dataset.world = node.world;
    const action = node.action === null ? "" : ` · ${words(this.actions[node.action] ?? "")}`;
    this.status.replaceChildren(
      h("strong", {}, world), ` · step ${node.step}${action} · reward ${signed(node.reward)} · return ${number(node.return)}`,
      node.over ? h("strong", { class: "over" }, node.world === "dream" ? " · predicted end" : " · episode over") : "",
      this.ended && !this.running ? " · the next action starts another episode" : "");
    this.showMemory(node);
    this.showPredictions(node);
    this.stepSlider.set(this.timeline.indexOf(node), { max: this.timeline.branch.length - 1 });
    this.branches.show(this.timeline, this.actions);
    this.lens.show(node);
  }

  selectBranch(tip) {
    this.timeline.selectBranch(tip);
    return this.goto(tip.id);
  }

  showMemory({ memory, horizon }) {
    const beyond = memory !== null && memory > horizon;
    this.memory.className = beyond ? "memory beyond" : "memory";
    this.memory.textContent = memory === null ? ""
      : `Memory: ${memory} frames, training horizon ${horizon}${beyond ? ". Press F to reset the memory." : ""}`;
  }

  showPredictions(node) {
    this.value.textContent = node.value === null ? "No saved state: the session cannot continue from this step." : `Value ${number(node.value)}`;
    this.policy.replaceChildren(...policyBars(this.actions, node.policy, null));
    const rewards = node.reward_probabilities;
    const facts = node.termination_probability === null ? [] : [
      ...(rewards.length ? [["Predicted reward", `−1 ${percent(rewards[0])} · 0 ${percent(rewards[1])} · +1 ${percent(rewards[2])}`]] : []),
      ["Predicted end", percent(node.termination_probability)],
    ];
    this.predictions.replaceChildren(...facts.flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]));
  }

  close() {
    this.pause();
    this.listeners.abort();
    this.connection.close();
  }
}

function keysHelp() {
  const keys = [["Arrows, WASD, Space", "act; one step while paused; another episode after an end"], ["P", "run or pause"], ["N", "one step"], ["B", "one step back"],
    ["F", "start a dream here, or reset its memory"], ["I", "inspect tokens with the arrow keys"], ["R", "start or stop recording"], ["G E", "save GIF, episode"]];
  return h("details", {}, h("summary", {}, "Keyboard shortcuts"), h("dl", { class: "facts" }, keys.map(([key, effect]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, effect)])));
}
