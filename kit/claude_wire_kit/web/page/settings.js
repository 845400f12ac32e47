// The menus for the shown session's model and permission mode.

/** The permission modes that the service lets a client choose -> their labels. */
export const MODES = { default: "Ask before changes", acceptEdits: "Edit without asking", plan: "Plan first" };

export class Settings {
  /**
   * @param {object} places the elements `settings`, `model` and `mode`.
   * @param {object} on callbacks: `abilities()` gets the models and commands; `set(body)` sends a change; `fault(text)` shows an error.
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

  /** Show the settings of a `session_state`. If `abilities` changed, get the models and commands. */
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
      this.known = 0; // so the next state asks again
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
      this.on.fault(`The setting was not changed: ${error.message}`);
      this.draw();
    }
  }
}

/** Fill a <select> with options, and select a value. If no option has this value, add one. */
function fillSelect(select, value, options, none) {
  const all = options.some((one) => one.value === value) ? options : [{ value, name: value || none, title: "" }, ...options];
  const key = JSON.stringify(all);
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(...all.map((one) => Object.assign(new Option(one.name, one.value), { title: one.title })));
  }
  select.value = value;
  select.disabled = all.length < 2;
}
