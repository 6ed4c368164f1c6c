// SPDX-License-Identifier: BSD-2-Clause
// Figures of what lies in a part of the time, from the finest cells that there are; and search in them.
import {firstBehind, firstFrom} from '../canvas/lanes.js';

/**
 * By name: own time (without that of the lane below), spans, and whether that is of merged cells. Most time first.
 * `lanes`: [{cells, inner}], inner being the cells of the next depth or null.
 */
export function ownTimes(lanes, from, to, nameCount) {
  const own = new Float64Array(nameCount),
    spans = new Float64Array(nameCount),
    merged = new Uint8Array(nameCount);
  for (const {cells, inner} of lanes) {
    const {start, duration, name, count} = cells,
      n = start.length;
    let j = inner ? firstBehind(inner, from) : 0;
    for (let i = firstBehind(cells, from); i < n && start[i] < to; i++) {
      const begin = Math.max(start[i], from),
        end = Math.min(start[i] + duration[i], to);
      let time = end - begin;
      // what lies inside of it: both lanes are in order
      while (inner && j < inner.start.length && inner.start[j] < end) {
        const innerEnd = inner.start[j] + inner.duration[j];
        time -= Math.max(0, Math.min(innerEnd, end) - Math.max(inner.start[j], begin));
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
    if (spans[i] > 0) out.push({name: i, own: own[i], spans: spans[i], merged: merged[i] === 1});
  return out.sort((a, b) => b.own - a.own || b.spans - a.spans);
}

/** Which names hold the text; without regard to capital letters. 1 for each that does. */
export function matching(names, text) {
  const wanted = text.toLowerCase();
  return Uint8Array.from(names, (name) => (wanted !== '' && name.toLowerCase().includes(wanted) ? 1 : 0));
}

/** Cells whose name matches, of lanes' finest levels; and, of them, up to and with the one at `place`. */
export function countMatches(lanes, match, place) {
  let all = 0,
    upTo = 0;
  for (const [order, cells] of lanes.entries()) {
    for (let i = 0; i < cells.start.length; i++) {
      if (!match[cells.name[i]]) continue;
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
export function nextMatch(lanes, match, place, direction) {
  return (
    find(lanes, match, place, direction) ??
    find(lanes, match, {start: -direction * Infinity, order: -direction * Infinity}, direction)
  );
}

function find(lanes, match, place, direction) {
  let best = null;
  for (const [order, cells] of lanes.entries()) {
    const {start, name} = cells,
      n = start.length;
    // those at the same time come after (or before) it by their lane
    let i = firstFrom(start, place.start);
    if (direction > 0 && start[i] === place.start && order <= place.order) i++;
    if (direction < 0 && !(start[i] === place.start && order < place.order)) i--;
    for (; i >= 0 && i < n; i += direction) {
      if (best && (direction > 0 ? start[i] >= best.start : start[i] < best.start)) break;
      if (!match[name[i]]) continue;
      best = {order, index: i, start: start[i]};
      break;
    }
  }
  return best;
}
