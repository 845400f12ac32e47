// The questions of the tool AskUserQuestion. A person chooses one or more options for each, or writes another answer.

import { exact, foreign, make } from "./text.js";

/** Maximum number of questions in a call, and of options in a question. With more, the page only offers to allow or deny. */
const MAX_QUESTIONS = 8;
const MAX_OPTIONS = 20;

/** Return the questions of an event as `{question, header, options, multiSelect}`; null if the input has another shape. */
function questionsOf({ tool, input }) {
  const asked = input.questions;
  if (tool !== "AskUserQuestion" || !Array.isArray(asked) || asked.length === 0 || asked.length > MAX_QUESTIONS) return null;
  const isQuestion = (one) =>
    typeof one?.question === "string" &&
    Array.isArray(one.options) &&
    one.options.length <= MAX_OPTIONS &&
    one.options.every((option) => typeof option?.label === "string");
  return asked.every(isQuestion) ? asked : null;
}

/** Return the choices for an event; null unless it is a call of AskUserQuestion that the page can show. */
export function choicesOf(event) {
  const asked = questionsOf(event);
  return asked === null ? null : new Choices(asked);
}

class Choices {
  constructor(asked) {
    this.asked = asked;
    this.element = make("div", "choices");
    this.fields = asked.map((one, number) => this.field(one, `choice-${Choices.made++}-${number}`));
    this.element.append(...this.fields);
  }

  field(one, name) {
    const field = make("fieldset");
    field.append(foreign("legend", "", exact(one.question)));
    const kind = one.multiSelect ? "checkbox" : "radio";
    for (const option of one.options) {
      const row = make("label", "choice");
      const input = make("input");
      Object.assign(input, { type: kind, name, value: option.label });
      const words = make("span");
      words.append(foreign("span", "name", exact(option.label)));
      if (typeof option.description === "string") words.append(foreign("span", "about", exact(option.description)));
      row.append(input, words);
      field.append(row);
    }
    const own = make("input", "own");
    Object.assign(own, { type: "text", maxLength: 10_000, placeholder: "Something else" });
    own.setAttribute("aria-label", `Another answer to: ${one.question}`);
    field.append(own);
    return field;
  }

  /** Question -> answer, for the questions that the person has answered. */
  get answers() {
    const found = {};
    this.asked.forEach(({ question }, number) => {
      const chosen = [...this.fields[number].querySelectorAll(".choice input:checked")].map((input) => input.value);
      const own = this.fields[number].querySelector(".own").value.trim();
      if (own) chosen.push(own);
      if (chosen.length) found[question] = chosen.join(", ");
    });
    return found;
  }

  get isComplete() {
    return Object.keys(this.answers).length === new Set(this.asked.map((one) => one.question)).size;
  }

  set disabled(is) {
    for (const field of this.fields) field.disabled = is;
  }
}
Choices.made = 0;
