// Subagents. Each has a card in the conversation with its tool calls and, while it works, a line in the list at the top.

import { foreign, make } from "./text.js";

const WORDS = { started: "started", running: "running", completed: "done", failed: "failed", stopped: "stopped" };
const OVER = new Set(["completed", "failed", "stopped"]);

export class Agents {
  /**
   * @param {object} places the elements `agents` and `agentList`, the list of working subagents.
   * @param {function} place `place(card, id)` puts a subagent's card into the conversation.
   */
  constructor(places, place) {
    this.places = places;
    this.place = place;
    this.cards = new Map();
    /** The latest event. */
    this.latest = null;
  }

  /** Return true if a notice says what the card of the latest event shows: that the subagent has ended, and its summary. */
  shows(text) {
    return this.latest !== null && text === `task ${this.latest.status}: ${this.latest.summary}`;
  }

  clear() {
    this.cards.clear();
    this.latest = null;
    this.end();
  }

  forget(id) {
    this.cards.get(id)?.line.remove();
    this.cards.delete(id);
  }

  /** The number of subagents that are working now. */
  get count() {
    return this.places.agentList.childElementCount;
  }

  /** Empty the list of working subagents, because the CLI has exited. */
  end() {
    this.places.agentList.replaceChildren();
    this.places.agents.hidden = true;
  }

  /** Return the list element with a subagent's tool calls; null if the subagent is unknown. */
  calls(id) {
    return this.cards.get(id)?.calls ?? null;
  }

  add(event) {
    let card = this.cards.get(event.agentId);
    if (card === undefined) {
      const box = make("section", "agent");
      box.dataset.kind = "agent";
      box.dataset.agent = event.agentId;
      const head = make("div", "row");
      const parts = {};
      for (const part of ["name", "last", "summary"]) parts[part] = foreign("span", part, "");
      parts.state = make("span", "state");
      head.append(make("span", "dot"), parts.name, parts.state);
      const detail = make("p", "detail");
      detail.append(parts.summary, parts.last);
      const calls = make("ul", "list");
      box.append(head, detail, calls);
      const line = make("li", "agent-line");
      const lineParts = { name: foreign("span", "name", ""), last: foreign("span", "last", "") };
      line.append(make("span", "dot"), lineParts.name, lineParts.last);
      card = { box, parts, calls, line, lineParts };
      this.cards.set(event.agentId, card);
      this.place(box, event.agentId);
    }
    card.event = this.latest = event;
    card.box.dataset.state = event.status;
    card.box.setAttribute("aria-label", `Subagent ${event.name}`);
    card.parts.name.textContent = event.name;
    card.parts.state.textContent = WORDS[event.status] ?? event.status;
    card.parts.summary.textContent = event.summary ?? "";
    card.parts.last.textContent = OVER.has(event.status) ? "" : (event.lastTool ?? "");
    card.lineParts.name.textContent = event.name;
    card.lineParts.last.textContent = event.lastTool ?? event.summary ?? "";
    if (OVER.has(event.status)) card.line.remove();
    else if (!card.line.isConnected) this.places.agentList.append(card.line);
    this.places.agents.hidden = this.count === 0;
  }
}
