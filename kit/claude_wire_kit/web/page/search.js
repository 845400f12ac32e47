// Search the sessions: names and folders while a person types, and conversations after Enter.

import { foreign } from "./text.js";

export class Search {
  /**
   * @param {HTMLInputElement} input
   * @param {HTMLElement} hint says that Enter searches the conversations. Hidden until a person types.
   * @param {object} on callbacks: `find(text)` searches the conversations; `changed()` draws the list again;
   *   `say(text)` tells a screen reader; `fault(text)` shows an error.
   */
  constructor(input, hint, on) {
    this.input = input;
    this.hint = hint;
    this.on = on;
    this.found = null;
    this.asked = 0;
    input.addEventListener("input", () => this.clear());
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.find();
      else if (event.key === "Escape" && input.value) {
        event.preventDefault();
        input.value = "";
        this.clear();
      }
    });
  }

  /** Forget the results, because the text changed. */
  clear() {
    this.asked += 1;
    this.found = null;
    this.draw();
  }

  draw() {
    this.hint.hidden = this.found !== null || !this.input.value.trim();
    this.on.changed();
  }

  /** Return true if a session contains the text. */
  has({ id, name, cwd }) {
    const text = this.input.value.trim().toLowerCase();
    return !text || Boolean(this.found?.has(id)) || `${name ?? ""}\n${cwd}`.toLowerCase().includes(text);
  }

  /** Return elements with a session's excerpts that contain the text. */
  excerpts(id) {
    return (this.found?.get(id) ?? []).map((text) => foreign("span", "excerpt", text));
  }

  async find() {
    const text = this.input.value.trim();
    if (!text) return;
    const count = ++this.asked;
    try {
      const { found, cut } = await this.on.find(text.slice(0, 200));
      if (count !== this.asked) return;
      this.found = new Map(found.map(({ id, excerpts }) => [id, excerpts]));
      this.on.say(`${found.length} sessions${cut ? ", in the newest conversations" : ""}`);
      this.draw();
    } catch (error) {
      this.on.fault(error.message);
    }
  }
}
