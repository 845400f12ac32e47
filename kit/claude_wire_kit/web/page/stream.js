// The events of a session, for as long as the page shows it. After a lost connection it continues after the last event.

/** Milliseconds without a byte after which a connection is taken for lost. The service gives a sign of life each 15 s. */
const SILENT = 40_000;
/** Milliseconds before another try: the first time, and at most. */
const [SOON, LATE] = [500, 10_000];
/** Milliseconds that events may hold up the page at once. */
const SLICE = 12;

export class Stream {
  /**
   * @param {string} url of the events.
   * @param {object} on `event(event, id)`, `state(state, words)` where state is "connecting", "live", "lost" or
   *   "refused", `alive()` whenever anything arrives, and `anew()` before all events come again from the first.
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

  /** The answer of the service; null if it will stay the same, and false if the next one will be another. */
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

/** What the service says of a refusal. */
export async function words(answer) {
  try {
    return (await answer.json()).message || answer.statusText;
  } catch {
    return answer.statusText || `status ${answer.status}`;
  }
}
