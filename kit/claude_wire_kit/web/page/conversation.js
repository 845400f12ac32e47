// Show one session's events. Each text, tool call, question and subagent is one element. Later events with its id update it.

import { Agents } from "./agents.js";
import { about, folded, opener, parts, sizeOf, summaryOf } from "./details.js";
import { Kept } from "./kept.js";
import { Writer, markdown } from "./markdown.js";
import { Questions } from "./questions.js";
import { copier, cutAt, exact, fill, foreign, make, toggler, unfolder } from "./text.js";

/** Maximum number of characters of an answer to show. A button shows more. */
const MAX_ANSWER = 256 * 1024;

const STATES = {
  started: "running",
  succeeded: "done",
  failed: "failed",
  denied: "denied",
  interrupted: "interrupted",
};
/** The error of a turn interrupted by a person. */
const STOPPED = "interrupted";
const NOTICES = { error: "Error", retry: "Trying again", auth: "Signing in", rate_limit: "Rate limit", info: "Note" };

export class Conversation {
  /**
   * @param {object} places the elements `log`, `questions`, `agents`, `agentList`, `progress` and its parts.
   * @param {object} on callbacks: `answer`, `ask` and `left` of Questions; `isAtEnd`, `isBelow`, `older` and `newest` of Kept;
   *   `changed()` runs after each event; `say(text)` tells a screen reader.
   */
  constructor(places, on) {
    this.places = places;
    this.on = on;
    this.log = places.log;
    this.texts = new Map();
    this.calls = new Map();
    this.prompts = new Map();
    this.agents = new Agents(places, (entry, agent) => this.addAgent(entry, agent));
    this.kept = new Kept(places.log, {
      ...on,
      forget: (entry) => this.forget(entry),
      isOpen: (slot) => this.questions.isOpen(slot),
    });
    this.questions = new Questions(places.questions, {
      answer: on.answer,
      ask: on.ask,
      left: on.left,
      settled: (slot, entry) => this.kept.replace(slot, entry, 200),
      find: (selector) => this.log.querySelector(selector),
    });
    this.clear();
  }

  clear() {
    this.log.replaceChildren();
    this.places.progress.hidden = true;
    this.texts.clear();
    this.calls.clear();
    this.prompts.clear();
    this.agents.clear();
    this.questions.clear();
    this.kept.clear();
    /** The id of the event that add() is showing. */
    this.at = null;
    /** True if earlier events are not loaded. The total cost of the loaded turns is then too low. */
    this.isPart = false;
    this.cost = 0;
    this.isInTurn = this.owesTurn = false;
    this.ended = null;
    this.group = null;
    this.lastText = null;
  }

  /** True while a turn is under way or due, or a subagent is working in the background. */
  get isBusy() {
    return this.isInTurn || this.owesTurn || this.agents.count > 0;
  }

  /** If this session is idle in the list of sessions, correct the guess that a turn is due. */
  settle(life) {
    if (life !== "idle" || !this.owesTurn) return;
    this.owesTurn = false;
    this.on.changed();
  }

  /** Show an event. The page uses the id to load earlier events later. */
  add(event, id = null) {
    if (id !== null) this.at = id;
    if (event.type !== "claude_response") for (const text of this.texts.values()) text.writer.flush();
    switch (event.type) {
      case "user_prompt":
        this.prompted(event);
        break;
      case "claude_response":
        this.respond(event);
        break;
      case "thinking":
        this.think(event);
        break;
      case "progress_update":
        this.progress(event);
        break;
      case "operation":
        this.operate(event);
        break;
      case "subagent_progress":
        this.agents.add(event);
        // After a subagent ends in the background, the CLI starts a turn to tell the model its result.
        if (!this.isInTurn && (event.status === "completed" || event.status === "failed")) this.owesTurn = true;
        break;
      case "permission_request":
        this.isInTurn = true;
        this.questions.add(event, this.append(document.createComment("question"), 0));
        break;
      case "permission_cancelled":
        this.questions.cancel(event);
        break;
      case "turn_complete":
        this.complete(event);
        break;
      case "notice":
        this.notice(event);
        break;
      case "session_state":
        this.state(event);
        break;
      case "older":
        this.isPart = true;
        this.kept.before = event.before;
        this.kept.mark();
        break;
    }
    this.on.changed();
  }

  // --- texts

