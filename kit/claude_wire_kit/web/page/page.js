// The page. It lists the sessions, shows one of them, sends prompts and answers, and connects the other modules.

import { Attention } from "./attention.js";
import { Complete } from "./complete.js";
import { Conversation, dollars } from "./conversation.js";
import { Create } from "./create.js";
import { Images } from "./images.js";
import { Manage } from "./manage.js";
import { Past } from "./past.js";
import { Queue } from "./queue.js";
import { Search } from "./search.js";
import { Settings } from "./settings.js";
import { themes } from "./theme.js";
import { Stream, words } from "./stream.js";
import { make, sessionButton } from "./text.js";

/** Milliseconds between two requests for the list of sessions. */
const LOOK = 4_000;
/** How many events to load when a session opens, and for each page of older events. */
const LAST = 200;
/** The page sends a shorter prompt with keepalive. Browsers allow 64 KiB for it, and a character takes at most 6 bytes in JSON. */
const MAX_KEPT_ALIVE = 10_000;
const LIVES = {
  starting: "starting",
  idle: "ready",
  running: "working",
  asking: "asks you",
  done: "done",
  ended: "ended",
  lost: "ended",
};

const at = (id) => document.getElementById(id);
const places = {
  log: at("log"),
  questions: at("questions"),
  progress: at("progress"),
  progressStep: at("progress-step"),
  progressCount: at("progress-count"),
  progressBar: at("progress-bar"),
  agents: at("agents"),
  agentList: at("agent-list"),
};

/** The id of the shown session; null if none is shown. */
let shown = null;
let stream = null;
/** True once the first events are shown. Until then, a screen reader reads nothing aloud. */
let isLevel = false;
function level(is) {
  isLevel = is;
  at("log").setAttribute("aria-busy", String(!is));
}
/** The id of the session that this page is resuming; null when its CLI runs. */
let resumed = null;
/** Resolves once the service has replied to all prompts. */
let repliesToPrompts = Promise.resolve();
let sessions = [];
/** When the list of sessions was last loaded; null before the first time. */
let lookedAt = null;
let isAtEnd = true;
/** The scrollTop, clientHeight and scrollHeight of #main after the last scrolling. */
let last = { top: 0, height: 0, whole: 0 };
/** True if the prompt should get the focus as soon as it is enabled. */
let isPromptWanted = false;

/** Scroll to the end of the conversation, and stay there when it grows. */
function toEnd() {
  isAtEnd = true;
  conversation.kept.close();
  down();
}

const conversation = new Conversation(places, {
  answer,
  isAtEnd: () => isAtEnd,
  isBelow: (entry) => entry.isConnected && topOf(entry) > at("main").clientHeight * 2,
  older: () => older(true),
  newest: toEnd,
  ask: (text) => isLevel && (at("ask").textContent = text),
  say: (text) => isLevel && (at("say").textContent = text),
  left: () => (conversation.questions.count ? conversation.questions.focus() : at("prompt").focus()),
  changed,
});

const attention = new Attention(at("notify"), (id) => sessions.some((one) => one.id === id) && show(id));

const settings = new Settings(
  { settings: at("settings"), model: at("model"), mode: at("mode") },
  {
    abilities: () => call("GET", urlOf(shown, "abilities")),
    set: (change) => call("POST", urlOf(shown, "settings"), change),
    fault,
  },
);

const manage = new Manage(at("manage"), {
  async post(what, body) {
    const session = shown;
    if (what === "remove") stream.close(); // otherwise it would try to reconnect to a removed session
    try {
      await call("POST", urlOf(session, what), body);
    } catch (error) {
      if (what === "remove") again(session);
      throw error;
    }
  },
  done(what) {
    if (what === "remove") leave();
    look();
  },
});

const queue = new Queue(at("queue"), {
  withdraw: (uuid) => call("POST", urlOf(shown, "withdraw"), { uuid }),
  edit({ text }) {
    at("prompt").value = at("prompt").value ? `${text}\n${at("prompt").value}` : text;
    grow();
    changed();
    at("prompt").focus();
  },
  fault,
  changed,
});

const create = new Create(at("create"), {
  async start(body, close) {
    const info = await call("POST", "sessions", body);
    close();
    await look();
    isPromptWanted = true;
    show(info.id);
    changed();
  },
});

const images = new Images(at("images"), { fault, changed });

const complete = new Complete(at("prompt"), at("complete"), {
  commands: () => settings.commands,
  files: async (text) => (await call("GET", `${urlOf(shown, "files")}?q=${encodeURIComponent(text.slice(0, 200))}`)).files,
  changed() {
    grow();
    changed();
  },
});

