// The console: you or the agent, in the real game or in the dream.

import { json, of } from "./api.js";
import { Line } from "./console.js";
import { h, notice, slider } from "./dom.js";
import { bars, startForm } from "./episodes.js";
import { number, percent, signed, words } from "./format.js";
import { Held } from "./keys.js";
import { Moments } from "./moments.js";
import { paint, screen } from "./pictures.js";
import { tokenLens } from "./tokens.js";

export async function playView(run) {
  const details = await json(of(run));
  // A replay that cannot be listed keeps nobody from a new game.
  const { episodes } = await json(of(run, "episodes")).catch(() => ({ episodes: [] }));
  const console = new Console(run, details, episodes);
  return {
    title: `Play ${run}`,
    where: [[run, `#/run/${encodeURIComponent(run)}`], ["Play", null]],
    element: console.element,
    close: () => console.close(),
  };
}

class Console {
  constructor(run, details, episodes) {
    this.run = run;
    this.details = details;
    this.actions = [];
    this.episodes = episodes;
    this.line = new Line(run);
    this.held = new Held(this.actions);
    this.moments = new Moments();
    this.settings = { world: "dream", pilot: "you", temperature: 1, fps: 8 };
    this.running = false;
    this.runs = 0;
    this.byPointer = false;
    this.asked = 0;
    this.last = Promise.resolve();
    this.recordFrom = null;
    this.build();
    this.listeners = new AbortController();
    const on = (type, act) => addEventListener(type, act, { signal: this.listeners.signal });
    on("keydown", (event) => this.keyDown(event));
    on("pointerdown", () => (this.byPointer = true));
    on("keyup", (event) => this.held.release(event.key));
    on("blur", () => this.held.down.clear());
    this.start();
  }

  build() {
    this.canvas = screen(1, "the game");
    this.lens = tokenLens({
      ask: (place) => this.line.ask({ do: "token", place }),
      running: () => this.running,
      size: () => this.canvas.width,
    });
    this.from = startForm(this.episodes, () => this.start());
    this.pad = h("div", { class: "pad", role: "group", "aria-label": "Actions" });
    this.status = h("p", { class: "status", role: "status" });
    this.trouble = h("div", {});
    this.horizon = h("p", { class: "horizon" });
    this.policy = h("ul", { class: "policy", "aria-label": "What the agent would do" });
    this.odds = h("dl", { class: "facts" });
    this.branches = h("ul", { class: "branches", "aria-label": "Branches" });
    this.runButton = this.button("▶ Run", "P", () => this.toggle());
    this.recordButton = this.button("● Record from here", "R", () => this.record());
    this.scrub = slider({
      label: "Step", min: 0, max: 0, value: 0, text: (i) => this.stepText(i),
      onchange: (i) => this.goTo(this.moments.branch[i]?.id),
    });
    const temperature = slider({
      label: "Dream's temperature", min: 0, max: 2, step: 0.1, value: 1, text: (t) => (t ? t.toFixed(1) : "0, the likeliest"),
      onchange: (t) => (this.settings.temperature = t),
    });
    const speed = slider({
      label: "Speed", min: 1, max: 30, value: this.settings.fps, text: (fps) => `${fps} steps a second`,
      onchange: (fps) => (this.settings.fps = fps),
    });
    // After a click the arrows and Space steer again; who chose by keyboard goes on choosing.
    const letGo = (event) => this.byPointer && event.target.closest("button, input[type=radio]")?.blur();
    this.element = h("section", { class: "console", onclick: letGo },
      h("h1", {}, `Play ${this.details.game ?? this.run}`),
      this.trouble,
      h("div", { class: "stage" },
        h("div", { class: "left" },
          h("div", { class: "layers big" }, this.canvas, this.lens.layer),
          this.status, this.horizon,
          h("div", { class: "row transport" },
            this.button("◀ Back", "B", () => this.back()), this.runButton, this.button("Step ▶", "N", () => this.step(true))),
          this.scrub.element,
          this.pad),
        h("div", { class: "right" },
          this.choices(), this.from.element,
          h("details", { open: true }, h("summary", {}, "The agent's mind"), h("p", { class: "quiet", id: "value" }), this.policy, this.odds),
          h("details", { open: true }, h("summary", {}, "Tokens"), this.lens.element),
          h("details", { open: true }, h("summary", {}, "Dream and speed"), temperature.element, speed.element,
            h("div", { class: "row" },
              this.button("Forget all but the last frames", "F", () => this.dream()))),
          h("details", { open: true }, h("summary", {}, "Branches"),
            h("p", { class: "quiet" }, "Go back some steps and take another action: what was is kept here."), this.branches),
          h("details", { open: true }, h("summary", {}, "Record"),
            h("div", { class: "row" }, this.recordButton,
              this.button("Save GIF", "G", () => this.save("gif")), this.button("Save episode", "E", () => this.save("npz"))),
            h("p", { class: "quiet" }, "An episode file is an .npz: `rem episodes FILE` reads it, and so does NumPy.")),
          keysHelp())));
  }

  button(text, key, act) {
    return h("button", { type: "button", "aria-keyshortcuts": key, onclick: act }, text, " ", h("kbd", {}, key));
  }

