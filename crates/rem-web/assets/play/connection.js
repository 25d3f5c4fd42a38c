// The WebSocket of a play session: one response per command, in order.

import { ApiError, runPath } from "../lib/api.js";
import { decode } from "../lib/message.js";

const closed = () => new ApiError("The session is closed.", "Reload the page to start another one.");

export class Connection {
  constructor(run) {
    this.pending = [];
    this.socket = new WebSocket(`ws://${location.host}${runPath(run, "play")}`);
    this.socket.binaryType = "arraybuffer";
    this.ready = new Promise((resolve, reject) => {
      this.socket.onopen = resolve;
      this.socket.onerror = () => reject(new ApiError("Cannot open a play session.", "Too many sessions may be open, or the server has stopped."));
    });
    this.socket.onmessage = (message) => {
      const { resolve, reject } = this.pending.shift();
      const response = decode(message.data);
      if (response.header.type === "error") reject(new ApiError(response.header.error, response.header.hint));
      else resolve(response);
    };
    this.socket.onclose = () => this.pending.splice(0).forEach(({ reject }) => reject(closed()));
  }

  /** @returns {Promise<{header: object, payload: Uint8Array}>} */
  async send(command) {
    await this.ready;
    if (this.socket.readyState !== WebSocket.OPEN) throw closed();
    return new Promise((resolve, reject) => {
      this.pending.push({ resolve, reject });
      this.socket.send(JSON.stringify(command));
    });
  }

  close() {
    this.socket.close();
  }
}
