// A tool call's folded details: its input, the change to a file, and its output. Also pictures and other folded parts.

import { exact, foreign, make, makeButton } from "./text.js";

/** How many lines of long text to show at each end. A button shows the lines between them. */
const [FIRST, LAST] = [12, 6];
/** Maximum number of characters in a line. The rest is cut until a person presses the button. */
const MAX_LINE = 4_000;
/** Maximum number of fields of a tool's input to show. */
const MAX_FIELDS = 40;
/** The types of pictures that the page can show and a prompt may contain. */
export const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
/** Status of a task -> the mark in its box, as in `claude-wire view`. */
const TICKS = { completed: "x", in_progress: ">", pending: " " };
const MARKS = { "+": "ins", "-": "del", "@": "b" };

/** Return a <details> element. `give()` returns its contents when a person opens the element for the first time. */
export function opener(className, summary, give, isOpen = false) {
  const details = make("details", className);
  const head = make("summary");
  head.append(...summary);
  details.append(head);
  let isFilled = false;
  const fill = () => {
    if (isFilled) return;
    isFilled = true;
    details.append(...give());
  };
  details.addEventListener("toggle", () => details.open && fill());
  if (isOpen) {
    fill();
    details.open = true;
  }
  return details;
}

/** Return an element with the lines of `text` in a fixed-width font. Show only the first and last lines of long text. */
export function folded(text, { isDiff = false } = {}) {
  const box = make("div", isDiff ? "lines diff" : "lines");
  const lines = exact(text.replace(/\r\n/g, "\n").replace(/\n$/, "")).split("\n");
  const hidden = lines.length - FIRST - LAST;
  const isLong = hidden > 3;
  if (!isLong && lines.every((line) => line.length <= MAX_LINE)) {
    box.append(pre(lines, isDiff));
    return box;
  }
  const short = (line) => (line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line);
  const button = makeButton("more", isLong ? `${hidden.toLocaleString("en")} more lines` : "Show whole lines", () => {
    const whole = pre(lines, isDiff);
    box.replaceChildren(whole);
    whole.focus();
  });
  const [first, last] = isLong ? [lines.slice(0, FIRST), lines.slice(-LAST)] : [lines, []];
  box.append(pre(first.map(short), isDiff), button);
  if (last.length) box.append(pre(last.map(short), isDiff));
  return box;
}

function pre(lines, isDiff) {
  const box = foreign("pre", "", isDiff ? "" : lines.join("\n"));
  box.tabIndex = 0;
  if (isDiff) {
    for (const line of lines) box.append(make(MARKS[line[0]] ?? "span", "", `${line || " "}\n`));
  }
  return box;
}

/** Return an element with the fields of a tool's input, one below the other. */
export function fields(input) {
  if (input === null || typeof input !== "object" || Array.isArray(input)) return folded(written(input));
  const list = make("dl", "fields");
  const all = Object.entries(input);
  for (const [name, value] of all.slice(0, MAX_FIELDS)) {
    const field = make("div");
    const text = make("dd");
    text.append(folded(written(value, name)));
    field.append(foreign("dt", "", exact(name)), text);
    list.append(field);
  }
  if (all.length > MAX_FIELDS) list.append(make("div", "hint", `and ${all.length - MAX_FIELDS} more fields`));
  return list;
}

/** Return a field's value as text: a task list and the questions of a call as lines, and other values as JSON. */
export function written(value, name) {
  if (typeof value === "string") return value;
  const tasks = name === "todos" ? tasksOf(value) : null;
  if (tasks) return tasks.map(({ content, status }) => `[${TICKS[status] ?? "?"}] ${content}`).join("\n");
  if (name === "questions" && isListOf(value, "question")) return value.flatMap(questionLines).join("\n");
  return JSON.stringify(value, null, 2);
}

/** Return the tasks of TodoWrite as `{content, status}`; null if the value is not a list of tasks. */
function tasksOf(value) {
  return isListOf(value, "content") ? value : null;
}

function isListOf(value, name) {
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one?.[name] === "string");
}

function questionLines({ question, options }) {
  const about = ({ label, description }) => (typeof description === "string" && description ? `${label}: ${description}` : label);
  return [question, ...(isListOf(options, "label") ? options.map((one) => `  - ${about(one)}`) : [])];
}

/** Return elements for the parts of a result or prompt: texts, pictures, and names of other content. */
export function parts(all) {
  return all.flatMap((part) => {
    if (part.text !== undefined) return part.text.trim() ? [folded(part.text)] : [];
    if (part.data !== undefined && PICTURES.has(part.mediaType)) return [picture(part)];
    return [foreign("p", "hint", `[${exact(part.name ?? "")}]`)];
  });
}

/** Return a canvas with a picture from a prompt or a result. */
export function picture({ mediaType, data }) {
  const canvas = make("canvas", "picture");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "A picture of the conversation");
  const decode = async () => {
    const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
    await paint(canvas, new Blob([bytes], { type: mediaType }), 1600);
  };
  decode().catch(() => canvas.replaceWith(make("p", "hint", `[${mediaType} that cannot be shown]`)));
  return canvas;
}

/**
 * Draw a picture on a canvas, with at most `most` pixels on its longer side. An <img> would need a Content-Security-Policy that
 * allows sources other than the service itself.
 */
export async function paint(canvas, blob, most) {
  const image = await createImageBitmap(blob);
  const scale = Math.min(1, most / Math.max(image.width, image.height));
  canvas.width = Math.max(1, Math.round(image.width * scale));
  canvas.height = Math.max(1, Math.round(image.height * scale));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  image.close();
}

/** Return the words on a tool call's folded details. */
export function summaryOf({ input, change, content }) {
  const tasks = tasksOf(input?.todos);
  if (tasks) return `${tasks.filter(({ status }) => status === "completed").length} of ${tasks.length} tasks done`;
  if (change !== undefined) return "Change";
  const count = (text) => (text?.trim() ? text.trimEnd().split("\n").length : 0);
  const lines = (content ?? []).reduce((sum, { text }) => sum + count(text), 0);
  if (lines) return lines === 1 ? "Output, 1 line" : `Output, ${lines.toLocaleString("en")} lines`;
  return content?.length ? "Output" : "Input";
}

/** Return elements with the decision, the change, the input and the output of a tool call; an empty list if it has none. */
export function about({ input, change, content, decision }) {
  const found = [];
  if (decision) found.push(foreign("p", "hint", exact(decision)));
  if (change?.length) found.push(folded(change.join("\n"), { isDiff: true }));
  if (input !== undefined && input !== null && Object.keys(Object(input)).length) found.push(fields(input));
  const output = parts(content ?? []);
  if (output.length) {
    const box = make("div", "output");
    if (found.length) box.append(make("p", "hint", "Output"));
    box.append(...output);
    found.push(box);
  }
  return found;
}

/** Return the approximate number of characters in a JSON value. */
export function sizeOf(value) {
  if (typeof value === "string") return value.length;
  if (value === null || typeof value !== "object") return 8;
  return Object.entries(value).reduce((sum, [name, one]) => sum + name.length + sizeOf(one), 16);
}
