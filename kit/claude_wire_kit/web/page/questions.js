// Permission questions. An open question is above the prompt. Once settled, it moves to its place in the conversation.

import { choicesOf } from "./choices.js";
import { written } from "./details.js";
import { exact, fill, foreign, make, makeButton, sentence, toggler } from "./text.js";

const REASONS = { withdrawn: "Withdrawn", answered: "Answered", dropped: "Dropped" };
const DECISIONS = new Map([[true, ["Allowed", "allowed"]], [false, ["Denied", "denied"]]]);
/** Maximum number of fields of a tool's input to show. */
const MAX_FIELDS = 12;
/** Maximum number of outcomes to keep for questions that are not loaded. */
const MAX_UNKNOWN = 1_000;

export class Questions {
  /**
   * @param {HTMLElement} dock the element for open questions.
   * @param {object} on callbacks:
   *   `answer(requestId, allow, option, more)` sends an answer. `more` has the `message` of a denial, or the `answers` to choices.
   *   It returns a promise of `{counts, over, words}`: the answer was accepted, or the question was already settled, or an error;
   *   `ask(text)` tells a screen reader; `settled(slot, entry)` puts a question where it was asked; `find(selector)` finds one
   *   there; `left()` runs after a question with the focus was settled.
   */
  constructor(dock, on) {
    this.dock = dock;
    this.on = on;
    this.open = new Map();
    /** Key -> the outcome of a question asked before the first loaded event. */
    this.unknown = new Map();
  }

  clear() {
    this.open.clear();
    this.unknown.clear();
    this.dock.replaceChildren();
  }

  /** The text of the last open question, for a notification. */
  get words() {
    return [...this.open.values()].at(-1)?.words ?? "";
  }

  get count() {
    return this.open.size;
  }

  /** Return true if a slot in the conversation is the place of an open question. */
  isOpen(slot) {
    return [...this.open.values()].some((one) => one.slot === slot);
  }

  /** Move the focus to the first open question. */
  focus() {
    this.dock.querySelector(".choices input:enabled, .options button:enabled")?.focus();
  }

  add(event, slot) {
    const key = keyOf(event.requestId);
    if (this.open.has(key)) return;
    const card = make("section", "question");
    card.dataset.kind = "question";
    card.dataset.id = String(event.requestId);
    card.dataset.key = key;
    card.tabIndex = -1;
    const title = make("h3", "ask");
    title.id = `question-${Questions.made++}`;
    const choices = choicesOf(event);
    if (choices) title.append(foreign("span", "tool", "A question for you"));
    else title.append("Allow ", foreign("span", "tool", exact(event.tool)), "?");
    card.setAttribute("aria-labelledby", title.id);
    const outcome = make("p", "outcome");
    outcome.setAttribute("role", "status");
    card.append(title);
    if (event.description) {
      const description = make("div", "description");
      fill(description, event.description, { isExact: true });
      card.append(description);
    }
    const input = inputOf(event, choices !== null);
    card.append(choices?.element ?? input);
    const options = make("div", "options");
    const reason = make("input", "reason");
    const question = { card, slot, input, options, reason, choices, outcome, isSent: false, told: null, event, words: "" };
    (choices ? ["answer"] : event.options).forEach((text, option) => {
      options.append(this.button(question, option, text, true));
    });
    options.append(this.button(question, options.childElementCount, choices ? "Do not answer" : "Deny", false));
    Object.assign(reason, { type: "text", maxLength: 10_000, placeholder: "Why not? Enter denies with this reason" });
    reason.setAttribute("aria-label", "Reason to deny");
    card.append(options, reason, outcome);
    const complete = () => choices && (options.firstElementChild.disabled = !choices.isComplete);
    complete();
    card.addEventListener("input", complete);
    card.addEventListener("keydown", (pressed) => this.key(pressed, question));
    this.open.set(key, question);
    this.dock.append(card);
    question.words = choices ? choices.asked[0].question : `allow ${event.tool}? ${event.description ?? ""}`;
    this.on.ask(`A question: ${question.words.slice(0, 300)}`.trim());
  }

  button(question, number, text, allow) {
    const press = () => this.answer(question, allow, allow ? number : 0, text);
    const button = makeButton(allow ? (number === 0 ? "main" : "") : "deny", null, press);
    if (number < 9) {
      const key = make("kbd", "", String(number + 1));
      key.setAttribute("aria-hidden", "true");
      button.append(key, " ");
      button.setAttribute("aria-keyshortcuts", String(number + 1));
    }
    button.append(foreign("span", "", sentence(exact(text))));
    return button;
  }

