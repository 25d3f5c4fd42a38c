// Keys to actions: directions and fire combine to the action names of the game.

import { plainName } from "./actions.js";

const DIRECTIONS = {
  arrowup: "up", arrowdown: "down", arrowleft: "left", arrowright: "right",
  w: "up", s: "down", a: "left", d: "right", " ": "fire",
};

/** Shift and Caps Lock make no difference. */
const direction = (key) => DIRECTIONS[key.toLowerCase()];

/** The keys that are held down. */
export class HeldKeys {
  constructor(actions) {
    this.actions = actions;
    this.down = new Set();
  }

  /** Returns whether the key is an action key. */
  press(key) {
    const pressed = direction(key);
    if (pressed) this.down.add(pressed);
    return pressed !== undefined;
  }

  release(key) {
    this.down.delete(direction(key));
  }

  /** The index of the action held: the combination if the game has it, else the first direction that it has. */
  action() {
    const held = ["up", "down", "right", "left", "fire"].filter((direction) => this.down.has(direction));
    const names = [held.join(""), ...held].filter(Boolean);
    const plain = this.actions.map(plainName);
    const found = names.map((name) => plain.indexOf(name)).find((action) => action >= 0);
    return found ?? 0;
  }
}
