// The menu of suggestions at the prompt: the CLI's commands after "/", and files in the session's folder after "@".

import { exact, foreign, make } from "./text.js";

/** Maximum number of rows in the menu. */
const MAX_ROWS = 50;

export class Complete {
  /**
   * @param {HTMLTextAreaElement} prompt
   * @param {HTMLElement} menu the list element.
   * @param {object} on callbacks: `commands()` returns the commands; `files(text)` finds paths; `changed()` runs after the
   *   menu changed the prompt.
   */
  constructor(prompt, menu, on) {
    this.prompt = prompt;
    this.menu = menu;
    this.on = on;
    this.rows = [];
    this.chosen = 0;
    this.asked = 0;
    prompt.addEventListener("input", () => this.look());
    prompt.addEventListener("blur", () => this.close());
    // Capture the key before the page does. Otherwise Enter would send the prompt instead of choosing a row.
    prompt.addEventListener("keydown", (event) => this.key(event), { capture: true });
    menu.addEventListener("mousedown", (event) => {
      event.preventDefault(); // otherwise the prompt would lose the focus
      const row = event.target.closest("[role=option]");
      if (row) this.take([...menu.children].indexOf(row));
    });
  }

  get isOpen() {
    return this.rows.length > 0;
  }

  /** Open, update or close the menu. It completes a command like "/com" at the beginning, or a file like "@fil" after a blank. */
  async look() {
    const count = ++this.asked;
    const before = this.prompt.value.slice(0, this.prompt.selectionStart);
    const command = /^\/(\S*)$/.exec(before);
    const file = /(?:^|\s)@([^\s"]*)$/.exec(before);
    const text = (command ?? file)?.[1] ?? "";
    let rows = [];
    if (command) rows = this.commands(text);
    else if (file) {
      // Until the files arrive, keep only the old rows that fit the new text, because a key may choose one of these rows.
      this.show(this.rows.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase())), text.length);
      rows = await this.files(text);
    }
    if (count === this.asked) this.show(rows, text.length);
  }

  commands(text) {
    const wanted = text.toLowerCase();
    const found = this.on.commands().filter(({ value }) => value.toLowerCase().includes(wanted));
    found.sort((a, b) => b.value.toLowerCase().startsWith(wanted) - a.value.toLowerCase().startsWith(wanted));
    return found.map(({ value, description, hint }) => ({ text: `${value} `, name: `/${value} ${hint ?? ""}`, about: description }));
  }

  async files(text) {
    try {
      const paths = await this.on.files(text);
      return paths.map((path) => ({ text: /\s/.test(path) ? `"${path}" ` : `${path} `, name: path }));
    } catch {
      return []; // suggestions are not essential, so do not show an error
    }
  }

  show(rows, typed) {
    this.rows = rows.slice(0, MAX_ROWS);
    this.typed = typed;
    this.menu.replaceChildren(
      ...this.rows.map(({ name, about }, number) => {
        const row = make("li");
        row.id = `complete-${number}`;
        row.setAttribute("role", "option");
        row.append(foreign("span", "name", exact(name)));
        if (about) row.append(foreign("span", "about", exact(about)));
        return row;
      }),
    );
    this.menu.hidden = !this.isOpen;
    this.choose(0);
  }

  close() {
    this.asked += 1;
    this.show([], 0);
  }

  choose(number) {
    this.chosen = number;
    [...this.menu.children].forEach((row, at) => row.setAttribute("aria-selected", String(at === number)));
    if (this.isOpen) this.prompt.setAttribute("aria-activedescendant", `complete-${number}`);
    else this.prompt.removeAttribute("aria-activedescendant");
    this.menu.children[number]?.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    if (!this.isOpen || event.isComposing || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    const count = this.rows.length;
    if (event.key === "ArrowDown") this.choose((this.chosen + 1) % count);
    else if (event.key === "ArrowUp") this.choose((this.chosen + count - 1) % count);
    else if (event.key === "Enter" || event.key === "Tab") this.take(this.chosen);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  take(number) {
    const at = this.prompt.selectionStart;
    const { text } = this.rows[number];
    this.prompt.setRangeText(text, at - this.typed, at, "end");
    this.close();
    this.on.changed();
  }
}
