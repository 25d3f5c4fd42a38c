// The branches of a session: a tree with one row per branch and one node per step, and a list to select one.

import { h, svg, throttle } from "../lib/dom.js";
import { number, signed, words } from "../lib/format.js";
import { glyph } from "./actions.js";

/** The distance of steps and of rows, and the radius of a node. A reward fits above a node. */
const CELL = 28;
const ROW = 36;
const RADIUS = 10;
/** Steps before and after the current one that are drawn, and the rows. */
const WINDOW = 40;
const MAX_ROWS = 40;
/** Shortest time between two drawings while the session runs. */
const REDRAW_MS = 150;

/**
 * @param {{goto: (id: number) => void, selectBranch: (tip: object) => void}} session
 */
export function branchTree({ goto, selectBranch }) {
  const scroll = h("div", { class: "scroll tree" });
  const list = h("ul", { class: "branches", "aria-label": "Branches" });
  let timeline = null;
  let actions = [];
  const draw = throttle(() => {
    scroll.replaceChildren(tree(timeline, actions, goto));
    const current = scroll.querySelector(".current");
    if (current) center(scroll, Number(current.dataset.x));
  }, REDRAW_MS);

  return {
    element: h("div", {}, scroll, list),
    show(next, names) {
      timeline = next;
      actions = names;
      draw();
      showList(list, timeline, selectBranch);
    },
  };
}

function center(scroll, x) {
  scroll.scrollLeft = x - scroll.clientWidth / 2;
}

/** Buttons are updated in place, so that no click is lost. */
function showList(list, { tips, branch }, selectBranch) {
  while (list.childElementCount > tips.length) list.lastChild.remove();
  while (list.childElementCount < tips.length) list.append(h("li", {}, h("button", { type: "button" })));
  tips.forEach((tip, i) => {
    const button = list.children[i].firstChild;
    button.onclick = () => selectBranch(tip);
    button.setAttribute("aria-pressed", String(tip.id === branch.at(-1).id));
    button.textContent = `${i + 1}: ${tip.world}, ${tip.step} steps, return ${number(tip.return)}${tip.over ? ", ended" : ""}`;
  });
}

/** The nodes of each branch that are not part of an earlier one, and the node where it starts. */
export function rowsOf({ nodes, tips }) {
  const rowOf = new Map();
  return tips.map((tip, row) => {
    const own = [];
    let node = tip;
    for (; node && !rowOf.has(node.id); node = nodes.get(node.parent)) {
      rowOf.set(node.id, row);
      own.push(node);
    }
    return { own: own.reverse(), from: node ?? null, fromRow: node ? rowOf.get(node.id) : null };
  });
}

function tree(timeline, actions, goto) {
  const rows = rowsOf(timeline);
  const current = timeline.current;
  const shownRows = rows.slice(0, MAX_ROWS);
  const steps = shownRows.flatMap(({ own }) => [own[0].step, own.at(-1).step]);
  const first = Math.max(Math.min(...steps), current.step - WINDOW);
  const last = Math.min(Math.max(...steps), current.step + WINDOW);
  const selected = new Set(timeline.branch.map((node) => node.id));
  const x = (step) => (step - first + 0.5) * CELL;
  const y = (row) => (row + 0.6) * ROW;
  const visible = (step) => step >= first && step <= last;
  const parts = { lines: [], nodes: [] };
  shownRows.forEach(({ own, from, fromRow }, row) => {
    const nodes = own.filter((node) => visible(node.step));
    if (!nodes.length) return;
    const style = (node) => (selected.has(node.id) ? "edge selected" : "edge");
    if (from && visible(from.step)) parts.lines.push(fork(x(from.step), y(fromRow), x(nodes[0].step), y(row), style(nodes[0])));
    nodes.slice(1).forEach((node) => parts.lines.push(svg("line", { class: style(node), x1: x(node.step - 1), x2: x(node.step), y1: y(row), y2: y(row) })));
    for (const node of nodes) parts.nodes.push(nodeMark(node, x(node.step), y(row), actions, { selected: selected.has(node.id), current: node.id === current.id }, goto));
    const end = nodes.at(-1);
    parts.nodes.push(svg("text", { class: "number", x: x(end.step) + RADIUS + 5, y: y(row) + 4 }, String(row + 1)));
  });
  const [width, height] = [x(last) + CELL, shownRows.length * ROW + 4];
  const label = `Tree of ${timeline.tips.length} ${timeline.tips.length === 1 ? "branch" : "branches"}, steps ${first} to ${last}`;
  return svg("svg", { class: "branch-tree", role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` }, parts.lines, parts.nodes);
}

/** From a node down to the first node of a branch. */
function fork(x1, y1, x2, y2, style) {
  // A new dream starts with the observation of the step that it leaves.
  const turn = Math.min(CELL / 2, y2 - y1);
  const path = `M${x1} ${y1}V${y2 - turn}Q${x1} ${y2} ${Math.min(x1 + turn, x2)} ${y2}H${x2}`;
  return svg("path", { class: style, d: path });
}

/** A node with its action. The shape marks an end, the number above a reward. */
function nodeMark(node, x, y, actions, { selected, current }, goto) {
  const action = node.action === null ? null : actions[node.action];
  const title = `step ${node.step}${action ? `: ${words(action)}` : ""}, ${node.world}${node.reward ? `, reward ${signed(node.reward)}` : ""}${node.over ? ", ended" : ""}`;
  const classes = ["node", node.world, selected && "selected", current && "current", node.over && "over"].filter(Boolean).join(" ");
  const shape = node.over
    ? svg("rect", { x: x - RADIUS, y: y - RADIUS, width: 2 * RADIUS, height: 2 * RADIUS, rx: 3 })
    : svg("circle", { cx: x, cy: y, r: RADIUS });
  return svg("g", { class: classes, "data-x": x, onclick: () => goto(node.id) },
    svg("title", {}, title), shape,
    svg("text", { x, y: y + 4, "text-anchor": "middle" }, action ? glyph(action) : ""),
    node.reward ? svg("text", { class: "reward", x, y: y - RADIUS - 2, "text-anchor": "middle" }, signed(node.reward)) : null);
}
