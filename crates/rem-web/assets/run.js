// One run: how it goes, and what its agent sees and dreams.

import { json, listen, of } from "./api.js";
import { chart } from "./chart.js";
import { codebookPanel } from "./codebook.js";
import { History, returns } from "./curves.js";
import { coalesced, h, notice, paced, slider } from "./dom.js";
import { dreamPanel } from "./dream.js";
import { episodesPanel } from "./episodes.js";
import { clock, duration, number, percent, words } from "./format.js";
import { badge } from "./runs.js";

const TABS = {
  overview: "Overview",
  losses: "Losses",
  eyes: "Eyes",
  dream: "Dream",
  episodes: "Episodes",
  settings: "Settings",
  log: "Log",
};

export function runView(name, firstTab) {
  const state = { name, history: new History(), details: null, progress: null, summary: null, trouble: null };
  const head = h("div", { class: "head" });
  const problems = h("div", {});
  const panel = h("div", { role: "tabpanel", id: "panel", tabindex: 0 });
  const tabs = h("div", { role: "tablist", "aria-label": "Parts of this run" });
  const element = h("section", {}, head, problems, tabs, panel);
  const made = new Map();
  let current = null;

  const address = (tab) => `#/run/${encodeURIComponent(name)}/${tab}`;
  for (const [tab, title] of Object.entries(TABS)) {
    tabs.append(h("a", { role: "tab", id: `tab-${tab}`, href: address(tab), "aria-controls": "panel" }, title));
  }
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = Object.keys(TABS);
    const next = all[(all.indexOf(current) + step + all.length) % all.length];
    // At once, not when the browser has noticed the new address: the next key may come before.
    open(next);
    location.hash = address(next);
    document.getElementById(`tab-${next}`).focus();
  });

  function open(tab) {
    if (current && tab === current) return;
    current = TABS[tab] ? tab : "overview";
    for (const link of tabs.children) {
      const selected = link.id === `tab-${current}`;
      link.setAttribute("aria-selected", String(selected));
      link.tabIndex = selected ? 0 : -1;
      // When it is on the page: the first tab is opened before.
      if (selected) requestAnimationFrame(() => link.scrollIntoView({ block: "nearest", inline: "nearest" }));
    }
    panel.setAttribute("aria-labelledby", `tab-${current}`);
    if (!made.has(current)) made.set(current, PANELS[current](state));
    panel.replaceChildren(made.get(current).element);
    draw();
  }

  const draw = coalesced(() => {
    head.replaceChildren(...heading(state));
    problems.replaceChildren(
      ...(state.trouble ? [notice(state.trouble.message, state.trouble.hint)] : []),
      ...(state.details?.problems ?? []).map((problem) => notice(problem, "Everything else is shown as far as it goes.")));
    made.get(current)?.draw?.();
  });

  // The training on the same machine needs the processor more than its picture does.
  const follow = paced(draw, 2000);

  async function refresh() {
    try {
      state.details = await json(of(name));
      state.summary = state.details;
      state.trouble = null;
    } catch (error) {
      state.trouble = error;
    }
    draw();
  }

  const stop = listen([name], {
    again() {
      state.history = new History();
      state.broken = null;
    },
    event(event) {
      if (event.is === "metrics") state.history.take(event);
      if (event.is === "progress") state.progress = { ...event.progress, at: Date.now() };
      if (event.is === "summary") {
        state.summary = event.summary;
        refresh();
      }
      follow();
    },
    broken(why) {
      state.broken = why;
      draw();
    },
  });
  refresh();
  open(firstTab);
  return {
    title: name,
    where: [[name, null]],
    element,
    turn([page, run, tab]) {
      const same = page === "run" && run !== undefined && decodeURIComponent(run) === name;
      if (same) open(tab);
      return same;
    },
    close() {
      stop();
      for (const { close } of made.values()) close?.();
    },
  };
}

