// Tells a person who looks elsewhere that a session asks or is done: by the title, the icon and a notification.

const ICONS = { asks: "icon-asks.svg", done: "icon-done.svg", none: "icon.svg" };
const MARKS = { asks: "? ", done: "✓ ", none: "" };

export class Attention {
  /**
   * @param {HTMLElement} button asks for leave to notify; hidden where that is decided.
   * @param {function} open shows a session, by its id.
   */
  constructor(button, open) {
    this.button = button;
    this.open = open;
    this.icon = document.querySelector('link[rel="icon"]');
    /** What is known of each session, by its id. What is so when the page opens is not told. */
    this.known = new Map();
    this.isFirst = true;
    this.shown = null;
    addEventListener("focus", () => this.seen());
    document.addEventListener("visibilitychange", () => document.hidden || this.seen());
    button.addEventListener("click", async () => {
      await Notification.requestPermission();
      this.offer();
    });
    this.offer();
  }

  offer() {
    this.button.hidden = !("Notification" in window) || Notification.permission !== "default";
  }

  /** The person looks at the session that is shown. */
  seen() {
    if (this.known.has(this.shown)) this.known.get(this.shown).isDone = false;
    this.draw();
  }

  /** Whether a session is done that nobody has looked at since. */
  isDone(id) {
    return this.known.get(id)?.isDone === true;
  }

  /**
   * What is so now.
   * @param {string | null} shown the id of the session that is shown.
   * @param {object[]} sessions all of them: their `id` and `name`; the `count` of open questions and the words of the last
   *   `question`; whether the run goes on (`isBusy`), and whether the events say so (`isLevel`) or the list. A run is not over
   *   while a subagent works in the background, or a prompt waits.
   */
  update(shown, sessions) {
    const before = this.known;
    this.shown = shown;
    const none = (now) => (this.isFirst ? undefined : { count: 0, isBusy: false, isLevel: now.isLevel });
    this.known = new Map(sessions.map((now) => [now.id, this.next(before.get(now.id) ?? none(now), now)]));
    this.isFirst = false;
    this.draw();
  }

  next(was, now) {
    const isAway = now.id !== this.shown || document.hidden || !document.hasFocus();
    let isDone = isAway && was?.isDone === true && !now.isBusy;
    // Events and the list are not of the same moment, so one says nothing new to the other.
    if (was !== undefined && was.isLevel === now.isLevel) {
      if (now.count > was.count && isAway) this.notify(now, "asks you", now.question);
      if (was.isBusy && !now.isBusy && isAway) {
        isDone = true;
        this.notify(now, "is done", "");
      }
    }
    return { ...now, isDone };
  }

  draw() {
    const all = [this.known.get(this.shown), ...this.known.values()].filter((one) => one !== undefined);
    const asks = all.find((one) => one.count > 0);
    const done = all.find((one) => one.isDone);
    const state = asks ? "asks" : done ? "done" : "none";
    const name = (asks ?? done ?? this.known.get(this.shown))?.name ?? "Sessions";
    document.title = `${MARKS[state]}${name} · claude_wire`;
    if (this.icon.getAttribute("href") !== ICONS[state]) this.icon.setAttribute("href", ICONS[state]);
  }

  notify({ id, name }, what, body) {
    if (!("Notification" in window) || Notification.permission !== "granted") return;
    const note = new Notification(`${name} ${what}`, { body, tag: id, icon: "icon.svg" });
    note.addEventListener("click", () => {
      focus();
      this.open(id);
      note.close();
    });
  }
}