const search = new Search(at("search"), at("search-hint"), {
  find: (text) => call("GET", `search?q=${encodeURIComponent(text)}`),
  changed: list,
  say: (text) => (at("say").textContent = text),
  fault,
});

/** The shown session on disk; null if the page shows a session of the supervisor, or no session. */
let read = null;
new Past(at("past"), { list: () => call("GET", "past"), open: openPast, fault });

themes(at("theme"));

// --- the service

async function call(method, path, body, more = {}) {
  const options = { method, headers: {}, cache: "no-store", ...more };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Fault(0, "", "The service cannot be reached.");
  }
  if (!answer.ok) {
    const copy = answer.clone();
    const said = await words(answer);
    const error = await copy.json().then((json) => json.error, () => "");
    throw new Fault(answer.status, error, said);
  }
  return answer.status === 204 ? null : answer.json();
}

class Fault extends Error {
  constructor(status, error, message) {
    super(message);
    this.status = status;
    this.error = error;
  }
}

function urlOf(id, what) {
  return `sessions/${encodeURIComponent(id)}/${what}`;
}

/** Get a cookie for the token in the URL, and remove the token from the URL. */
async function enter() {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token");
  if (token === null) return;
  given.delete("token");
  const rest = given.toString();
  history.replaceState(null, "", rest ? `#${rest}` : location.pathname + location.search);
  try {
    await call("POST", "login", { token });
  } catch (error) {
    fault(error.message);
  }
}

// --- the list of sessions

async function look() {
  let found;
  try {
    found = await call("GET", "sessions");
  } catch (error) {
    if (error.status === 401) locked();
    else if (stream === null) fault(error.message);
    return;
  }
  sessions = found.sessions;
  lookedAt = performance.now();
  at("log").dataset.empty = sessions.length ? "Nothing has been said yet." : "Start a session to begin.";
  at("new").disabled = found.profiles.length === 0;
  at("new").title = found.profiles.length ? "" : "The configuration of the service has no profiles.";
  create.take(found.profiles);
  attend();
  list();
  if (read !== null) return;
  if (shown === null) {
    const wanted = new URLSearchParams(location.hash.slice(1)).get("session");
    const one = sessions.find((info) => info.id === wanted) ?? sessions.toSorted((a, b) => b.began - a.began)[0];
    if (one) show(one.id);
  } else {
    head();
    conversation.settle(sessions.find((one) => one.id === shown)?.life);
  }
}

function locked() {
  at("new").disabled = true;
  at("log").dataset.empty = "";
  link("refused", "Locked");
  fault("Open the address that “claude-wire serve” printed: it contains the token for this page.");
}

function list() {
  const wanted = sessions.filter((info) => search.has(info));
  const rows = wanted.toSorted((a, b) => b.began - a.began).map((info) => {
    const row = make("li");
    const life = lifeOf(info);
    const button = sessionButton(info.name || lastOf(info.cwd), LIVES[life] ?? life, info.cwd, () => choose(info.id));
    button.dataset.id = info.id;
    button.dataset.life = life;
    if (info.id === shown) button.setAttribute("aria-current", "true");
    button.append(...search.excerpts(info.id));
    row.append(button);
    return row;
  });
  const focus = document.activeElement?.closest?.("#sessions button")?.dataset.id;
  at("sessions").replaceChildren(...rows);
  if (focus) at("sessions").querySelector(`[data-id="${CSS.escape(focus)}"]`)?.focus();
  at("no-sessions").hidden = rows.length > 0;
  at("no-sessions").textContent = sessions.length ? "No session contains this text." : "There are no sessions yet.";
}

/** Return the state of a session. For the shown session, use its events, which are newer than the list. */
function lifeOf(info) {
  if (info.id !== shown || !isLevel) return info.life === "idle" && attention.isDone(info.id) ? "done" : info.life;
  if (conversation.ended !== null) return "ended";
  if (conversation.questions.count) return "asking";
  return conversation.isBusy ? "running" : info.life;
}

function lastOf(path) {
  return path.replace(/\/+$/, "").split("/").pop() || path;
}

function head() {
  const info = sessions.find((one) => one.id === shown);
  at("name").textContent = info ? info.name || lastOf(info.cwd) : "No session";
  at("folder").textContent = info ? info.cwd : "";
  at("manage-open").hidden = !info;
  attend();
}

