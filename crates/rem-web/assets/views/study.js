// A study: a grid of games and seeds for each variant, updated while its runs train.

import { getJson } from "../lib/api.js";
import { h, notice } from "../lib/dom.js";
import { duration, number, percent } from "../lib/format.js";

const REFRESH_MS = 2000;
// Not "queued": the server does not ask Slurm.
const STATES = ["done", "running", "waiting", "failed"];

export async function studyView(name) {
  const path = `/api/studies/${encodeURIComponent(name)}`;
  const first = await getJson(path);
  const counts = h("ul", { class: "tiles" });
  const error = h("div", {});
  const grids = h("div", {});
  const failures = h("div", {});
  const element = h("section", {}, h("h1", {}, `Study ${name}`), counts, error, grids, failures);
  const cells = first.runs.map(() => cell());
  grids.append(...variants(first.runs).map((variant) => grid(variant, first.runs, cells)));

  function show({ counts: by, runs, pages }) {
    counts.replaceChildren(...STATES.map((state) =>
      h("li", { class: "tile" }, h("strong", {}, number(by[state])), h("span", { class: "muted" }, state))));
    runs.forEach((run, i) => cells[i].show(run, pages[i]));
    const failed = runs.filter((run) => run.state === "failed");
    failures.replaceChildren(...failed.map((run) => notice(`${run.name}: ${run.reason ?? "failed"}`, run.hint)));
  }

  async function refresh() {
    if (document.hidden) return;
    try {
      show(await getJson(path));
      error.replaceChildren();
    } catch (problem) {
      error.replaceChildren(notice(problem.message, problem.hint));
    }
  }

  show(first);
  const timer = setInterval(refresh, REFRESH_MS);
  document.addEventListener("visibilitychange", refresh);
  return {
    title: `Study ${name}`,
    breadcrumbs: [[name, null]],
    element,
    close() {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", refresh);
    },
  };
}

const unique = (values) => [...new Set(values)];

function variants(runs) {
  return unique(runs.map((run) => run.variant));
}

/** The runs of a variant: a row per game, a column per seed. */
function grid(variant, runs, cells) {
  const own = runs.map((run, i) => [run, cells[i]]).filter(([run]) => run.variant === variant);
  const seeds = unique(own.map(([run]) => run.seed));
  const games = unique(own.map(([run]) => run.game));
  const at = (game, seed) => own.find(([run]) => run.game === game && run.seed === seed)?.[1].element ?? h("td", {});
  const title = variant === null ? null : h("h2", { class: "variant" }, variant);
  return h("div", {}, title, h("div", { class: "scroll" }, h("table", { class: "study" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Game"), seeds.map((seed) => h("th", { scope: "col" }, `Seed ${seed}`)))),
    h("tbody", {}, games.map((game) => h("tr", {}, h("th", { scope: "row" }, game), seeds.map((seed) => at(game, seed))))))));
}

/** A cell is updated in place, so that focus is not lost. */
function cell() {
  const text = h("span", {});
  const detail = h("span", { class: "muted" });
  const bar = h("span", { class: "bar-of-run" }, h("span", {}));
  const link = h("a", {}, text);
  const element = h("td", {}, link, detail, bar);
  return {
    element,
    show(run, page) {
      element.className = run.state;
      const fraction = run.epochs ? run.epoch / run.epochs : 0;
      text.textContent = run.state === "done" ? number(run.score) : run.state;
      detail.textContent = {
        done: "done",
        running: `${percent(fraction)}${run.seconds_left === null ? "" : `, ${duration(run.seconds_left)} left`}`,
      }[run.state] ?? (run.epoch ? `after ${percent(fraction)}` : "");
      bar.firstChild.style.width = `${100 * (run.state === "done" ? 1 : fraction)}%`;
      if (page) link.href = `#/run/${encodeURIComponent(page)}`;
      else link.removeAttribute("href");
      element.title = `${run.name}: ${run.state}, epoch ${run.epoch} of ${run.epochs ?? "?"}${run.reason ? `: ${run.reason}` : ""}`;
    },
  };
}