/** Name, state, how far it is and when it will end. */
function heading({ name, summary, progress, broken }) {
  const facts = [];
  if (summary?.game) facts.push(summary.game);
  if (summary?.seed !== null && summary?.seed !== undefined) facts.push(`seed ${summary.seed}`);
  if (summary) facts.push(`epoch ${summary.epoch}${summary.epochs ? ` of ${summary.epochs}` : ""}`);
  if (progress?.seconds_left && summary?.state === "training") {
    const left = Math.max(0, progress.seconds_left - (Date.now() - progress.at) / 1000);
    facts.push(`about ${duration(left)} to go`, `ends ${clock(left)}`);
  }
  if (broken) facts.push(broken);
  return [
    h("div", { class: "row" },
      h("h1", {}, name), summary ? badge(summary.state) : null,
      h("a", { class: "button play", href: `#/play/${encodeURIComponent(name)}` }, "Play ▸")),
    h("p", { class: "quiet", id: "facts" }, facts.join(" · ")),
    summary?.epochs ? h("progress", { max: summary.epochs, value: summary.epoch, "aria-label": "Epochs done" }) : null,
  ].filter(Boolean);
}

const PANELS = {
  overview(state) {
    const curve = chart({ title: "Return", tall: true });
    const tiles = h("ul", { class: "tiles" });
    const phases = h("div", {});
    return {
      element: h("div", {}, curve.element, tiles, h("h2", {}, "Where the time goes"), phases),
      draw() {
        curve.show({ series: returns(state.history), references: state.details?.references ?? [] });
        tiles.replaceChildren(...numbers(state));
        phases.replaceChildren(...times(state.progress));
      },
    };
  },

  losses(state) {
    const charts = new Map();
    const sections = new Map();
    const empty = notice("Nothing has been learned yet.", "The first numbers come when the first phase of the first epoch is over.");
    const element = h("div", {}, empty);
    return {
      element,
      draw() {
        for (const phase of state.history.phases()) {
          if (!sections.has(phase)) {
            const grid = h("div", { class: "charts" });
            sections.set(phase, grid);
            element.append(h("h2", {}, words(phase)), grid);
          }
          for (const key of state.history.keys(phase)) {
            const id = `${phase}/${key}`;
            if (!charts.has(id)) {
              charts.set(id, chart({ title: words(key) }));
              sections.get(phase).append(charts.get(id).element);
            }
            charts.get(id).show({ series: [{ name: words(key), look: 0, points: state.history.points(phase, key) }] });
          }
        }
        empty.hidden = sections.size > 0;
      },
    };
  },

  eyes(state) {
    const codes = codebookPanel(state);
    const alive = chart({ title: "Codes alive, and how many carry the load (perplexity)" });
    const explained = chart({ title: "Share of what varies between frames that is redrawn" });
    const sheets = epochs(state, "reconstructions.png", "Frames above, as the tokenizer redraws them below");
    return {
      element: h("div", {},
        h("h2", {}, "Frames and reconstructions through the epochs"), sheets.element,
        h("h2", {}, "The codebook"), h("div", { class: "charts" }, alive.element, explained.element), codes.element),
      draw() {
        sheets.draw();
        codes.draw();
        alive.show({
          series: [
            { name: "alive", look: 0, points: state.history.points("tokenizer", "codes_alive") },
            { name: "perplexity", look: 1, points: state.history.points("tokenizer", "code_perplexity") },
          ],
        });
        explained.show({ series: [{ name: "explained", look: 2, points: state.history.points("tokenizer", "explained") }] });
      },
    };
  },

  dream(state) {
    const live = dreamPanel(state);
    const strips = epochs(state, "dream.png", "Reality above, the dream below");
    return {
      element: h("div", {}, live.element, h("h2", {}, "At each evaluation"), strips.element),
      draw() {
        live.draw();
        strips.draw();
      },
    };
  },

  episodes: episodesPanel,

  settings(state) {
    const element = h("div", {});
    let drawn = null;
    return {
      element,
      draw() {
        if (!state.details || drawn === state.details.config + JSON.stringify(state.details.protocol)) return;
        drawn = state.details.config + JSON.stringify(state.details.protocol);
        const { config, protocol } = state.details;
        element.replaceChildren(
          h("h2", {}, "Protocol: what the scores mean"), protocol ? facts(protocol) : notice("There is no protocol.json."),
          h("h2", {}, "Config, resolved"), config ? h("pre", { tabindex: 0 }, config) : notice("There is no config.toml."));
      },
    };
  },

  log(state) {
    const list = h("ol", { class: "log", tabindex: 0, "aria-label": "Log" });
    return {
      element: h("div", {}, list),
      draw() {
        const lines = [...state.history.lines].reverse();
        list.replaceChildren(...lines.map((line) => h("li", { class: line.phase === "note" ? "warning" : null },
          h("span", { class: "quiet" }, `epoch ${line.epoch} `), h("strong", {}, words(line.phase)), " ",
          line.text ?? Object.entries(line).filter(([key]) => key !== "epoch" && key !== "phase")
            .map(([key, value]) => `${words(key)} ${number(value)}`).join(" · "))));
        if (!lines.length) list.replaceChildren(h("li", { class: "quiet" }, "Nothing has happened yet."));
      },
    };
  },
};

