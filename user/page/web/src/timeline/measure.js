// SPDX-License-Identifier: BSD-2-Clause
// Figures of what lies in a part of the time, from the finest cells that there are; and search in them.
import {firstBehind, firstFrom} from '../canvas/lanes.js';

const endOf = ({start, duration}, i) => start[i] + duration[i];

/**
 * Of each merged cell of `inner` that meets [from, to), how much of its spans' time lies in one ns of `cells`, if it is
 * spread evenly over what of them it meets: its extent has gaps, in it and between them. By its index less `first`.
 */
function densities(cells, inner, first, to) {
  const found = [];
  if (first >= inner.start.length) return found;
  let i = firstBehind(cells, inner.start[first]);
  for (let j = first; j < inner.start.length && inner.start[j] < to; j++) {
    let met = 0;
    if (inner.count[j] > 1) {
      while (i < cells.start.length && endOf(cells, i) <= inner.start[j]) i++;
      for (let k = i; k < cells.start.length && cells.start[k] < endOf(inner, j); k++)
        met += Math.min(endOf(cells, k), endOf(inner, j)) - Math.max(cells.start[k], inner.start[j]);
    }
    found.push(met > 0 ? Math.min(1, inner.busy[j] / met) : 1);
  }
  return found;
}

/**
 * By name: own time (without that of the lane below), spans, whether that is of merged cells, and whether the time is
 * estimated, as merged cells reach beyond what is counted. Most time first.
 * `lanes`: [{cells, inner}], inner being the cells of the next depth or null.
 */
export function ownTimes(lanes, from, to, nameCount) {
  const own = new Float64Array(nameCount),
    spans = new Float64Array(nameCount),
    merged = new Uint8Array(nameCount),
    estimated = new Uint8Array(nameCount);
  for (const {cells, inner} of lanes) {
    const {start, duration, busy, name, count} = cells,
      n = start.length;
    const first = inner ? firstBehind(inner, from) : 0;
    const density = inner ? densities(cells, inner, first, to) : [];
    let j = first;
    for (let i = firstBehind(cells, from); i < n && start[i] < to; i++) {
      const begin = Math.max(start[i], from),
        end = Math.min(start[i] + duration[i], to);
      let time = end - begin;
      if (count[i] > 1) time = duration[i] > 0 ? (busy[i] * time) / duration[i] : busy[i];
      // what lies inside of it: both lanes are in order
      while (inner && j < inner.start.length && inner.start[j] < end) {
        const innerEnd = endOf(inner, j);
        const met = Math.max(0, Math.min(innerEnd, end) - Math.max(inner.start[j], begin));
        time -= met * density[j - first];
        if (inner.count[j] > 1 && (inner.start[j] < begin || innerEnd > end)) estimated[name[i]] = 1;
        if (innerEnd > end) break; // merged cells may reach into the next one
        j++;
      }
      own[name[i]] += Math.max(0, time);
      spans[name[i]] += count[i];
      if (count[i] > 1) merged[name[i]] = 1;
    }
  }
  const out = [];
  for (let i = 0; i < nameCount; i++)
    if (spans[i] > 0)
      out.push({
        name: i,
        own: own[i],
        spans: spans[i],
        merged: merged[i] === 1,
        estimated: merged[i] + estimated[i] > 0,
      });
  return out.sort((a, b) => b.own - a.own || b.spans - a.spans);
}

/** Which names hold the text; without regard to capital letters. 1 for each that does. */
export function matching(names, text) {
  const wanted = text.toLowerCase();
  return Uint8Array.from(names, (name) => (wanted !== '' && name.toLowerCase().includes(wanted) ? 1 : 0));
}

/** What is searched for: in names, and in what is known of single spans. */
export class Search {
  #found = new Map(); // by a block's sets of arguments

  constructor(names, text) {
    this.text = text.toLowerCase();
    this.names = matching(names, text);
  }

  /** Of a block's sets of arguments 1 for each in whose values the text is, by its number: 0 is none of them. */
  setsOf(block) {
    if (!this.#found.has(block)) {
      const parts = block.parts.map((part) => part && JSON.stringify(Object.values(part)).toLowerCase().includes(this.text));
      this.#found.set(block, Uint8Array.from([0, ...block.sets], (set) => (set && set.some((part) => parts[part]) ? 1 : 0)));
    }
    return this.#found.get(block);
  }

  /** Whether the cell of that index is found. @returns {(i: number) => boolean} */
  in({name, set, argumentSets}) {
    const sets = set && this.setsOf(argumentSets);
    return sets ? (i) => this.names[name[i]] === 1 || sets[set[i]] === 1 : (i) => this.names[name[i]] === 1;
  }
}

/** Cells that are found, of lanes' finest levels; and, of them, up to and with the one at `place`. @param {Search} search */
export function countMatches(lanes, search, place) {
  let all = 0,
    upTo = 0;
  for (const [order, cells] of lanes.entries()) {
    const found = search.in(cells);
    for (let i = 0; i < cells.start.length; i++) {
      if (!found(i)) continue;
      all++;
      if (place && (cells.start[i] < place.start || (cells.start[i] === place.start && order <= place.order)))
        upTo++;
    }
  }
  return {all, upTo};
}

/**
 * The matching cell next to `place` ({start, order}: time, then lane), forward (1) or back (-1); round the end.
 * {order, index}, or null if none matches.
 */
export function nextMatch(lanes, search, place, direction) {
  return (
    find(lanes, search, place, direction) ??
    find(lanes, search, {start: -direction * Infinity, order: -direction * Infinity}, direction)
  );
}

function find(lanes, search, place, direction) {
  let best = null;
  for (const [order, cells] of lanes.entries()) {
    const found = search.in(cells);
    const {start} = cells,
      n = start.length;
    // those at the same time come after (or before) it by their lane
    let i = firstFrom(start, place.start);
    if (direction > 0 && start[i] === place.start && order <= place.order) i++;
    if (direction < 0 && !(start[i] === place.start && order < place.order)) i--;
    for (; i >= 0 && i < n; i += direction) {
      if (best && (direction > 0 ? start[i] >= best.start : start[i] < best.start)) break;
      if (!found(i)) continue;
      best = {order, index: i, start: start[i]};
      break;
    }
  }
  return best;
}