/** Update the title and the icon of the tab, and notify the person of questions and ended turns. */
function attend() {
  if (lookedAt === null) return;
  const { questions, isBusy } = conversation;
  attention.update(
    shown,
    sessions.map((info) => {
      const name = info.name || lastOf(info.cwd);
      const isWorking = info.life === "running" || info.life === "asking";
      if (info.id !== shown || !isLevel) {
        return { id: info.id, name, count: info.life === "asking" ? 1 : 0, question: "", isBusy: isWorking, isLevel: false };
      }
      // The list also includes work that began before the first loaded event.
      const goesOn = isBusy || queue.count > 0 || (isWorking && conversation.ended === null);
      return { id: info.id, name, count: questions.count, question: questions.words, isBusy: goesOn, isLevel };
    }),
  );
}

// --- the shown session

/** Show a session on disk. A person can read and resume it. */
async function openPast(session) {
  try {
    const { events, before } = await call("GET", `past/${encodeURIComponent(session.id)}/events?last=${LAST}`);
    if (document.body.classList.contains("side-open")) side(false);
    leave();
    read = session;
    hasOlderFailed = false;
    if (before !== null) conversation.add({ type: "older", before });
    for (const { event, id } of events) conversation.add(event, id);
    conversation.add({ type: "session_state", ended: true, exitCode: null, open: [] });
    at("name").textContent = session.title;
    at("folder").textContent = session.cwd;
    link("idle", "On disk");
    at("resume").focus();
    toEnd();
    older();
  } catch (error) {
    fault(error.message);
  }
}

/** Show no session. */
function leave() {
  stream?.close();
  stream = shown = read = null;
  level(false);
  conversation.clear();
  settings.clear();
  queue.clear();
  link("idle", "Not connected");
  history.replaceState(null, "", location.pathname);
  head();
  list();
  changed();
}

function again(id) {
  shown = null;
  show(id);
}

function show(id) {
  if (shown === id) return;
  stream?.close();
  shown = id;
  read = null;
  hasOlderFailed = false;
  level(false);
  fault("");
  history.replaceState(null, "", `#session=${encodeURIComponent(id)}`);
  conversation.clear();
  settings.clear();
  queue.clear();
  complete.close();
  head();
  list();
  stream = new Stream(urlOf(id, `events?details=1&last=${LAST}`), {
    event(event, place) {
      if (event.type === "session_state" && event.ended) resumed = null; // the resumed CLI exited again
      conversation.add(event, place);
      follow(event);
      if (event.type === "session_state" && !isLevel) {
        level(true);
        toEnd();
        older();
      }
    },
    state(state, text, status) {
      link(state, text);
      if (status === 401) locked();
      else if (state === "refused") fault(text);
      if (state === "live" || state === "lost") at("say").textContent = text;
    },
    alive() {
      // Browsers throttle the timers of a hidden page, but not the events that it receives.
      if (document.hidden && performance.now() - lookedAt > LOOK) look();
    },
    anew(text) {
      level(false);
      conversation.clear();
      queue.clear();
      fault(`The conversation was reloaded: ${text}`);
    },
  });
  changed();
}

/** Update the settings and the queue after an event. */
function follow(event) {
  if (event.type === "session_state") {
    settings.state(event);
    queue.state(event.queued ?? []);
  } else if (event.type === "user_prompt") {
    queue.remove(event.id);
  } else if (event.type === "turn_complete") {
    // A CLI that does not repeat prompts does not name its next turn's prompt. Take the oldest prompt.
    const next = queue.takeUntold();
    if (next) conversation.prompt(next.uuid, next.text);
  }
}

function link(state, text) {
  at("link").dataset.state = state;
  at("link-text").textContent = text;
}

function fault(text) {
  at("fault").textContent = text;
}

let isChangeDue = false;
let wasBusy = false;
/** Update everything around the conversation soon, once for many events. */
function changed() {
  if (isChangeDue) return;
  isChangeDue = true;
  setTimeout(() => {
    isChangeDue = false;
    const hasEnded = conversation.ended !== null;
    at("cost").textContent = dollars(conversation.cost);
    at("now").hidden = places.progress.hidden && places.agents.hidden;
    const prompt = at("prompt");
    prompt.disabled = shown === null || hasEnded;
    prompt.placeholder = (shown ?? read) === null ? "Choose a session first" : hasEnded ? "The session has ended" : "Ask Claude …";
    at("send").disabled = prompt.disabled || !(prompt.value.trim() || images.count);
    at("send").hidden = (shown ?? read) !== null && hasEnded;
    at("resume").hidden = !at("send").hidden;
    at("resume").disabled = resumed !== null && resumed === shown;
    if (!hasEnded && resumed === shown && resumed !== null) {
      resumed = null;
      isPromptWanted = true;
    }
    if (isPromptWanted && !prompt.disabled) {
      isPromptWanted = false;
      prompt.focus();
    }
    at("stop").hidden = !conversation.isBusy || hasEnded;
    const count = conversation.questions.count;
    const code = hasEnded ? conversation.ended.exitCode : null;
    at("status").textContent = hasEnded
      ? `The session has ended${code === null ? "" : ` with exit code ${code}`}.`
      : count
        ? `${count === 1 ? "A question waits" : `${count} questions wait`} for you.`
        : conversation.isBusy
          ? "Claude is working …"
          : "";
    if (isAtEnd) down();
    const row = at("sessions").querySelector("[aria-current]");
    if (row && row.dataset.life !== lifeOf(sessions.find((one) => one.id === shown))) list();
    attend();
    if (wasBusy && !conversation.isBusy) look();
    wasBusy = conversation.isBusy;
  });
}