  respond(event) {
    let text = event.id === undefined ? undefined : this.texts.get(event.id);
    if (text === undefined) {
      if (!event.content.trim()) return; // do not show an empty answer
      const agent = event.agentId;
      const entry = make(agent === undefined ? "article" : "li", agent === undefined ? "entry response" : "response");
      entry.dataset.kind = agent === undefined ? "response" : "said";
      if (agent === undefined) entry.setAttribute("aria-label", "Claude");
      const body = make("div", "body markdown");
      text = { entry, body, writer: new Writer(body), length: 0, more: [] };
      entry.append(body);
      this.place(entry, agent);
      if (event.id !== undefined) {
        entry.dataset.id = event.id;
        this.texts.set(event.id, text);
      }
    }
    if (event.agentId === undefined) this.isInTurn = true;
    text.entry.classList.toggle("failed", event.failed === true);
    if (event.partial) {
      this.write(text, event.content);
      this.charge(event.content.length, text.entry);
      return;
    }
    this.charge(event.content.length - text.length, text.entry);
    this.finish(text, event.content);
    this.texts.delete(event.id);
    if (event.agentId !== undefined) return;
    this.lastText = event.content;
    this.on.say(`Claude: ${event.content.slice(0, 300)}`);
  }

  /** Append an entry to the conversation, or to the card of the subagent with this id. */
  place(entry, agent, chars = 0) {
    const calls = this.agents.calls(agent);
    if (calls === null) {
      entry.classList.add("entry");
      if (agent !== undefined) entry.dataset.of = agent; // the card may be loaded later, with older events
      this.append(entry, chars);
    } else {
      calls.append(entry);
      this.charge(chars + 500, entry.closest(".entry"));
    }
  }

  /** Show the model's thinking, folded. Pieces are appended as they arrive. */
  think(event) {
    const key = event.id === undefined ? undefined : `thinking ${event.id}`;
    let text = this.texts.get(key);
    if (text === undefined) {
      const count = make("span", "count");
      const body = make("div", "body markdown");
      text = { entry: null, body, count, writer: new Writer(body), length: 0, more: [] };
      const entry = make(event.agentId === undefined ? "article" : "li", "thinking");
      entry.dataset.kind = "thinking";
      entry.append(opener("", ["Thinking · ", count], () => [body]));
      text.entry = entry;
      this.place(entry, event.agentId);
      if (key !== undefined) {
        entry.dataset.id = key;
        this.texts.set(key, text);
      }
    }
    if (event.agentId === undefined) this.isInTurn = true;
    if (event.partial) {
      this.write(text, event.content);
      this.charge(event.content.length, text.entry);
    } else {
      this.charge(event.content.length - text.length, text.entry);
      this.finish(text, event.content);
      this.texts.delete(key);
    }
    const length = event.partial ? text.length : event.content.length;
    text.count.textContent = event.redacted || !length ? "not shown" : `${length.toLocaleString("en")} characters`;
  }

  /** Append a piece to the unfinished text. Past MAX_ANSWER, only count its characters. */
  write(text, piece) {
    text.entry.classList.add("live");
    const shown = cutAt(piece, Math.max(0, MAX_ANSWER - text.length));
    text.length += piece.length;
    if (text.more.length === 0 && shown > 0) text.writer.add(piece.slice(0, shown));
    if (shown === piece.length && text.more.length === 0) return;
    text.more.push(text.more.length ? piece : piece.slice(shown));
    text.hint ??= text.entry.appendChild(make("p", "hint more-to-come"));
    text.hint.textContent = `${(text.length - MAX_ANSWER).toLocaleString("en")} more characters so far`;
  }

  /**
   * Finish a text.
   * @param {string | null} content the whole text; null if the pieces so far are the whole text.
   */
  finish(text, content = null) {
    const { entry, body, writer } = text;
    entry.classList.remove("live");
    text.hint?.remove();
    const written = writer.text;
    const whole = content ?? written + text.more.join("");
    const end = cutAt(whole, MAX_ANSWER);
    if (written === whole.slice(0, end)) {
      writer.finish();
    } else {
      writer.stop();
      body.replaceChildren(markdown(whole.slice(0, end)));
    }
    unfolder(body, whole, end);
    if (entry.dataset.kind === "response") entry.append(copier("Copy the answer", () => whole));
  }

  /** Finish all texts. An interrupted turn or an exited CLI leaves unfinished texts. */
  finishAll() {
    for (const text of this.texts.values()) this.finish(text);
    this.texts.clear();
  }

