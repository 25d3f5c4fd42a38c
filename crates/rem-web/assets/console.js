// The line to the server's console: one question, one answer, in order.

import { open } from "./envelope.js";
import { of, Refused } from "./api.js";

export class Line {
  constructor(run) {
    this.waiting = [];
    this.socket = new WebSocket(`ws://${location.host}${of(run, "play")}`);
    this.socket.binaryType = "arraybuffer";
    this.ready = new Promise((resolve, reject) => {
      this.socket.onopen = resolve;
      this.socket.onerror = () => reject(new Refused("The console cannot be opened.", "Perhaps too many are open, or the server has ended."));
    });
    this.socket.onmessage = (message) => {
      const { resolve, reject } = this.waiting.shift();
      const answer = open(message.data);
      if (answer.about.is === "refusal") reject(new Refused(answer.about.error, answer.about.hint));
      else resolve(answer);
    };
    this.socket.onclose = () => {
      const gone = new Refused("The console was closed.", "Load the page again to open another one.");
      this.waiting.splice(0).forEach(({ reject }) => reject(gone));
    };
  }

  /** @returns {Promise<{about: object, bytes: Uint8Array}>} */
  async ask(command) {
    await this.ready;
    if (this.socket.readyState !== WebSocket.OPEN) throw new Refused("The console was closed.", "Load the page again to open another one.");
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.socket.send(JSON.stringify(command));
    });
  }

  close() {
    this.socket.close();
  }
}
