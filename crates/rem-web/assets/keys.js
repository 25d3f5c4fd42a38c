// What keys mean: directions and fire make actions by the names that games give them.

const DIRECTIONS = {
  arrowup: "up", arrowdown: "down", arrowleft: "left", arrowright: "right",
  w: "up", s: "down", a: "left", d: "right", " ": "fire",
};

/** With Shift or Caps Lock a key means the same. */
const direction = (key) => DIRECTIONS[key.toLowerCase()];

/** Keys that are held down, as an action. */
export class Held {
  constructor(actions) {
    this.actions = actions;
    this.down = new Set();
  }

  /** Whether a key steers. */
  press(key) {
    const pressed = direction(key);
    if (pressed) this.down.add(pressed);
    return pressed !== undefined;
  }

  release(key) {
    this.down.delete(direction(key));
  }

  /** The number of the action that is held: as many of the directions as the game has a name for. */
  action() {
    const held = ["up", "down", "right", "left", "fire"].filter((direction) => this.down.has(direction));
    const names = [held.join(""), ...held].filter(Boolean);
    const plain = this.actions.map((name) => name.replaceAll(/[^a-z]/g, ""));
    const found = names.map((name) => plain.indexOf(name)).find((action) => action >= 0);
    return found ?? 0;
  }
}
