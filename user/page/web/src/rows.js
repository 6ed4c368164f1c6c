// SPDX-License-Identifier: BSD-2-Clause
// Of many rows of one height in a box that scrolls only those are made that can be seen.
import {h} from './dom.js';
import {formatCount} from './format.js';

export const ROW_PX = 26; // --row in style.css
const MARGIN = 20; // rows beyond either edge
const PRINTED = 2000; // rows on paper, at most: about 40 pages

/**
 * @param {HTMLElement} box what scrolls
 * @param {HTMLElement} body a tbody inside of it
 * @param {(index: number) => HTMLElement} makeRow
 */
export function virtualRows(box, body, makeRow) {
  const before = h('tr', {class: 'space', 'aria-hidden': 'true'}, h('td'));
  const after = h('tr', {class: 'space', 'aria-hidden': 'true'}, h('td'));
  const made = new Map();
  let count = 0;
  let printing = false;
  body.append(before, after);

  function draw() {
    const top = box.scrollTop;
    // the box may be hidden now: the window is at least as high
    const seen = Math.ceil((top + window.innerHeight) / ROW_PX) + MARGIN;
    const last = Math.min(count, printing ? PRINTED : seen);
    const first = printing ? 0 : Math.max(0, Math.min(last, Math.floor(top / ROW_PX) - MARGIN));
    for (const [i, row] of made) {
      if (i >= first && i < last) continue;
      row.remove();
      made.delete(i);
    }
    let next = after;
    for (let i = last - 1; i >= first; i--) {
      if (!made.has(i)) {
        made.set(i, makeRow(i));
        next.before(made.get(i));
      }
      next = made.get(i);
    }
    before.firstChild.style.height = `${first * ROW_PX}px`;
    after.firstChild.style.height = printing ? '' : `${(count - last) * ROW_PX}px`;
    after.firstChild.textContent = printing && last < count ? `and ${formatCount(count - last)} more` : '';
    before.hidden = first === 0;
    after.hidden = last === count;
  }
  box.addEventListener('scroll', draw, {passive: true});
  window.addEventListener('resize', draw);
  for (const type of ['beforeprint', 'afterprint'])
    window.addEventListener(type, () => {
      printing = type === 'beforeprint';
      draw();
    });

  return {
    /** So many rows, all made anew; shown from the top, unless they are the same ones otherwise drawn. */
    reset(rows, {stay = false} = {}) {
      const top = stay ? box.scrollTop : 0;
      for (const row of made.values()) row.remove();
      made.clear();
      count = rows;
      draw();
      box.scrollTop = top;
      draw();
    },
    /** Those that are made. @param {(row: HTMLElement, index: number) => void} change */
    each(change) {
      for (const [i, row] of made) change(row, i);
    },
    /** Brings a row into view. @returns {HTMLElement} */
    reveal(index) {
      const top = index * ROW_PX;
      const height = box.clientHeight - 2 * ROW_PX; // the head stands over the first
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top > box.scrollTop + height) box.scrollTop = top - height;
      draw();
      return made.get(index);
    },
  };
}
