// Receive a session's events. After a lost connection, connect again and continue after the last event.

/** A connection without a byte for this many milliseconds counts as lost. The service sends a comment every 15 s. */
const SILENT = 40_000;
/** Milliseconds before the first attempt to reconnect, and the maximum before later attempts. */
const [SOON, LATE] = [500, 10_000];
/** Handle events for this many milliseconds, then let the browser draw. */
const SLICE = 12;

export class Stream {
  /**
   * @param {string} url the URL of the events.
   * @param {object} on callbacks: `event(event, id)`; `state(state, words, status)`, where state is "connecting", "live", "lost" or
   *   "refused"; `alive()` runs whenever a byte arrives; `anew(reason)` before the service sends all events again from the first.
   */
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.last = null;
    this.times = 0;
    this.closed = false;
    this.abort = null;
    this.wake = null;
    this.online = () => this.wake?.();
    addEventListener("online", this.online);
    this.run();
  }

  close() {
    this.closed = true;
    removeEventListener("online", this.online);
    this.abort?.abort();
    this.wake?.();
  }

  async run() {
    let wait = SOON;
    this.on.state("connecting", "Connecting …");
    while (!this.closed) {
      let words = "Connection lost";
      try {
        const answer = await this.open();
        if (answer === null) return;
        if (answer) {
          this.on.state("live", ["Live", "Live · reconnected once"][this.times] ?? `Live · reconnected ${this.times} times`);
          this.times += 1;
          wait = SOON;
          await this.read(answer);
        }
      } catch (error) {
        if (error instanceof Refused) words = error.message;
      }
      clearTimeout(this.silent);
      if (this.closed) return;
      this.on.state("lost", `${words} · trying again`);
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, wait);
      });
      wait = Math.min(LATE, wait * 2);
    }
  }

  /** Connect. Return the response; null if the service refuses for good; false if the next attempt begins with the first event. */
  async open() {
    this.abort = new AbortController();
    this.listen();
    const headers = { Accept: "text/event-stream" };
    if (this.last !== null) headers["Last-Event-ID"] = this.last;
    const answer = await fetch(this.url, { headers, signal: this.abort.signal, cache: "no-store" });
    if (answer.ok) return answer;
    const said = await words(answer);
    if (answer.status === 410 && this.last !== null) {
      this.last = null;
      this.on.anew(said);
      return false;
    }
    if (answer.status >= 500 || answer.status === 429 || answer.status === 408) throw new Refused(said);
    if (!this.closed) this.on.state("refused", said, answer.status);
    return null;
  }

  listen() {
    clearTimeout(this.silent);
    this.silent = setTimeout(() => this.abort.abort(), SILENT);
  }

  async read(answer) {
    const reader = answer.body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    let sought = 0;
    let event = { id: null, data: [] };
    let began = performance.now();
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      this.listen();
      this.on.alive();
      text += decoder.decode(value, { stream: true });
      let from = 0;
      let end;
      while ((end = text.indexOf("\n", Math.max(from, sought))) >= 0) {
        this.take(event, text.slice(from, text[end - 1] === "\r" ? end - 1 : end));
        if (event.whole) event = { id: null, data: [] };
        from = end + 1;
        if (performance.now() - began > SLICE) {
          await new Promise((resolve) => setTimeout(resolve));
          began = performance.now();
          if (this.closed) return;
        }
      }
      text = text.slice(from);
      sought = text.length;
    }
  }

  take(event, line) {
    if (line === "") {
      event.whole = true;
      if (event.data.length && !this.closed) {
        const found = JSON.parse(event.data.join("\n"));
        this.on.event(found, event.id);
        if (event.id !== null) this.last = event.id;
      }
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") event.data.push(value);
    else if (name === "id") event.id = value;
  }
}

class Refused extends Error {}

/** Return the message of a refusal. */
export async function words(answer) {
  try {
    return (await answer.json()).message || answer.statusText;
  } catch {
    return answer.statusText || `status ${answer.status}`;
  }
}
