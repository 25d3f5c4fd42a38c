// The timeline of a session as the page knows it: a tree of nodes, and the selected branch.

/** The server's limit. */
const MAX_NODES = 10_000;

export class Timeline {
  constructor() {
    this.nodes = new Map();
    this.currentId = null;
    this.newestId = -1;
    this.evictedId = -1;
    /** The last node of each branch. The order does not change. */
    this.tips = [];
    /** The selected branch from its first to its last node, one step apart. */
    this.branch = [];
  }

  /** Adds a node of the server, or goes to a known one. */
  update(node) {
    const known = this.nodes.has(node.id);
    this.nodes.set(node.id, node);
    this.currentId = node.id;
    if (node.id > this.newestId) this.append(node);
    // The server does not send the nodes before the start of a dream until they are visited.
    else if (!known) this.selectBranch(this.branch.at(-1));
  }

  append(node) {
    this.newestId = node.id;
    const index = this.tips.findIndex((tip) => tip.id === node.parent);
    if (index >= 0) this.tips[index] = node;
    else this.tips.push(node);
    if (this.branch.length && this.branch.at(-1).id === node.parent) this.branch.push(node);
    else this.selectBranch(node);
    this.evict(node.id - MAX_NODES);
  }

  /** Drops all nodes up to an id. */
  evict(last) {
    while (this.evictedId < last) this.nodes.delete(++this.evictedId);
    this.tips = this.tips.filter((tip) => tip.id > last);
    while (this.branch[0].id <= last) this.branch.shift();
  }

  /** Selects the branch that ends with this node. */
  selectBranch(tip) {
    this.branch = [];
    for (let node = tip; node; node = this.nodes.get(node.parent)) this.branch.push(node);
    this.branch.reverse();
  }

  get current() {
    return this.nodes.get(this.currentId);
  }

  /** The index of a node in the selected branch. */
  indexOf(node) {
    return node.step - this.branch[0].step;
  }
}
