// The sessions that the CLI keeps on disk: listed when one looks, opened to be read, and resumed.

import { foreign, make } from "./text.js";

export class Past {
  /**
   * @param {HTMLDetailsElement} place with a list.
   * @param {object} on `list()` gets the sessions; `open(session)` shows one; `fault(text)`.
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
      if (!sessions.length) this.list.append(make("li", "hint", "There are none in the folders of the profiles."));
    } catch (error) {
      this.on.fault(error.message);
    }
  }

  row(session) {
    const row = make("li");
    const button = make("button", "session");
    button.type = "button";
    const path = make("span", "path");
    path.append(foreign("span", "", session.cwd));
    button.append(foreign("span", "name", session.title), make("span", "life", when(session.ended)), path);
    button.addEventListener("click", () => this.on.open(session));
    row.append(button);
    return row;
  }
}

function when(seconds) {
  return seconds === null ? "" : new Date(seconds * 1000).toLocaleDateString();
}
