// The list of prompts that are waiting for the current turn to end. A person can remove them, or edit them again.

import { foreign, make, makeButton } from "./text.js";

/** Maximum number of characters of a prompt in the list. */
const MAX_SHOWN = 300;

export class Queue {
  /**
   * @param {HTMLElement} place the list element.
   * @param {object} on callbacks: `withdraw(uuid)` removes a prompt from the CLI's queue; `edit(prompt)` puts it into the prompt
   *   field; `fault(text)` shows an error; `changed()` runs after the list changed.
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

  /** Add a prompt that this page sent during a turn. */
  add(uuid, text, images = []) {
    this.waiting.set(uuid, { text, images, isTold: false });
    this.draw();
  }

  /** Set the ids of the waiting prompts, as the service lists them. The page does not know the text of other clients' prompts. */
  state(ids) {
    const told = new Set(ids);
    for (const id of told) {
      if (this.waiting.has(id)) this.waiting.get(id).isTold = true;
      else this.waiting.set(id, { text: null, images: [], isTold: true });
    }
    for (const [id, { isTold }] of this.waiting) if (isTold && !told.has(id)) this.waiting.delete(id);
    this.draw();
  }

  /** Remove a prompt because the CLI started its turn, or because it could not be sent. */
  remove(uuid) {
    if (this.waiting.delete(uuid)) this.draw();
  }

  /** Remove and return the oldest prompt that the service never listed as waiting; undefined if there is none. */
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
    const words = text === null ? "A prompt from another client" : text || `${images.length} images`;
    row.append(foreign("span", "text", words.slice(0, MAX_SHOWN)));
    if (text !== null) row.append(makeButton("", "Edit", () => this.take(uuid, true)));
    row.append(makeButton("", "Remove", () => this.take(uuid, false)));
    return row;
  }

  async take(uuid, edits) {
    const prompt = this.waiting.get(uuid);
    try {
      await this.on.withdraw(uuid);
    } catch (error) {
      this.on.fault(error.error === "taken" ? "It is too late: Claude is already answering this prompt." : error.message);
      if (error.error === "taken") this.remove(uuid);
      return;
    }
    this.remove(uuid);
    if (edits) this.on.edit(prompt);
  }
}
