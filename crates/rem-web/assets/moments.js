// The moments of a session as the page knows them: a tree, and the branch that is looked at.

/** As many as the server remembers. */
const KEPT = 10_000;

export class Moments {
  constructor() {
    this.all = new Map();
    this.here = null;
    this.newest = -1;
    this.forgotten = -1;
    /** The ends of all branches, each in its place for good. */
    this.tips = [];
    /** The branch that is looked at, from its beginning to its end. Each moment is one step after the one before it. */
    this.branch = [];
  }

  /** A moment that the server told: a new one is the end of its branch, another one is gone back to. */
  take(moment) {
    const known = this.all.has(moment.id);
    this.all.set(moment.id, moment);
    this.here = moment.id;
    if (moment.id > this.newest) this.grow(moment);
    // The page was not told of the moments before a dream began: it learns of them by going back.
    else if (!known) this.look(this.branch.at(-1));
  }

  grow(moment) {
    this.newest = moment.id;
    const place = this.tips.findIndex((tip) => tip.id === moment.parent);
    if (place >= 0) this.tips[place] = moment;
    else this.tips.push(moment);
    if (this.branch.length && this.branch.at(-1).id === moment.parent) this.branch.push(moment);
    else this.look(moment);
    this.forget(moment.id - KEPT);
  }

  /** Forgets all up to a moment. */
  forget(last) {
    while (this.forgotten < last) this.all.delete(++this.forgotten);
    this.tips = this.tips.filter((tip) => tip.id > last);
    while (this.branch[0].id <= last) this.branch.shift();
  }

  /** Looks at the branch that ends with this moment. */
  look(tip) {
    this.branch = [];
    for (let at = tip; at; at = this.all.get(at.parent)) this.branch.push(at);
    this.branch.reverse();
  }

  get now() {
    return this.all.get(this.here);
  }

  /** The place of a moment in the branch that is looked at. */
  place(moment) {
    return moment.step - this.branch[0].step;
  }
}
