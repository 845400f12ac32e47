// Search in the list of sessions: names and folders at once, and what was said in them when Enter is pressed.

import { foreign } from "./text.js";

export class Search {
  /**
   * @param {HTMLInputElement} input
   * @param {object} on `find(text)` searches what was said; `changed()` when other rows are wanted; `say(text)`; `fault(text)`.
   */
  constructor(input, on) {
    this.input = input;
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

  /** What was found is of another text. */
  clear() {
    this.asked += 1;
    this.found = null;
    this.on.changed();
  }

  /** Whether a session is to be listed. */
  has({ id, name, cwd }) {
    const text = this.input.value.trim().toLowerCase();
    return !text || Boolean(this.found?.has(id)) || `${name ?? ""}\n${cwd}`.toLowerCase().includes(text);
  }

  /** Where the text was found in a session. */
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
      this.on.say(`${found.length} sessions${cut ? " in the newest of what was said" : ""}`);
      this.on.changed();
    } catch (error) {
      this.on.fault(error.message);
    }
  }
}
