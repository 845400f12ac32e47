// What the page keeps of a conversation: so many entries and characters. What is far from view goes, and comes again when one
// scrolls there.

import { make } from "./text.js";

/** Entries that the page keeps, and characters. */
const MAX_ENTRIES = 1_000;
const MAX_CHARS = 16 * 1024 * 1024;
/** Entries that stay at the end while one reads far above. */
const AT_END = 100;
/** Entries that go at once: looking where they stand costs as much for one as for many. */
const AT_ONCE = 50;

export class Kept {
  /**
   * @param {HTMLElement} log where the entries stand.
   * @param {object} on `forget(entry)` before an entry goes; `isAtEnd()` whether the end is in view; `isBelow(entry)` whether an
   *   entry stands far below what is in view; `isOpen(slot)` whether a place in the log waits for its question; `older()` when a
   *   person asks for older entries; `newest()` likewise.
   */
  constructor(log, on) {
    this.log = log;
    this.on = on;
    this.clear();
  }

  clear() {
    /** What stands in the log, in order: the `entry`, its `chars`, and the `id` of the first event that it shows. */
    this.all = [];
    this.chars = 0;
    this.left = 0;
    /** Before this id there may be older events, which can be asked for; null for none. */
    this.before = null;
    this.top?.remove();
    this.gap?.remove();
    this.top = this.gap = null;
  }

  /** Say that there are older entries, unless there are none. */
  mark() {
    if (this.before === null && !this.left) {
      this.top?.remove();
      this.top = null;
      return;
    }
    if (this.top === null) {
      this.top = make("div", "left hint");
      this.button = make("button", "quiet", "Show older entries");
      this.button.type = "button";
      this.button.addEventListener("click", () => this.on.older());
      this.words = make("span");
      this.top.append(this.button, this.words);
    }
    if (this.log.firstChild !== this.top) this.log.prepend(this.top);
    this.button.hidden = this.before === null;
    this.words.textContent = this.before === null ? `${this.left.toLocaleString("en")} older entries are not shown.` : "";
  }

  /** Take an entry that stands at the end of the log now. */
  count(entry, chars, id) {
    const one = { entry, chars: 0, id };
    entry.kept = one;
    this.all.push(one);
    this.charge(chars, entry);
    return entry;
  }

  /** Count characters that an entry has got besides. */
  charge(chars, entry) {
    if (entry?.kept) entry.kept.chars += chars;
    this.chars += chars;
    while (this.all.length > 1 && (this.all.length > MAX_ENTRIES || this.chars > MAX_CHARS)) this.drop();
  }

  /** An entry takes the place of another node. */
  replace(node, entry, chars) {
    const one = node.kept;
    node.replaceWith(entry);
    entry.kept = one;
    if (one === undefined) return;
    one.entry = entry;
    this.charge(chars, entry);
  }

  /** An entry moves to the end of the log. */
  toEnd(entry) {
    this.log.append(entry);
    const at = this.all.lastIndexOf(entry.kept);
    if (at >= 0) this.all.push(...this.all.splice(at, 1));
  }

  /** Take out an entry that stands nowhere any more. */
  remove(entry) {
    entry.remove();
    const at = this.all.indexOf(entry.kept);
    if (at < 0) return;
    this.chars -= entry.kept.chars;
    this.all.splice(at, 1);
  }

  /** Put the entries of older events before all others. */
  prepend(other, before) {
    const mine = this.all;
    this.all = other.all.concat(mine);
    this.chars += other.chars;
    this.before = before;
    if (this.top !== null) this.top.after(...other.log.childNodes);
    else this.log.prepend(...other.log.childNodes);
    this.mark();
    this.charge(0, null);
  }

  /** Let entries go: the oldest, or those between what is read and the end. */
  drop() {
    const between = this.on.isAtEnd() ? null : this.between();
    if (between !== null) {
      this.take(...between);
      this.split();
    } else {
      this.takeFirst(1);
    }
  }

  /** The oldest entries go; and so do others of the same event, which come together when they come again. */
  takeFirst(count) {
    const { id } = this.all[count - 1];
    while (count < this.all.length && id && this.all[count].id === id) count += 1;
    if (count === this.all.length) count = this.all.length - 1;
    this.left += this.take(0, count);
    if (this.all[0].id) this.before = this.all[0].id;
    this.mark();
  }

  /** Where entries can go that are neither in view nor at the end: next to the gap, if there is one. */
  between() {
    const end = this.all.length - AT_END;
    const at = this.gap === null ? end : this.gapAt;
    let from = at;
    while (from > 0 && at - from < AT_ONCE && this.on.isBelow(this.all[from - 1].entry)) from -= 1;
    if (from < at) return [from, at - from];
    if (this.gap !== null && at < end) return [at, Math.min(AT_ONCE, end - at)];
    return null;
  }

  /** Where the entries after the gap begin. */
  get gapAt() {
    const next = this.gap.nextSibling;
    return next?.kept ? this.all.indexOf(next.kept) : this.all.length;
  }

  take(from, count) {
    const gone = this.all.splice(from, count);
    let entries = 0;
    for (const { entry, chars } of gone) {
      this.chars -= chars;
      if (!entry.isConnected) continue;
      if (entry.nodeType === Node.ELEMENT_NODE) {
        this.on.forget(entry);
        entries += 1;
      } else if (this.on.isOpen(entry)) {
        entry.kept = undefined; // its question stands elsewhere, and comes here when it is settled
        continue;
      }
      entry.remove();
    }
    if (this.gap === null || from > 0) this.splitAt = from;
    return entries;
  }

  /** Say that there are entries between which are not shown. */
  split() {
    if (this.gap !== null) return;
    this.gap = make("div", "gap hint", "Entries between are not shown. ");
    const button = make("button", "quiet", "Go to the newest");
    button.type = "button";
    button.addEventListener("click", () => this.on.newest());
    this.gap.append(button);
    this.all[this.splitAt].entry.before(this.gap);
  }

  /** At the end again: what stood before the gap goes. It can be asked for again. */
  close() {
    if (this.gap === null) return;
    const count = this.gapAt;
    if (count > 0) this.takeFirst(count);
    this.gap.remove();
    this.gap = null;
  }
}