  /** Show a person's prompt, or a message that the CLI added in a person's name. */
  prompted(event) {
    if (event.origin === "interruption") {
      this.note("Stopped by the user", "warning");
    } else if (event.origin !== undefined || event.agentId !== undefined) {
      const entry = make(event.agentId === undefined ? "article" : "li", "added");
      entry.dataset.kind = "added";
      const name = event.agentId === undefined ? "The CLI adds" : "Prompt";
      entry.append(opener("", [name], () => parts(event.parts ?? [{ text: event.content }])));
      this.place(entry, event.agentId, sizeOf(event.parts));
    } else {
      this.isInTurn = true;
      this.prompt(event.id, event.content, event.attachments, event.parts);
    }
  }

  /** Show a prompt when this page sends it or the CLI repeats it. When the CLI repeats it, move it to the end. */
  prompt(id, text, attachments = 0, all = []) {
    const pictures = parts(all.filter((part) => part.data !== undefined));
    const sent = this.prompts.get(id);
    if (sent) {
      if (pictures.length && !sent.querySelector(".picture")) sent.append(...pictures);
      this.kept.toEnd(sent);
      return;
    }
    const entry = make("article", "entry prompt");
    entry.dataset.kind = "prompt";
    entry.setAttribute("aria-label", "You");
    const body = make("div", "body");
    fill(body, text);
    entry.append(body);
    if (attachments) entry.append(make("p", "hint", attachments === 1 ? "1 attachment" : `${attachments} attachments`));
    entry.append(...pictures);
    this.append(entry, text.length + sizeOf(all));
    if (id === undefined) return;
    entry.dataset.id = id;
    this.prompts.set(id, entry);
  }

  /** Remove a prompt that could not be sent. */
  withdraw(id) {
    if (this.prompts.has(id)) this.kept.remove(this.prompts.get(id));
    this.prompts.delete(id);
  }

  // --- tool calls

  operate(event) {
    let call = this.calls.get(event.id);
    if (call === undefined) {
      const item = make("li", "call");
      item.dataset.kind = "operation";
      item.dataset.id = event.id;
      item.dataset.tool = event.kind;
      const row = make("div", "row");
      const state = make("span", "state");
      row.append(make("span", "dot"), foreign("span", "name", event.title || event.name || "Result"), state);
      item.append(row);
      const detail = event.command ?? event.path;
      if (detail && !event.title.includes(detail)) item.append(this.detail(event, detail));
      call = { item, state, opened: null, event: null, last: null };
      this.calls.set(event.id, call);
      (this.agents.calls(event.agentId) ?? this.calledIn()).append(item);
      this.charge(500, item.closest(".entry"));
    }
    call.last = event;
    call.item.dataset.state = event.state;
    call.state.textContent = STATES[event.state] ?? event.state;
    if (event.exitCode !== undefined) call.state.textContent += ` · exit code ${event.exitCode}`;
    this.describe(call, event);
    if (event.state === "started") this.isInTurn ||= event.agentId === undefined;
    if (event.state === "failed" || event.state === "denied") this.on.say(`${event.title}: ${STATES[event.state]}`);
  }

  /** Show a call's input and result, folded. They are unfolded if the call changes a file or failed. */
  describe(call, event) {
    const { input, change, content, decision } = { ...call.event, ...event };
    if (input === undefined && change === undefined && content === undefined) return;
    // Omit fields shown in the title or in the line below it.
    const given = input === null || typeof input !== "object" || Array.isArray(input) ? input : { ...input };
    if (given !== null && typeof given === "object" && !Array.isArray(given)) {
      for (const name of ["command", "file_path", "path", "description"]) {
        if (given[name] === event.command || given[name] === event.path || given[name] === event.title) delete given[name];
      }
    }
    const whole = { input: given, change, content, decision };
    call.event = { input, change, content, decision };
    const wasOpen = call.opened?.open;
    const isOpen = wasOpen ?? (change !== undefined || (event.state !== "started" && event.state !== "succeeded"));
    if (!about(whole).length) return;
    const opened = opener("about", [summaryOf(call.event)], () => about(whole), isOpen || (event.state === "failed" && Boolean(content?.length)));
    if (call.opened) call.opened.replaceWith(opened);
    else call.item.append(opened);
    call.opened = opened;
    this.charge(sizeOf(event.input) + sizeOf(event.change) + sizeOf(event.content), call.item.closest(".entry"));
  }

  detail(event, text) {
    const detail = make("div", event.command === undefined ? "detail path" : "detail command");
    detail.append(foreign("code", "", exact(text)));
    if (text.length <= 200 && (text.match(/\n/g) ?? []).length < 3) return detail;
    detail.classList.add("long");
    detail.append(toggler(detail, "Show all", "Show less"));
    return detail;
  }

