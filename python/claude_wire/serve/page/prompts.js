// The prompts that this browser has sent. The events of a session do not hold them, so the browser keeps them itself:
// they are there after the page is loaded again, and in its other tabs.

const KEY = "claude_wire.prompts";
/** Prompts that are kept, of all sessions, and characters of each. */
const MOST = 300;
const MOST_CHARS = 4_000;

export class Prompts {
  /**
   * @param {object} on is told of other tabs: `sent(session, uuid, text)`, and `refused(session, uuid)` of one that was
   *   not sent after all.
   */
  constructor(on) {
    addEventListener("storage", (event) => {
      if (event.key !== KEY) return;
      const [before, now] = [parse(event.oldValue), parse(event.newValue)];
      const [old, kept] = [before, now].map((all) => new Set(all.map((one) => one.uuid)));
      for (const one of now) if (!old.has(one.uuid)) on.sent(one.session, one.uuid, one.text);
      // The oldest go for want of room; the last one goes because it was refused.
      const last = before.at(-1);
      if (last && !kept.has(last.uuid)) on.refused(last.session, last.uuid);
    });
  }

  /** Those of a session, each with the id of the event `after` which it was sent. */
  of(session) {
    return read().filter((one) => one.session === session);
  }

  keep(session, { uuid, text, after }) {
    const short = text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)} …` : text;
    write([...read(), { session, uuid, text: short, after }].slice(-MOST));
  }

  forget(uuid) {
    write(read().filter((one) => one.uuid !== uuid));
  }
}

function write(kept) {
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // no room, or the browser keeps nothing: the prompt is shown as long as the page is
  }
}

function read() {
  try {
    return parse(localStorage.getItem(KEY));
  } catch {
    return [];
  }
}

function parse(text) {
  try {
    const found = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one?.text === "string") : [];
  } catch {
    return [];
  }
}
