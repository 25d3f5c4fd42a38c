// Symbols of actions.

const ARROWS = {
  noop: "·", up: "↑", down: "↓", left: "←", right: "→", fire: "●",
  upleft: "↖", upright: "↗", downleft: "↙", downright: "↘",
};

/** The name without separators, as in `HeldKeys`. */
export const plainName = (name) => name.toLowerCase().replaceAll(/[^a-z]/g, "");

/** A symbol for an action: an arrow, or its first letter. Fire in a direction is the arrow with a dot. */
export function glyph(name) {
  const plain = plainName(name);
  const direction = ARROWS[plain.replace(/fire$/, "")];
  return ARROWS[plain] ?? (direction ? `${direction}•` : name.slice(0, 1).toUpperCase());
}

/** The key that takes an action alone, or null. */
export function keyOf(name) {
  const plain = plainName(name);
  if (plain === "fire") return "Space";
  return ["up", "down", "left", "right"].includes(plain) ? ARROWS[plain] : null;
}
