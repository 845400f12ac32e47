// The list of sessions that the CLI keeps on disk. The page loads it when a person opens it; a click shows a session.

import { make, sessionButton } from "./text.js";

export class Past {
  /**
   * @param {HTMLDetailsElement} place the <details> element that contains the list.
   * @param {object} on callbacks: `list()` gets the sessions; `open(session)` shows one; `fault(text)` shows an error.
   */
  constructor(place, on) {
    this.list = place.querySelector("ul");
    this.on = on;
    place.addEventListener("toggle", () => place.open && this.look());
  }

  async look() {
    try {
      const { sessions } = await this.on.list();
      this.list.replaceChildren(...sessions.map((session) => this.row(session)));
      if (!sessions.length) this.list.append(make("li", "hint", "The folders of the profiles have no sessions on disk."));
    } catch (error) {
      this.on.fault(error.message);
    }
  }

  row(session) {
    const row = make("li");
    row.append(sessionButton(session.title, when(session.ended), session.cwd, () => this.on.open(session)));
    return row;
  }
}

function when(seconds) {
  return seconds === null ? "" : new Date(seconds * 1000).toLocaleDateString();
}