  /** Who plays, and where. */
  choices() {
    const group = (title, name, options) => h("fieldset", {}, h("legend", {}, title), options.map(([value, text]) => h("label", {},
      h("input", {
        type: "radio", name, value, checked: this.settings[name] === value,
        onchange: () => this.choose(name, value),
      }), text)));
    return h("div", { class: "row choices" },
      group("Who plays", "pilot", [["you", "You"], ["agent", "The agent"]]),
      group("Where", "world", [["real", "The real game"], ["dream", "The dream"]]));
  }

  choose(name, value) {
    this.settings[name] = value;
    if (name !== "world") return;
    // A real game can be dreamt on; a dream has no real game to go back to.
    const now = this.moments.now;
    if (value === "dream" && now?.world === "real" && now.live && !now.over) {
      this.dream();
      return;
    }
    if (value === "real") this.from.newGame();
    this.start();
  }

  /** What the actions are called. */
  name(names) {
    if (names.join() === this.actions.join()) return;
    this.actions = names;
    this.held.actions = names;
    this.pad.replaceChildren(...names.map((name, action) => this.padButton(name, action)));
  }

  /** An action for fingers and mice. */
  padButton(name, action) {
    return h("button", {
      type: "button",
      onpointerdown: (event) => {
        event.target.setPointerCapture(event.pointerId);
        this.fingers = action;
        if (!this.running) this.step(true, action);
      },
      onpointerup: () => (this.fingers = null),
      onpointercancel: () => (this.fingers = null),
      // By keyboard: pointers were seen above already.
      onclick: (event) => event.detail === 0 && this.step(true, action),
    }, words(name));
  }

  keyDown(event) {
    this.byPointer = false;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest?.("input:not([type=radio]):not([type=checkbox]):not([type=range]), select, textarea");
    if (typing) return;
    // Sliders and radio buttons keep the arrows.
    const moved = event.target.matches?.("input[type=range], input[type=radio]") && event.key.startsWith("Arrow");
    if (moved) return;
    if (event.key === "i" || event.key === "I") return this.lens.toggle();
    if (this.lens.on && this.lens.key(event)) return event.preventDefault();
    const onButton = event.target.closest?.("button, a, summary, input:not([type=range])");
    if (onButton && (event.key === " " || event.key === "Enter")) return;
    const act = {
      p: () => this.toggle(), n: () => this.step(true), b: () => this.back(), f: () => this.dream(),
      r: () => this.record(), g: () => this.save("gif"), e: () => this.save("npz"),
    }[event.key.toLowerCase()];
    if (act) {
      event.preventDefault();
      if (!event.repeat) act();
    } else if (this.held.press(event.key)) {
      event.preventDefault();
      // While nothing runs, a key is one step; one that is held down does not hurry ahead of the answers.
      if (!this.running && !(event.repeat && this.asked)) this.step(true, this.held.action());
    }
  }

  /** Asks, shows the moment that comes back, and says what went wrong. */
  async ask(command) {
    // One after the other, in the order in which they were asked.
    const before = this.last;
    let done;
    this.last = new Promise((resolve) => (done = resolve));
    this.asked++;
    await before;
    if (command.do === "start") {
      // Not sooner: answers about the moments before it were still to come.
      this.moments = new Moments();
      this.recordSince(null);
    }
    try {
      const answer = await this.line.ask(command);
      this.trouble.replaceChildren();
      if (answer.about.is === "moment") this.show(answer);
      return answer;
    } catch (error) {
      this.pause();
      this.trouble.replaceChildren(notice(error.message, error.hint));
      if (this.moments.now) this.setWorld(this.moments.now.world);
      return null;
    } finally {
      this.asked--;
      done();
    }
  }

  start() {
    this.pause();
    const place = this.from.place();
    // A step of the replay is a memory: only a dream can go on from it.
    if (place.episode) this.setWorld("dream");
    return this.ask({ do: "start", place, world: this.settings.world });
  }

  setWorld(world) {
    this.settings.world = world;
    for (const input of this.element.querySelectorAll("input[name=world]")) input.checked = input.value === world;
  }

  dream() {
    return this.ask({ do: "dream" });
  }

  /** One step; `alone` if it is not one of a run. */
  async step(alone, action) {
    if (alone) this.pause();
    const mine = action ?? this.fingers ?? this.held.action();
    const chosen = this.settings.pilot === "agent" && action === undefined ? null : mine;
    return this.ask({ do: "step", action: chosen, temperature: this.settings.temperature });
  }

  back() {
    this.pause();
    return this.goTo(this.moments.now?.parent);
  }

  goTo(moment) {
    if (moment === undefined || moment === null) return null;
    this.pause();
    return this.ask({ do: "go", moment });
  }

  toggle() {
    if (this.running) this.pause();
    else this.runOn();
  }

