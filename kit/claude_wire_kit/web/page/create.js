// The dialog for a new session: its profile, folder and name, and the choices that the profile offers.

import { make, sentence } from "./text.js";
import { MODES } from "./settings.js";

export class Create {
  /**
   * @param {HTMLDialogElement} dialog
   * @param {object} on `start(body, close)` starts a session, and then closes the dialog. If it throws, the dialog shows the error.
   */
  constructor(dialog, on) {
    this.dialog = dialog;
    this.on = on;
    this.profiles = [];
    for (const name of ["profile", "roots", "cwd", "label", "choices", "create-fault", "create-cancel", "create-form"]) {
      this[name] = dialog.querySelector(`#${name}`);
    }
    this.profile.addEventListener("change", () => this.draw());
    this["create-cancel"].addEventListener("click", () => dialog.close());
    this["create-form"].addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
  }

  /** Set the profiles to choose from. */
  take(profiles) {
    if (JSON.stringify(profiles) === JSON.stringify(this.profiles)) return;
    this.profiles = profiles;
    this.profile.replaceChildren(...profiles.map(({ name }) => new Option(name, name)));
    this.draw();
  }

  open() {
    this["create-fault"].textContent = "";
    this.dialog.showModal();
  }

  /** Show the profile's roots and choices. */
  draw() {
    const { roots = [], choices = {}, options = {} } = this.profiles.find((one) => one.name === this.profile.value) ?? {};
    this.roots.textContent = roots.join(", ");
    this.choices.replaceChildren(
      ...Object.entries(choices).flatMap(([name, values]) => {
        const label = make("label", "", sentence(name.replaceAll("_", " ")));
        const select = make("select");
        select.id = label.htmlFor = `choice-${name}`;
        select.dataset.name = name;
        const given = options[name];
        const words = (value) => (name === "permission_mode" ? (MODES[value] ?? value) : String(value));
        const none = given === undefined ? "CLI default" : `Profile default: ${words(given)}`;
        select.append(new Option(none, ""), ...values.map((value) => new Option(words(value), JSON.stringify(value))));
        return [label, select];
      }),
    );
  }

  async start() {
    this["create-fault"].textContent = "";
    const body = { profile: this.profile.value, folder: this.cwd.value.trim() };
    if (this.label.value.trim()) body.name = this.label.value.trim();
    const chosen = [...this.choices.querySelectorAll("select")].filter((one) => one.value);
    if (chosen.length) body.options = Object.fromEntries(chosen.map((one) => [one.dataset.name, JSON.parse(one.value)]));
    try {
      await this.on.start(body, () => this.dialog.close());
    } catch (error) {
      this["create-fault"].textContent = error.message;
    }
  }
}