function down() {
  const main = at("main");
  main.scrollTop = main.scrollHeight;
  remember();
}

function remember() {
  const { scrollTop, clientHeight, scrollHeight } = at("main");
  last = { top: scrollTop, height: clientHeight, whole: scrollHeight };
}

/** An entry's position, in pixels from the top edge of the view. */
function topOf(entry) {
  return entry.getBoundingClientRect().top - at("main").getBoundingClientRect().top;
}

/** True while older entries are being loaded. */
let isOlderDue = false;
/** True if loading older entries failed, or there was no room for them. A person must then press the button. */
let hasOlderFailed = false;

/** Load older entries if the view is near the first entry, or if a person asks for them. The view does not move. */
async function older(isAsked = false) {
  const session = shown ?? read;
  const main = at("main");
  const { kept } = conversation;
  while (kept.before !== null && !isOlderDue && (isAsked || (!hasOlderFailed && main.scrollTop < main.clientHeight))) {
    const { before } = kept;
    const path = read === null ? urlOf(shown, "events?details=1&") : `past/${encodeURIComponent(read.id)}/events?`;
    isOlderDue = true;
    try {
      const page = await call("GET", `${path}last=${LAST}&before=${encodeURIComponent(before)}`);
      if (session !== (shown ?? read) || kept.before !== before) return;
      stay(() => conversation.prepend(page));
      hasOlderFailed = kept.before === before;
    } catch (error) {
      hasOlderFailed = true;
      if (session === (shown ?? read)) fault(`Older entries cannot be shown: ${error.message}`);
    } finally {
      isOlderDue = false;
    }
    isAsked = false;
  }
}

/** Change entries above the view, and scroll so that the view does not move. */
function stay(change) {
  const main = at("main");
  const isInView = ({ entry }) => entry.isConnected && entry.nodeType === Node.ELEMENT_NODE && topOf(entry) >= 0;
  const entry = isAtEnd ? undefined : conversation.kept.all.find(isInView)?.entry;
  const before = entry && topOf(entry);
  change();
  if (isAtEnd) down();
  else if (entry?.isConnected) main.scrollTop += topOf(entry) - before;
}

// --- sending

async function send() {
  const text = at("prompt").value;
  if (!(text.trim() || images.count) || at("prompt").disabled) return;
  const session = shown;
  const uuid = crypto.randomUUID();
  const taken = images.count ? await images.take() : [];
  at("prompt").value = "";
  grow();
  isAtEnd = true;
  const waits = conversation.isInTurn;
  if (waits) queue.add(uuid, text, taken);
  else conversation.prompt(uuid, text, taken.length);
  conversation.isInTurn = true;
  fault("");
  changed();
  // With keepalive, the browser sends the prompt even if the person closes the page now.
  const body = taken.length ? { text, uuid, images: taken } : { text, uuid };
  const keepalive = text.length < MAX_KEPT_ALIVE && !taken.length;
  const reply = call("POST", urlOf(session, "prompts"), body, { keepalive });
  repliesToPrompts = Promise.allSettled([repliesToPrompts, reply]).then(() => {});
  try {
    await reply;
  } catch (error) {
    if (session !== shown) return;
    conversation.isInTurn = waits;
    conversation.withdraw(uuid);
    queue.remove(uuid);
    if (!at("prompt").value) at("prompt").value = text;
    grow();
    fault(`The prompt was not sent: ${error.message}`);
    changed();
  }
}

async function answer(requestId, allow, option, more) {
  try {
    await call("POST", urlOf(shown, "answers"), { requestId, allow, option, ...more });
    return { counts: true };
  } catch (error) {
    if (error.status === 409 && error.error === "settled") return { over: true, words: "Answered elsewhere" };
    return { words: `The answer was not sent: ${error.message}` };
  }
}