/** The numbers to watch first, as the README says: explained, observations, return. */
function numbers({ history, details }) {
  const tile = (title, value, more) => h("li", { class: "tile" }, h("span", {}, title), h("strong", {}, value), h("span", { class: "quiet" }, more));
  const alive = history.last("tokenizer", "codes_alive");
  return [
    tile("explained", percent(history.last("tokenizer", "explained")), "of what varies between frames"),
    tile("codes alive", number(alive), details?.vocabulary ? `of ${details.vocabulary}` : ""),
    tile("observations", number(history.last("world_model", "observations")), "world model's loss, nats a token"),
    tile("dream return", number(history.last("actor_critic", "dream_return")), "what the agent earns asleep"),
    tile("return", number(history.last("evaluate", "mean_return")), "last evaluation"),
    tile("steps", number(history.last("collect", "steps")), "played in the real game"),
  ];
}

function times(progress) {
  if (!progress) return [notice("No phase has been timed yet.")];
  const total = progress.phases.reduce((sum, phase) => sum + phase.seconds, 0) || 1;
  const shares = progress.phases.map((phase, look) => ({ ...phase, look, share: phase.seconds / total }));
  return [
    h("div", { class: "shares", "aria-hidden": "true" }, shares.map(({ share, look }) => {
      const bar = h("span", { class: `fill series-${look}` });
      bar.style.flexGrow = share;
      return bar;
    })),
    h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Phase", "So far", "Share", "An epoch"].map((title, i) => h("th", { scope: "col", class: i ? "number" : null }, title)))),
      h("tbody", {}, shares.map((phase) => h("tr", {},
        h("th", { scope: "row" }, h("span", { class: `key series-${phase.look}`, "aria-hidden": "true" }), words(phase.name)),
        h("td", { class: "number" }, duration(phase.seconds)), h("td", { class: "number" }, percent(phase.share)),
        h("td", { class: "number" }, duration(phase.seconds_an_epoch))))))),
  ];
}

/** A picture of every evaluation, with a slider through them. The last one is followed until another is chosen. */
function epochs(state, kind, title) {
  const picture = h("img", { class: "sheet", alt: title });
  const box = h("div", {});
  let files = [];
  let follow = true;
  let shown = null;
  const show = (index) => {
    const file = files[index];
    if (!file || file.file === shown) return;
    shown = file.file;
    picture.alt = `${title}, after epoch ${file.epoch}`;
    picture.src = of(state.name, "media", file.file);
  };
  const text = (index) => (files[index] ? `epoch ${files[index].epoch}` : "");
  const through = slider({
    label: "After", min: 0, max: 0, value: 0, text,
    onchange(index) {
      follow = index === files.length - 1;
      show(index);
    },
  });
  return {
    element: box,
    draw() {
      files = (state.details?.media ?? []).filter((file) => file.kind === kind);
      if (!files.length) {
        box.replaceChildren(notice("No evaluation has made pictures yet.", "They come with the first evaluation; `evaluate.every` in the settings tells how often."));
        return;
      }
      if (!box.contains(picture)) box.replaceChildren(through.element, h("div", { class: "scroll" }, picture));
      const index = follow ? files.length - 1 : Number(through.range.value);
      through.set(index, { max: files.length - 1 });
      show(index);
    },
  };
}

function facts(values) {
  const text = (value) => (value === null ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));
  return h("dl", { class: "facts" }, Object.entries(values).map(([key, value]) => [h("dt", {}, words(key)), h("dd", {}, text(value))]));
}
