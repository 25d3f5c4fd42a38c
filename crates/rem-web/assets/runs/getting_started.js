// What to type when there are no runs yet.

import { h } from "../lib/dom.js";

const COMMANDS = [
  ["rem train", "trains an agent on a small built-in game, in a few minutes on a laptop"],
  ["rem train --game paddle --seed 3", "another built-in game"],
  ["rem demo", "plays in the dream of an agent that is part of the program"],
  ["rem doctor", "checks that this machine is ready"],
  ["rem sweep --help", "many runs: games, seeds and ablations"],
];

export function gettingStarted() {
  return h("div", { class: "boxed welcome" },
    h("h2", {}, "No runs yet"),
    h("p", {}, "Start one in another terminal, in the directory in which this server was started. It appears here within seconds."),
    h("ul", { class: "commands" }, COMMANDS.map(([command, does]) => h("li", {}, h("code", { tabindex: 0 }, command), h("span", { class: "muted" }, does)))));
}
