// Images for the next prompt: pasted, dropped or chosen.

import { PICTURES, paint } from "./details.js";
import { make, makeButton } from "./text.js";

/** The service's limits for a prompt's images: their number, the bytes of one image, and the bytes of all images. */
const MAX_IMAGES = 8;
const MAX_BYTES = 3_750_000;
const MAX_ALL_BYTES = 8_500_000;
/** The length of a preview's longer side, in pixels. */
const PREVIEW = 64;

export class Images {
  /**
   * @param {HTMLElement} place the list of previews.
   * @param {object} on callbacks: `fault(text)` shows an error; `changed()` runs after images were added or removed.
   */
  constructor(place, on) {
    this.place = place;
    this.on = on;
    this.files = [];
  }

  get count() {
    return this.files.length;
  }

  /** Add the images that a person pasted or dropped. Return true if there were any files. */
  add(files) {
    for (const file of files) {
      const all = this.files.reduce((sum, { size }) => sum + size, 0);
      if (!PICTURES.has(file.type)) this.on.fault(`${file.name} cannot be used: images must be PNG, JPEG, GIF or WebP.`);
      else if (file.size > MAX_BYTES) this.on.fault(`${file.name} has more than ${MAX_BYTES / 1e6} MB.`);
      else if (this.count >= MAX_IMAGES || all + file.size > MAX_ALL_BYTES) {
        this.on.fault(`A prompt may have ${MAX_IMAGES} images of ${MAX_ALL_BYTES / 1e6} MB together.`);
      } else this.files.push(file);
    }
    this.draw();
    return files.length > 0;
  }

  /** Remove all images, and return them as JSON for a prompt. */
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
    const button = makeButton("", "✕", () => {
      this.files = this.files.filter((one) => one !== file);
      this.draw();
    });
    button.setAttribute("aria-label", `Remove ${file.name}`);
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