  /** Handle a key while the focus is in a question: a digit presses the button with this number, an arrow moves between buttons. */
  key(pressed, question) {
    if (pressed.ctrlKey || pressed.altKey || pressed.metaKey || pressed.isComposing) return;
    if (pressed.target.matches("input")) {
      if (pressed.key !== "Enter") return;
      pressed.preventDefault();
      if (pressed.target === question.reason) this.answer(question, false, 0, "Denied");
      else if (question.choices.isComplete) question.options.firstElementChild.click();
      return;
    }
    const buttons = [...question.options.children];
    const at = buttons.indexOf(document.activeElement);
    if (/^[1-9]$/.test(pressed.key) && Number(pressed.key) <= buttons.length) buttons[Number(pressed.key) - 1].click();
    else if (at >= 0 && (pressed.key === "ArrowDown" || pressed.key === "ArrowRight")) buttons[(at + 1) % buttons.length].focus();
    else if (at >= 0 && (pressed.key === "ArrowUp" || pressed.key === "ArrowLeft")) buttons.at(at - 1).focus();
    else return;
    pressed.preventDefault();
  }

  async answer(question, allow, option, text) {
    if (question.isSent) return;
    const { choices, reason } = question;
    const answers = choices && allow ? choices.answers : null;
    const why = allow ? "" : reason.value.trim();
    question.isSent = true;
    this.enable(question, false);
    question.outcome.textContent = "Sending …";
    const more = answers ? { answers } : why ? { message: why } : {};
    const said = await this.on.answer(question.event.requestId, allow, option, more);
    if (said.counts) {
      const words = answers ? Object.values(answers).join(" · ") : sentence(text);
      this.settle(question, allow ? words : why ? `Denied: ${why}` : "Denied", allow ? "allowed" : "denied");
    } else if (said.over) {
      this.settle(question, ...(question.told ?? [said.words, "answered"]));
    } else {
      question.isSent = false;
      this.enable(question, true);
      question.outcome.textContent = said.words;
      this.focus();
    }
  }

  enable({ options, reason, choices }, is) {
    for (const control of [...options.children, reason]) control.disabled = !is;
    if (choices) choices.disabled = !is;
  }

  /** Settle a question that another client or the CLI settled. `allowed` often arrives later, with the tool's result. */
  cancel({ requestId, reason, allowed }) {
    const [words, outcome] = DECISIONS.get(allowed) ?? [REASONS[reason] ?? "Settled", reason];
    const key = keyOf(requestId);
    const question = this.open.get(key);
    if (question?.isSent) {
      question.told = [words, outcome]; // used if the service replies that this page's answer was too late
    } else if (question) {
      this.settle(question, words, outcome);
    } else {
      const card = this.on.find(`[data-key="${CSS.escape(key)}"]`);
      if (card === null) {
        if (this.unknown.size < MAX_UNKNOWN) this.unknown.set(key, { requestId, reason, allowed });
      } else if (DECISIONS.has(allowed) && card.dataset.outcome === "answered") {
        card.dataset.outcome = outcome;
        card.querySelector(".outcome").textContent = words;
      }
    }
  }

  /** Add the questions of older events: settle those whose outcome is known here, and move those that are open. */
  join(older) {
    for (const [key, question] of [...older.open]) {
      const here = this.open.get(key);
      const told = this.unknown.get(key);
      if (here) {
        here.slot.remove();
        here.slot = question.slot;
      } else if (told) {
        older.cancel(told);
      } else {
        older.settle(question, "Settled", "answered");
      }
      this.unknown.delete(key);
    }
  }

  /** Settle all questions except these: according to the service, only these are open. */
  keep(ids, hasEnded) {
    const open = new Set(ids.map(keyOf));
    for (const [key, question] of this.open) {
      if (open.has(key) || question.isSent) continue;
      if (hasEnded) this.settle(question, "The session has ended", "withdrawn");
      else this.settle(question, "Answered", "answered");
    }
  }

  settle(question, words, outcome) {
    if (!this.open.delete(keyOf(question.event.requestId))) return;
    // The pressed button is disabled by now, so it has lost the focus.
    const hadFocus = question.isSent || question.card.contains(document.activeElement);
    question.options.remove();
    question.reason.remove();
    question.choices?.element.replaceWith(question.input);
    question.outcome.textContent = words;
    question.outcome.setAttribute("dir", "auto");
    question.card.dataset.outcome = outcome;
    question.card.classList.add("entry");
    // Hide the input first, because the tool call next to the question shows it.
    if (question.input.childElementCount) question.card.append(toggler(question.card, "Show input", "Hide input"));
    this.on.settled(question.slot, question.card);
    if (hadFocus) this.on.left();
  }
}
Questions.made = 0;

/** Return a key for a request id. The number 1 and the string "1" are different ids. */
function keyOf(id) {
  return JSON.stringify(id);
}

/**
 * Return an element with the fields of a tool's input, one below the other. A person decides on this text, so it is JSON, which hides
 * nothing, except for the choices of AskUserQuestion, which the page has shown.
 */
function inputOf({ input, description }, isChoices) {
  const list = make("dl", "input");
  const fields = Object.entries(input).filter(([name, value]) => name !== "description" || value !== description);
  for (const [name, value] of fields.slice(0, MAX_FIELDS)) {
    const field = make("div");
    const text = make("dd");
    fill(text, written(value, isChoices ? name : ""), { isExact: true });
    field.append(foreign("dt", "", exact(name)), text);
    list.append(field);
  }
  if (fields.length > MAX_FIELDS) list.append(make("div", "hint", `and ${fields.length - MAX_FIELDS} more fields`));
  return list;
}
