// Config and protocol.

import { h, notice } from "../lib/dom.js";
import { words } from "../lib/format.js";

export function configPanel(state) {
  const element = h("div", {});
  let shown = null;
  return {
    element,
    draw() {
      if (!state.details) return;
      const { config, protocol } = state.details;
      const key = config + JSON.stringify(protocol);
      if (shown === key) return;
      shown = key;
      element.replaceChildren(
        h("h2", {}, "Config"), config ? h("pre", { tabindex: 0 }, config) : notice("This run has no config.toml."),
        h("h2", {}, "Evaluation protocol"), protocol ? facts(protocol) : notice("This run has no protocol.json."));
    },
  };
}

function facts(values) {
  const text = (value) => (value === null ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));
  return h("dl", { class: "facts" }, Object.entries(values).map(([key, value]) => [h("dt", {}, words(key)), h("dd", {}, text(value))]));
}
