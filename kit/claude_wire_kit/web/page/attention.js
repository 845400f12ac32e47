// Tells a person who looks elsewhere that a session asks or is done: by the title, the icon and a notification.

const ICONS = { asks: "icon-asks.svg", done: "icon-done.svg", none: "icon.svg" };
const MARKS = { asks: "? ", done: "✓ ", none: "" };

export class Attention {
  /** @param {HTMLElement} button asks for leave to notify; hidden where that is decided. */
  constructor(button) {
    this.button = button;
    this.icon = document.querySelector('link[rel="icon"]');
    this.session = null;
    this.count = 0;
    this.wasBusy = false;
    this.isDone = false;
    this.name = "Sessions";
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

  seen() {
    this.isDone = false;
    this.draw();
  }

  /**
   * What is so now.
   * @param {object} now the `session` and its `name`; the `count` of open questions and the words of the last `question`; whether
   *   its run goes on (`isBusy`): a run is not over while a subagent works in the background, or a prompt waits.
   */
  update({ session, name, count, question, isBusy, isLevel }) {
    this.name = name;
    if (!isLevel || session !== this.session) {
      this.session = isLevel ? session : null;
      this.isDone = false;
    } else {
      const isAway = document.hidden || !document.hasFocus();
      if (count > this.count && isAway) this.notify("asks you", question);
      if (this.wasBusy && !isBusy && isAway) {
        this.isDone = true;
        this.notify("is done", "");
      }
      if (isBusy) this.isDone = false;
    }
    this.count = isLevel ? count : 0;
    this.wasBusy = isLevel && isBusy;
    this.draw();
  }

  draw() {
    const state = this.count ? "asks" : this.isDone ? "done" : "none";
    document.title = `${MARKS[state]}${this.name} · claude_wire`;
    if (this.icon.getAttribute("href") !== ICONS[state]) this.icon.setAttribute("href", ICONS[state]);
  }

  notify(what, body) {
    if (!("Notification" in window) || Notification.permission !== "granted") return;
    const note = new Notification(`${this.name} ${what}`, { body, tag: this.session, icon: "icon.svg" });
    note.addEventListener("click", () => {
      focus();
      note.close();
    });
  }
}