async function stop() {
  const session = shown;
  await repliesToPrompts; // an interrupt that arrives before its prompt would have no effect
  try {
    await call("POST", urlOf(session, "interrupt"));
    at("say").textContent = "Stopping.";
  } catch (error) {
    fault(`The turn goes on: ${error.message}`);
  }
}

/** Resume a session on disk, as a new supervisor session. */
async function goOn({ id }) {
  try {
    const info = await call("POST", `past/${encodeURIComponent(id)}/resume`);
    read = null;
    isPromptWanted = true;
    show(info.id);
    look();
  } catch (error) {
    fault(`The session was not resumed: ${error.message}`);
  }
}

/** Resume the shown session. If a restarted supervisor no longer has the environment, use the only profile's. */
async function resume(profile) {
  if (read !== null) {
    await goOn(read);
    return;
  }
  const session = shown;
  resumed = session;
  fault("");
  changed();
  try {
    await call("POST", urlOf(session, "resume"), profile === undefined ? {} : { profile });
    look();
  } catch (error) {
    const known = create.profiles;
    if (error.error === "environment" && profile === undefined && known.length === 1) {
      await resume(known[0].name);
      return;
    }
    resumed = null;
    if (session === shown) fault(`The session was not resumed: ${error.message}`);
    changed();
  }
}

function grow() {
  const prompt = at("prompt");
  prompt.rows = Math.min(8, Math.max(1, prompt.value.split("\n").length, Math.ceil(prompt.value.length / 80)));
}

// --- mouse and keyboard

/** Show a session that a person chose in the list. */
function choose(id) {
  if (document.body.classList.contains("side-open")) side(false);
  show(id);
  if (!at("prompt").disabled) at("prompt").focus({ preventScroll: true });
}

function side(isOpen) {
  document.body.classList.toggle("side-open", isOpen);
  at("side-open").setAttribute("aria-expanded", String(isOpen));
  for (const id of ["top", "main", "now", "foot"]) at(id).inert = isOpen;
  if (isOpen) (at("sessions").querySelector("[aria-current]") ?? at("new")).focus();
  else at("side-open").focus();
}

at("side-open").addEventListener("click", () => side(true));
at("side-close").addEventListener("click", () => side(false));
at("new").addEventListener("click", () => {
  if (document.body.classList.contains("side-open")) side(false);
  create.open();
});
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
at("prompt").addEventListener("input", () => {
  grow();
  changed();
});
at("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  }
});
at("prompt").addEventListener("paste", (event) => {
  if (images.add(event.clipboardData?.files ?? [])) event.preventDefault();
});
for (const type of ["dragover", "drop"]) {
  document.addEventListener(type, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault(); // otherwise the browser would open the file instead of the page
    if (type === "drop" && !at("prompt").disabled) images.add(event.dataTransfer.files);
  });
}
at("stop").addEventListener("click", stop);
at("manage-open").addEventListener("click", () => {
  const info = sessions.find((one) => one.id === shown);
  if (info) manage.open({ name: info.name, hasEnded: conversation.ended !== null });
});
at("resume").addEventListener("click", () => resume());
at("main").addEventListener(
  "scroll",
  () => {
    const main = at("main");
    const gap = main.scrollHeight - main.scrollTop - main.clientHeight;
    // A gap alone does not mean that a person has scrolled up: the conversation may have grown since down() ran. The browser
    // itself also scrolls up when #main gets taller or the conversation gets shorter.
    const isByPerson = main.scrollTop < last.top && main.clientHeight <= last.height && main.scrollHeight >= last.whole;
    if (isByPerson) isAtEnd = gap < 2;
    else if (gap < 40) isAtEnd = true;
    at("down").hidden = isAtEnd;
    remember(); // after the button, which takes room in the conversation
    if (isAtEnd) conversation.kept.close();
    else older();
  },
  { passive: true },
);
at("down").addEventListener("click", toEnd);
new ResizeObserver(() => isAtEnd && down()).observe(at("main"));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (document.body.classList.contains("side-open")) side(false);
  else if (document.activeElement?.closest("#questions")) at("prompt").focus();
  else if (conversation.questions.count) conversation.questions.focus();
  else if (!at("stop").hidden) stop();
});
document.addEventListener("visibilitychange", () => document.hidden || look());
addEventListener("hashchange", async () => {
  await enter();
  const wanted = new URLSearchParams(location.hash.slice(1)).get("session");
  if (wanted && wanted !== shown && sessions.some((info) => info.id === wanted)) show(wanted);
  else look();
});

await enter();
await look();
setInterval(look, LOOK);
