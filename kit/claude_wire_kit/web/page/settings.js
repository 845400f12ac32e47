// The model and the permission mode of the session that is shown.

import { make } from "./text.js";

/** The modes that the service lets a page switch to. */
export const MODES = { default: "Ask before changes", acceptEdits: "Edit without asking", plan: "Plan first" };

export class Settings {
  /**
   * @param {object} places the elements `settings`, `model` and `mode`.
   * @param {object} on `abilities()` gets the models and commands; `set(body)` sends a change; `fault(text)`.
   */
  constructor(places, on) {
    this.places = places;
    this.on = on;
    this.clear();
    places.mode.addEventListener("change", () => this.set({ permissionMode: places.mode.value }));
    places.model.addEventListener("change", () => this.set({ model: places.model.value }));
  }

  clear() {
    this.models = [];
    this.commands = [];
    this.model = null;
    this.mode = null;
    this.known = 0;
    this.places.settings.hidden = true;
  }

  /** Take over what the service says. */
  async state({ ended, model, permissionMode, abilities }) {
    this.model = model ?? null;
    this.mode = permissionMode ?? null;
    this.places.settings.hidden = ended;
    this.draw();
    if (!abilities || abilities === this.known) return;
    this.known = abilities;
    try {
      ({ models: this.models, commands: this.commands } = await this.on.abilities());
      this.draw();
    } catch {
      this.known = 0; // it is asked again with the next state
    }
  }

  draw() {
    const { model, mode } = this.places;
    const models = this.models.map(({ value, name, description }) => ({ value, name, title: description ?? "" }));
    fillSelect(model, this.model ?? "", models, "Default model");
    const modes = Object.entries(MODES).map(([value, name]) => ({ value, name, title: value }));
    fillSelect(mode, this.mode ?? "default", modes, "");
  }

  async set(change) {
    try {
      await this.on.set(change);
    } catch (error) {
      this.on.fault(`It stays as it was: ${error.message}`);
      this.draw();
    }
  }
}

/** Fill a select. A value that is none of the options is one more. */
function fillSelect(select, value, options, none) {
  const all = options.some((one) => one.value === value) ? options : [{ value, name: value || none, title: "" }, ...options];
  const key = JSON.stringify(all);
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(
      ...all.map((one) => {
        const option = make("option", "", one.name);
        option.value = one.value;
        option.title = one.title;
        return option;
      }),
    );
  }
  select.value = value;
  select.disabled = all.length < 2;
}