  /** Return the list for the next call. Consecutive calls share one list. The place of an open question, a comment, ends a list. */
  calledIn() {
    if (this.group === null || this.group.entry !== this.log.lastChild || this.group.list.childElementCount > 200) {
      const entry = make("article", "entry calls");
      entry.setAttribute("aria-label", "Tools");
      const list = make("ul", "list");
      entry.append(list);
      this.append(entry, 0);
      this.group = { entry, list };
    }
    return this.group.list;
  }

  addAgent(card, agent) {
    const call = this.calls.get(agent);
    if (call) {
      call.item.append(card);
      return;
    }
    const entry = make("article", "entry calls");
    entry.setAttribute("aria-label", "Subagent");
    entry.append(card);
    this.append(entry, 0);
  }

  // --- progress, turns, notices and the state

  progress(event) {
    const { progress, progressStep, progressCount, progressBar } = this.places;
    progress.hidden = false;
    progressStep.textContent = event.currentStep;
    progressCount.textContent = `${event.completedSteps} of ${event.totalSteps}`;
    progressBar.value = event.percentage;
  }

  complete(event) {
    this.isInTurn = this.owesTurn = false;
    this.places.progress.hidden = true;
    this.cost = this.isPart && event.sessionCostUsd !== undefined ? event.sessionCostUsd : this.cost + (event.costUsd ?? 0);
    this.finishAll();
    const facts = [];
    if (event.costUsd !== undefined) facts.push(dollars(event.costUsd));
    if (event.durationMs) facts.push(seconds(event.durationMs));
    if (event.turns !== undefined) facts.push(event.turns === 1 ? "1 answer" : `${event.turns} answers`);
    const isStopped = !event.ok && event.error === STOPPED;
    const entry = make("div", event.ok || isStopped ? "entry turn" : "entry turn failed");
    entry.dataset.kind = "turn";
    entry.dataset.ok = event.ok;
    const agents = event.background ?? 0;
    if (agents) facts.push(agents === 1 ? "1 agent goes on" : `${agents} agents go on`);
    const done = agents ? "Turn done" : "Done";
    entry.append(make("span", "facts", [event.ok ? done : isStopped ? "Stopped" : "Failed", ...facts].join(" · ")));
    // Do not show an error twice: usually the CLI has already written it as text.
    if (event.error !== undefined && event.error !== this.lastText && !isStopped) {
      const error = make("div", "error");
      fill(error, event.error);
      entry.append(error);
    }
    if (event.output !== undefined) {
      entry.append(opener("about", ["Structured output"], () => [folded(JSON.stringify(event.output, null, 2))], true));
    }
    this.append(entry, (event.error ?? "").length + sizeOf(event.output));
    if (event.ok) this.on.say(`The turn is done${agents ? ", and work goes on in the background" : ""}.`);
    else this.on.say(isStopped ? "The turn was stopped." : `The turn failed: ${(event.error ?? "").slice(0, 200)}`);
  }

  notice(event) {
    if (event.kind === "status" && this.agents.shows(event.text)) return;
    if (!Object.hasOwn(NOTICES, event.kind)) {
      const text = event.kind === "cut_off" ? "Cut off" : event.text;
      this.note(text, event.kind === "cut_off" ? "warning" : event.level, event);
      return;
    }
    const entry = make("div", "entry notice");
    entry.dataset.kind = "notice";
    entry.dataset.notice = event.kind;
    entry.append(make("span", "label", NOTICES[event.kind]), " ");
    const body = make("span", "body");
    fill(body, event.text);
    entry.append(body);
    this.append(entry, event.text.length);
    this.on.say(`${NOTICES[event.kind]}: ${event.text.slice(0, 200)}`);
  }

  /** Show a quiet line, such as the output of a hook, in a call, in a subagent's card or in the conversation. */
  note(text, level, { callId, agentId, detail, fields } = {}) {
    const call = this.calls.get(callId);
    const entry = make(agentId !== undefined && !call ? "li" : "div", `note ${level === "warning" ? "warning" : ""}`);
    entry.dataset.kind = "note";
    entry.append(foreign("span", "", exact(text)));
    const more = detail ?? (fields ? JSON.stringify(fields, null, 2) : "");
    if (more.trim()) entry.append(opener("about", ["More"], () => [folded(more)]));
    if (call) {
      call.item.append(entry);
      this.charge(text.length + sizeOf(detail) + sizeOf(fields), call.item.closest(".entry"));
    } else {
      this.place(entry, agentId, text.length + sizeOf(detail) + sizeOf(fields));
    }
  }

