// Prompts that wait for the turn under way: seen, and taken back to be changed.

import { foreign, make } from "./text.js";

/** Characters of a prompt that are shown. */
const MAX_SHOWN = 300;

export class Queue {
  /**
   * @param {HTMLElement} place a list.
   * @param {object} on `withdraw(uuid)` takes a prompt back; `edit(prompt)` gives it to be changed; `fault(text)`; `changed()`.
   */
  constructor(place, on) {
    this.place = place;
    this.on = on;
    this.waiting = new Map();
  }

  clear() {
    this.waiting.clear();
    this.draw();
  }

  get count() {
    return this.waiting.size;
  }

  /** A prompt that was sent here while a turn goes on. */
  add(uuid, text, images = []) {
    this.waiting.set(uuid, { text, images, isTold: false });
    this.draw();
  }

  /** The ids that wait, according to the service. A prompt of another tab has no text here. */
  state(ids) {
    const told = new Set(ids);
    for (const id of told) {
      if (this.waiting.has(id)) this.waiting.get(id).isTold = true;
      else this.waiting.set(id, { text: null, images: [], isTold: true });
    }
    for (const [id, { isTold }] of this.waiting) if (isTold && !told.has(id)) this.waiting.delete(id);
    this.draw();
  }

  /** The CLI has taken a prompt, or it was not sent. */
  remove(uuid) {
    if (this.waiting.delete(uuid)) this.draw();
  }

  /** The oldest prompt that the service does not know, taken out; undefined if there is none. */
  takeUntold() {
    for (const [uuid, { text, isTold }] of this.waiting) {
      if (isTold) continue;
      this.remove(uuid);
      return { uuid, text };
    }
    return undefined;
  }

  draw() {
    this.place.replaceChildren(...[...this.waiting].map(([uuid, prompt]) => this.row(uuid, prompt)));
    this.place.hidden = this.count === 0;
    this.on.changed();
  }

  row(uuid, { text, images }) {
    const row = make("li", "queued");
    row.dataset.id = uuid;
    const words = text === null ? "A prompt that was sent elsewhere" : text || `${images.length} images`;
    row.append(foreign("span", "text", words.slice(0, MAX_SHOWN)));
    if (text !== null) row.append(this.button("Edit", uuid, true));
    row.append(this.button("Remove", uuid, false));
    return row;
  }

  button(words, uuid, edits) {
    const button = make("button", "", words);
    button.type = "button";
    button.addEventListener("click", () => this.take(uuid, edits));
    return button;
  }

  async take(uuid, edits) {
    const prompt = this.waiting.get(uuid);
    try {
      await this.on.withdraw(uuid);
    } catch (error) {
      this.on.fault(error.error === "taken" ? "It is too late: the prompt is being answered." : error.message);
      if (error.error === "taken") this.remove(uuid);
      return;
    }
    this.remove(uuid);
    if (edits) this.on.edit(prompt);
  }
}
