// While the page is not in view, tell the person that a session is done or asks a question: by title, icon and notification.

const ICONS = { asks: "icon-asks.svg", done: "icon-done.svg", none: "icon.svg" };
const MARKS = { asks: "? ", done: "✓ ", none: "" };

export class Attention {
  /**
   * @param {HTMLElement} button asks the browser for permission to notify. Hidden once the person has decided.
   * @param {function} open `open(id)` shows a session.
   */
  constructor(button, open) {
    this.button = button;
    this.open = open;
    this.icon = document.querySelector('link[rel="icon"]');
    /** Session id -> its last known state. The first state after opening the page causes no notification. */
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

  /** Mark the shown session as seen, because the person is looking at it. */
  seen() {
    if (this.known.has(this.shown)) this.known.get(this.shown).isDone = false;
    this.draw();
  }

  /** Return true if a session is done and the person has not looked at it since then. */
  isDone(id) {
    return this.known.get(id)?.isDone === true;
  }

  /**
   * Set the current state.
   * @param {string | null} shown the id of the shown session.
   * @param {object[]} sessions all sessions: `id` and `name`; `count`, the number of open questions; `question`, the text of the
   *   last one; `isBusy`: a turn is under way, a subagent works in the background, or a prompt waits; `isLevel`: the state comes from
   *   events, not from the list of sessions.
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
    // The list is older than the events, so do not compare a state from the list with one from events.
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