  /** Handle a `session_state` from the service: whether the CLI has exited, and which questions are open. */
  state(event) {
    const hasEnded = event.ended && this.ended === null;
    if (!event.ended && this.ended !== null) this.on.say("The session continues.");
    this.ended = event.ended ? { exitCode: event.exitCode } : null;
    this.questions.keep(event.open, event.ended);
    if (event.ended) {
      this.finishAll();
      this.isInTurn = this.owesTurn = false;
      this.places.progress.hidden = true;
      this.agents.end();
    }
    if (hasEnded) this.on.say("The session has ended.");
  }

  // --- counting and removing entries

  append(entry, chars) {
    this.log.append(entry);
    return this.kept.count(entry, chars, this.at);
  }

  charge(chars, entry) {
    this.kept.charge(chars, entry);
  }

  /** Forget the calls, texts, prompts and subagents in an entry, because Kept is removing the entry. */
  forget(entry) {
    for (const one of [entry, ...entry.querySelectorAll("[data-id], [data-agent]")]) {
      this.calls.delete(one.dataset.id);
      this.texts.delete(one.dataset.id);
      this.prompts.delete(one.dataset.id);
      this.agents.forget(one.dataset.agent);
    }
  }

  // --- older entries

  /**
   * Show older events before all others. A second Conversation draws them. Then this one joins calls, subagents and questions
   * that begin in the older events to their later parts.
   * @param {object} page `events`, each with its `id`; and `before`, the id for even older events, or null.
   */
  prepend({ events, before }) {
    const log = make("div");
    const places = { log, questions: make("div"), agents: make("div"), agentList: make("ul"), progress: make("div") };
    for (const part of ["progressStep", "progressCount", "progressBar"]) places[part] = make("div");
    const nothing = () => {};
    const quiet = { changed: nothing, say: nothing, ask: nothing, left: nothing, isAtEnd: () => true };
    const older = new Conversation(places, quiet);
    for (const { event, id } of events) older.add(event, id);
    for (const [key, text] of older.texts) {
      // A later event, shown here, has the whole text. Remove the pieces.
      if (this.log.querySelector(`[data-id="${CSS.escape(key)}"]`)) older.kept.remove(text.entry);
    }
    older.finishAll();
    for (const [id, call] of older.calls) this.joinCall(older, id, call);
    for (const [id, card] of older.agents.cards) this.joinAgent(older, id, card);
    for (const [id, entry] of older.prompts) this.prompts.set(id, this.prompts.get(id) ?? entry);
    this.questions.join(older.questions);
    this.kept.prepend(older.kept, before);
  }

  /** Join a call that began in older events to its result, if the result is shown here. */
  joinCall(older, id, call) {
    const later = this.calls.get(id);
    this.calls.set(id, call);
    if (later === undefined) return;
    older.operate(later.last);
    call.item.append(...later.item.querySelectorAll(":scope > .note, :scope > .agent"));
    this.takeOut(later.item);
  }

  /** Join a subagent that began in older events to its later calls here. */
  joinAgent(older, id, card) {
    const later = this.agents.cards.get(id);
    if (later !== undefined) {
      older.agents.add(later.event);
      card.calls.append(...later.calls.childNodes);
      this.takeOut(later.box);
      Object.assign(card, { line: later.line, lineParts: later.lineParts });
    }
    this.agents.cards.set(id, card);
    for (const call of this.calls.values()) {
      if (call.last.agentId !== id || card.calls.contains(call.item)) continue;
      const group = call.item.closest(".calls");
      card.calls.append(call.item);
      this.clean(group);
    }
    card.calls.append(...this.log.querySelectorAll(`[data-of="${CSS.escape(id)}"]`));
  }

  takeOut(element) {
    const entry = element.closest(".entry");
    element.remove();
    this.clean(entry);
  }

  /** Remove a list of calls if it has become empty. */
  clean(entry) {
    if (entry?.classList.contains("calls") && !entry.querySelector("li, section")) this.kept.remove(entry);
  }
}

export function dollars(amount) {
  if (amount === 0) return "$0.00";
  return amount < 0.01 ? `$${amount.toFixed(4)}` : `$${amount.toFixed(2)}`;
}

function seconds(milliseconds) {
  const count = milliseconds / 1000;
  if (count < 0.1) return `${Math.ceil(milliseconds)} ms`;
  if (count < 60) return `${count.toFixed(1)} s`;
  return `${Math.floor(count / 60)} min ${Math.round(count % 60)} s`;
}
