// Images for the next prompt: pasted, dropped or chosen.

import { paint } from "./details.js";
import { make } from "./text.js";

/** What the service takes: so many images, of so many bytes, and of these types. */
const MAX_IMAGES = 8;
const MAX_BYTES = 3_750_000;
const MAX_ALL_BYTES = 8_500_000;
const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** Pixels of the longer side of a preview. */
const PREVIEW = 64;

export class Images {
  /**
   * @param {HTMLElement} place a list for the previews.
   * @param {object} on `fault(text)`; `changed()`.
   */
  constructor(place, on) {
    this.place = place;
    this.on = on;
    this.files = [];
  }

  get count() {
    return this.files.length;
  }

  /** Take the images of a paste, a drop or a field. Returns whether there were any files. */
  add(files) {
    for (const file of files) {
      const all = this.files.reduce((sum, { size }) => sum + size, 0);
      if (!TYPES.includes(file.type)) this.on.fault(`Images are PNG, JPEG, GIF or WebP: ${file.name} is none.`);
      else if (file.size > MAX_BYTES) this.on.fault(`${file.name} has more than ${MAX_BYTES / 1e6} MB.`);
      else if (this.count >= MAX_IMAGES || all + file.size > MAX_ALL_BYTES) this.on.fault("That is enough for one prompt.");
      else this.files.push(file);
    }
    this.draw();
    return files.length > 0;
  }

  /** Give the images away, as the service takes them. */
  async take() {
    const taken = this.files;
    this.files = [];
    this.draw();
    return Promise.all(taken.map(async (file) => ({ mediaType: file.type, data: await base64(file) })));
  }

  draw() {
    this.place.replaceChildren(...this.files.map((file) => this.preview(file)));
    this.place.hidden = this.count === 0;
    this.on.changed();
  }

  preview(file) {
    const row = make("li", "image");
    const canvas = make("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", file.name);
    paint(canvas, file, PREVIEW).catch(() => canvas.classList.add("broken")); // the model may still read it
    const button = make("button", "", "✕");
    button.type = "button";
    button.setAttribute("aria-label", `Remove ${file.name}`);
    button.addEventListener("click", () => {
      this.files = this.files.filter((one) => one !== file);
      this.draw();
    });
    row.append(canvas, button);
    return row;
  }
}

async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const pieces = [];
  for (let at = 0; at < bytes.length; at += 0x8000) pieces.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return btoa(pieces.join(""));
}
