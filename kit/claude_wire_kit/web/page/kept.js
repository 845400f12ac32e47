// The conversation's entries on the page. Above a limit, this class removes entries far from the view. The page loads them
// again when a person scrolls there.

import { make, makeButton } from "./text.js";

/** Maximum number of entries and of characters on the page. */
const MAX_ENTRIES = 1_000;
const MAX_CHARS = 16 * 1024 * 1024;
/** How many entries at the end remain while a person is reading far above. */
const AT_END = 100;
/** How many entries to remove together: the browser's layout takes as long for one entry as for many. */
const AT_ONCE = 50;

export class Kept {
  /**
   * @param {HTMLElement} log the element with the entries.
   * @param {object} on callbacks. `forget(entry)` is called before an entry is removed. `isAtEnd()` returns true if the end is in
   *   view, `isBelow(entry)` if the entry is far below the view, `isOpen(slot)` if the slot is the place of an open question.
   *   `older()` and `newest()` are called when a person asks for older entries, or for the newest.
   */
  constructor(log, on) {
    this.log = log;
    this.on = on;
    this.clear();
  }

  clear() {
    /** The entries in the log, in order. Each has the `entry`, its `chars`, and the `id` of the first event that it shows. */
    this.all = [];
    this.chars = 0;
    this.left = 0;
    /** The id for loading older events; null if there are none. */
    this.before = null;
    this.top?.remove();
    this.gap?.remove();
    this.top = this.gap = null;
  }

  /** Show or remove the line about older entries at the top. */
  mark() {
    if (this.before === null && !this.left) {
      this.top?.remove();
      this.top = null;
      return;
    }
    if (this.top === null) {
      this.top = make("div", "left hint");
      this.button = makeButton("quiet", "Show older entries", () => this.on.older());
      this.words = make("span");
      this.top.append(this.button, this.words);
    }
    if (this.log.firstChild !== this.top) this.log.prepend(this.top);
    this.button.hidden = this.before === null;
    this.words.textContent = this.before === null ? `${this.left.toLocaleString("en")} older entries are not shown.` : "";
  }

  /** Count a new entry at the end of the log. */
  count(entry, chars, id) {
    const one = { entry, chars: 0, id };
    entry.kept = one;
    this.all.push(one);
    this.charge(chars, entry);
    return entry;
  }

  /** Count more characters of an entry. */
  charge(chars, entry) {
    if (entry?.kept) entry.kept.chars += chars;
    this.chars += chars;
    while (this.all.length > 1 && (this.all.length > MAX_ENTRIES || this.chars > MAX_CHARS)) this.shrink();
  }

  /** Replace a node with an entry. */
  replace(node, entry, chars) {
    const one = node.kept;
    node.replaceWith(entry);
    entry.kept = one;
    if (one === undefined) return;
    one.entry = entry;
    this.charge(chars, entry);
  }

  /** Move an entry to the end of the log. */
  toEnd(entry) {
    this.log.append(entry);
    const at = this.all.lastIndexOf(entry.kept);
    if (at >= 0) this.all.push(...this.all.splice(at, 1));
  }

  /** Remove one entry. */
  remove(entry) {
    entry.remove();
    const at = this.all.indexOf(entry.kept);
    if (at < 0) return;
    this.chars -= entry.kept.chars;
    this.all.splice(at, 1);
  }

  /** Put older entries before all others. `before` is the id for even older events, or null. */
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

  /** Remove some entries: between the view and the end if possible, otherwise the oldest. */
  shrink() {
    const between = this.on.isAtEnd() ? null : this.between();
    if (between !== null) {
      this.removeRange(...between);
      this.split();
    } else {
      this.removeFirst(1);
    }
  }

  /** Remove the oldest entries, and all other entries of the last removed event, because the page loads whole events. */
  removeFirst(count) {
    const { id } = this.all[count - 1];
    while (count < this.all.length && id && this.all[count].id === id) count += 1;
    if (count === this.all.length) count = this.all.length - 1;
    this.left += this.removeRange(0, count);
    if (this.all[0].id) this.before = this.all[0].id;
    this.mark();
  }

  /** Return the range [from, count] of entries to remove between the view and the end, next to the gap; null if there is none. */
  between() {
    const end = this.all.length - AT_END;
    const at = this.gap === null ? end : this.gapAt;
    let from = at;
    while (from > 0 && at - from < AT_ONCE && this.on.isBelow(this.all[from - 1].entry)) from -= 1;
    if (from < at) return [from, at - from];
    if (this.gap !== null && at < end) return [at, Math.min(AT_ONCE, end - at)];
    return null;
  }

  /** The index of the first entry after the gap. */
  get gapAt() {
    const next = this.gap.nextSibling;
    return next?.kept ? this.all.indexOf(next.kept) : this.all.length;
  }

  removeRange(from, count) {
    const gone = this.all.splice(from, count);
    let entries = 0;
    for (const { entry, chars } of gone) {
      this.chars -= chars;
      if (!entry.isConnected) continue;
      if (entry.nodeType === Node.ELEMENT_NODE) {
        this.on.forget(entry);
        entries += 1;
      } else if (this.on.isOpen(entry)) {
        entry.kept = undefined; // keep the slot, because its question moves here once settled
        continue;
      }
      entry.remove();
    }
    if (this.gap === null || from > 0) this.splitAt = from;
    return entries;
  }

  /** Show a line where entries were removed. */
  split() {
    if (this.gap !== null) return;
    this.gap = make("div", "gap hint", "The entries in between are not shown. ");
    this.gap.append(makeButton("quiet", "Go to the newest", () => this.on.newest()));
    this.all[this.splitAt].entry.before(this.gap);
  }

  /** Once the end is in view, close the gap: remove the entries before it. The page can load them again. */
  close() {
    if (this.gap === null) return;
    const count = this.gapAt;
    if (count > 0) this.removeFirst(count);
    this.gap.remove();
    this.gap = null;
  }
}
