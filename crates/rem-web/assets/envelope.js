// Pictures with what is said about them in one message, as `src/envelope.rs` seals it.

/** @returns {{about: object, bytes: Uint8Array}} */
export function open(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  return { about: JSON.parse(text), bytes: new Uint8Array(buffer, 4 + length) };
}
