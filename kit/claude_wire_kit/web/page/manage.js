// Rename, stop and delete a session in one dialog.

export class Manage {
  /**
   * @param {HTMLDialogElement} dialog
   * @param {object} on callbacks: `post(what, body)` sends "rename", "stop" or "remove" for the shown session, then `done(what)`.
   */
  constructor(dialog, on) {
    this.dialog = dialog;
    this.on = on;
    this.at = (name) => dialog.querySelector(`[name="${name}"]`);
    this.at("cancel").addEventListener("click", () => dialog.close());
    this.at("end").addEventListener("click", () => this.act("stop"));
    this.at("delete").addEventListener("click", () => this.delete());
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.act("rename", { name: this.at("name").value.trim() || null });
    });
  }

  open({ name, hasEnded }) {
    this.isSure = false;
    this.at("name").value = name ?? "";
    this.at("end").hidden = hasEnded;
    this.at("delete").hidden = !hasEnded;
    this.at("delete").textContent = "Delete …";
    this.fault("");
    this.dialog.showModal();
    this.at("name").select();
  }

  fault(text) {
    this.dialog.querySelector('[role="alert"]').textContent = text;
  }

  /** Delete the session when a person presses the button twice, because deleting cannot be undone. */
  delete() {
    if (this.isSure) {
      this.act("remove");
      return;
    }
    this.isSure = true;
    this.at("delete").textContent = "Delete for good";
  }

  async act(what, body) {
    try {
      await this.on.post(what, body);
      this.dialog.close();
      this.on.done(what);
    } catch (error) {
      this.fault(error.message);
    }
  }
}
