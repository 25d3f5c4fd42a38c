// The moments of a session as the page knows them: a tree, and the branch that is looked at.

export class Moments {
  constructor() {
    this.all = new Map();
    this.here = null;
    this.tip = null;
  }

  /** A moment that the server told: a new one is the end of its branch, a known one is gone back to. */
  take(moment) {
    const known = this.all.has(moment.id);
    this.all.set(moment.id, moment);
    this.here = moment.id;
    if (!known) this.tip = moment.id;
  }

  get now() {
    return this.all.get(this.here);
  }

  /** From the beginning to a moment. */
  way(id) {
    const way = [];
    for (let at = this.all.get(id); at; at = this.all.get(at.parent)) way.push(at);
    return way.reverse();
  }

  /** The branch that is looked at. */
  branch() {
    return this.way(this.tip);
  }

  /** The ends of all branches. */
  tips() {
    const parents = new Set([...this.all.values()].map((moment) => moment.parent));
    return [...this.all.values()].filter((moment) => !parents.has(moment.id));
  }
}
