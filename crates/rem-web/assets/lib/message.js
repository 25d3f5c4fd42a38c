// Binary messages of `src/message.rs`: a JSON header and a payload.

/** @returns {{header: object, payload: Uint8Array}} */
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const json = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  return { header: JSON.parse(json), payload: new Uint8Array(buffer, 4 + length) };
}