  async runOn() {
    // A run that was paused may still wait for its next step: it must not come to life again beside this one.
    const run = ++this.runs;
    this.running = true;
    this.runButton.firstChild.textContent = "❚❚ Pause";
    let next = performance.now();
    while (this.running && run === this.runs) {
      next = Math.max(next + 1000 / this.settings.fps, performance.now());
      const answer = await this.step(false);
      if (run !== this.runs) return;
      if (!answer || answer.about.over) this.pause();
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
    }
  }

  pause() {
    this.running = false;
    this.runButton.firstChild.textContent = "▶ Run";
  }

  record() {
    this.recordSince(this.recordFrom === null ? this.moments.now : null);
  }

  recordSince(moment) {
    this.recordFrom = moment?.id ?? null;
    this.recordButton.classList.toggle("recording", this.recordFrom !== null);
    this.recordButton.firstChild.textContent = moment ? `■ Recording since step ${moment.step}` : "● Record from here";
  }

  async save(kind) {
    this.pause();
    const answer = await this.ask({ do: "save", kind, from: this.recordFrom, frame_ms: Math.round(1000 / this.settings.fps) });
    if (!answer) return;
    const type = kind === "gif" ? "image/gif" : "application/octet-stream";
    const address = URL.createObjectURL(new Blob([answer.bytes], { type }));
    h("a", { href: address, download: answer.about.name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    this.status.textContent = `Saved ${answer.about.name}: ${answer.about.steps} steps, ${number(answer.bytes.length / 1024)} KB.`;
  }

  stepText(i) {
    const moment = this.moments.branch[i];
    return moment ? `${moment.step} of ${this.moments.branch.at(-1).step}` : "";
  }

  show({ about, bytes }) {
    const moment = about;
    this.moments.take(moment);
    this.name(moment.actions);
    this.setWorld(moment.world);
    if (this.canvas.width !== moment.size) this.canvas.width = this.canvas.height = moment.size;
    paint(this.canvas, bytes);
    this.canvas.setAttribute("aria-label", `${moment.world === "dream" ? "dream" : "game"}, step ${moment.step}`);
    this.element.dataset.world = moment.world;
    const action = moment.action === null ? "" : ` · ${words(this.actions[moment.action] ?? "")}`;
    this.status.replaceChildren(
      h("strong", {}, moment.world === "dream" ? "Dream" : "Real game"), ` · step ${moment.step}${action} · reward ${signed(moment.reward)} · return ${number(moment.total)}`,
      moment.over ? h("strong", { class: "over" }, moment.world === "dream" ? " · the dream says: over" : " · game over") : "");
    this.showHorizon(moment);
    this.showMind(moment);
    this.scrub.set(this.moments.place(moment), { max: this.moments.branch.length - 1 });
    this.showBranches();
    this.lens.show(moment);
  }

  /** Buttons stay where they are while branches grow, so that no click is lost. */
  showBranches() {
    const { tips, branch } = this.moments;
    const list = this.branches;
    while (list.childElementCount > tips.length) list.lastChild.remove();
    while (list.childElementCount < tips.length) {
      const i = list.childElementCount;
      list.append(h("li", {}, h("button", { type: "button", onclick: () => this.lookAt(this.moments.tips[i]) })));
    }
    tips.forEach((tip, i) => {
      const button = list.children[i].firstChild;
      button.setAttribute("aria-pressed", String(tip.id === branch.at(-1).id));
      button.textContent = `${i + 1}: ${tip.world}, ${tip.step} steps, return ${number(tip.total)}`;
    });
  }

  lookAt(tip) {
    this.moments.look(tip);
    return this.goTo(tip.id);
  }

  showHorizon({ seen, horizon }) {
    const past = seen !== null && seen > horizon;
    this.horizon.className = past ? "horizon past" : "horizon";
    this.horizon.textContent = seen === null ? "" : past
      ? `${seen - horizon} frames past the ${horizon} that it was trained to remember: press F to let it forget all but the last ones`
      : `it remembers ${seen} of the ${horizon} frames that it was trained for`;
  }

  showMind(moment) {
    this.element.querySelector("#value").textContent = moment.value === null
      ? "This moment is only remembered: one cannot go on from it." : `It expects ${number(moment.value)} from here, and would do:`;
    this.policy.replaceChildren(...bars(this.actions, moment.policy, null));
    const rewards = moment.reward_odds;
    const facts = moment.end_odds === null ? [] : [
      ...(rewards.length ? [["reward", `−1 ${percent(rewards[0])} · 0 ${percent(rewards[1])} · +1 ${percent(rewards[2])}`]] : []),
      ["end", percent(moment.end_odds)],
    ];
    this.odds.replaceChildren(...facts.flatMap(([key, value]) => [h("dt", {}, `foresaw ${key}`), h("dd", {}, value)]));
  }

  close() {
    this.pause();
    this.listeners.abort();
    this.line.close();
  }
}

function keysHelp() {
  const keys = [["Arrows, WASD, Space", "act; one step while paused"], ["P", "run or pause"], ["N", "one step"], ["B", "one step back"],
    ["F", "dream on from here with a fresh memory"], ["I", "look at tokens; arrows move"], ["R", "record from here"], ["G E", "save GIF, episode"]];
  return h("details", {}, h("summary", {}, "Keys"), h("dl", { class: "facts" }, keys.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])));
}
