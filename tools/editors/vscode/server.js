// The language server as a process: messages of JSON-RPC over its standard input and output.
"use strict";

const { spawn } = require("child_process");

class Server {
  // onMessage(method, params): what the server tells; onEnd(text): it has ended, or could not be started.
  constructor(program, onMessage, onEnd) {
    this.waiting = new Map(); // answers, by the number of the request
    this.number = 0;
    this.bytes = Buffer.alloc(0);
    this.onMessage = onMessage;
    this.isEnding = false;
    this.process = spawn(program, ["lsp"], { stdio: ["pipe", "pipe", "ignore"] });
    const end = (text) => {
      for (const { reject } of this.waiting.values()) reject(new Error(text));
      this.waiting.clear();
      if (!this.isEnding) onEnd(text);
      this.isEnding = true;
    };
    this.process.on("error", (error) => end(`${program} cannot be started: ${error.message}`));
    this.process.on("exit", (code) => end(`${program} lsp has ended with ${code}`));
    this.process.stdin.on("error", () => {}); // its end follows
    this.process.stdout.on("data", (more) => this.receive(more));
  }

  receive(more) {
    this.bytes = Buffer.concat([this.bytes, more]);
    for (;;) {
      const head = this.bytes.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/content-length: *(\d+)/i.exec(this.bytes.toString("latin1", 0, head))[1]);
      if (this.bytes.length < head + 4 + length) return;
      const message = JSON.parse(this.bytes.toString("utf8", head + 4, head + 4 + length));
      this.bytes = this.bytes.subarray(head + 4 + length);
      const request = this.waiting.get(message.id);
      if (message.method) {
        this.onMessage(message.method, message.params);
      } else if (request) {
        this.waiting.delete(message.id);
        if (message.error) request.reject(new Error(message.error.message));
        else request.resolve(message.result);
      }
    }
  }

  send(message) {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.process.stdin.write(body);
  }

  tell(method, params) {
    if (!this.isEnding) this.send({ method, params });
  }

  ask(method, params) {
    if (this.isEnding) return Promise.reject(new Error("the server has ended"));
    return new Promise((resolve, reject) => {
      this.waiting.set(++this.number, { resolve, reject });
      this.send({ id: this.number, method, params });
    });
  }

  async end() {
    if (this.isEnding) return;
    const answer = this.ask("shutdown", null);
    this.isEnding = true;
    await answer.catch(() => {});
    this.send({ method: "exit" });
  }
}

module.exports = { Server };
