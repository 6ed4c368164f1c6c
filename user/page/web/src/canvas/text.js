// SPDX-License-Identifier: BSD-2-Clause
// Names in boxes: how wide they are, and elided where they are too wide, so that the last component stays.

/** Widths of texts in one font. Printable ASCII is looked up, the rest is asked for once. */
export class Ruler {
  constructor(font) {
    this.font = font;
    this.context = document.createElement('canvas').getContext('2d');
    this.context.font = font;
    this.ascii = Float32Array.from({length: 128}, (_, c) =>
      c < 32 ? 0 : this.context.measureText(String.fromCharCode(c)).width,
    );
    this.others = new Map();
  }

  width(text) {
    let sum = 0;
    for (let i = 0; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (c > 127) return this.measured(text);
      sum += this.ascii[c];
    }
    return sum;
  }

  measured(text) {
    let width = this.others.get(text);
    if (width === undefined) {
      if (this.others.size > 20000) this.others.clear();
      this.others.set(text, (width = this.context.measureText(text).width));
    }
    return width;
  }

  /** The text as it fits into so many pixels; '' where nothing sensible does. */
  fit(text, room) {
    if (room < 14) return '';
    const width = this.width(text);
    return width <= room ? text : elide(text, room, (t) => this.width(t));
  }
}

const LONG = 400; // characters, of which the last are looked at

/** Where components begin: at "::", behind ": ", "/" and blanks, outside of brackets. */
function componentsOf(text) {
  const starts = [];
  let depth = 0;
  for (let i = Math.max(1, text.length - LONG); i < text.length - 1; i++) {
    const c = text[i];
    if ('<([{'.includes(c)) depth++;
    else if ('>)]}'.includes(c)) depth = Math.max(0, depth - 1);
    else if (depth === 0 && c === ':' && text[i + 1] === ':') starts.push(i++);
    else if (depth === 0 && (c === '/' || (c === ' ' && text[i - 1] !== ')'))) starts.push(i + 1); // not "f() const"
  }
  return starts;
}

/** The outer components go first, then the arguments of the last one; that one is cut where it is too wide itself. */
export function elide(text, room, measure) {
  const fits = (t) => measure(t) <= room;
  const starts = componentsOf(text);
  for (const start of starts) if (fits(`…${text.slice(start)}`)) return `…${text.slice(start)}`;
  const last = text.slice(starts.at(-1) ?? 0).replace(/^::/, '');
  const bare = last.replace(/(?<=\w)[<(].*$/s, '');
  if (bare !== last) for (const t of [`…${bare}…`, `${bare}…`]) if (fits(t)) return t;
  if (bare !== text && fits(bare)) return bare;
  return cutMiddle(bare, room, measure);
}

const LEAST = 4; // characters, with fewer a name says nothing

/** `measure` tells how wide a text is. Never cuts a character of two code units in two. */
export function cutMiddle(text, room, measure) {
  const all = text.length > 400 ? [...text.slice(0, 200), ...text.slice(-200)] : [...text];
  let [low, high] = [0, all.length - 1]; // how many characters are kept
  const cut = (kept) =>
    all.slice(0, Math.ceil(kept / 2)).join('') + '…' + all.slice(all.length - Math.floor(kept / 2)).join('');
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(cut(middle)) <= room) low = middle;
    else high = middle - 1;
  }
  return low < LEAST ? '' : cut(low);
}
