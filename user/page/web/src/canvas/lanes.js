// SPDX-License-Identifier: BSD-2-Clause
// Lanes: cells in order that do not overlap, as arrays {start, duration, name, count}; and how they become pixels.
// The timeline draws its depths with them, the flame graph its rows.
import {pack, unpack} from './pixels.js';

/** The first cell that ends behind `at`. */
export function firstBehind(cells, at) {
  let low = 0,
    high = cells.start.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cells.start[middle] + cells.duration[middle] > at) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first cell that begins at `at` or later. */
export function firstFrom(start, at) {
  let low = 0,
    high = start.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[middle] >= at) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The coarsest level in which nothing that a pixel could show is merged; else the finest there is. */
export function levelFor(levels, perPixel) {
  let best = levels[0];
  for (const level of levels) if (level.resolution <= perPixel) best = level;
  return best;
}

/**
 * The cell to tell about at a place: the one there, else (too small to hit) the longest within `reach` of it.
 * -1: none.
 */
export function cellAt(cells, at, reach) {
  let best = -1;
  for (let i = firstBehind(cells, at - reach); i < cells.start.length && cells.start[i] <= at + reach; i++) {
    if (cells.start[i] <= at && cells.start[i] + cells.duration[i] > at && cells.duration[i] >= reach)
      return i;
    if (best < 0 || cells.duration[i] > cells.duration[best]) best = i;
  }
  return best;
}

const LEAST = 0.55; // so much of its colour has a column in which there is anything at all
const STRIPES = 4;

/**
 * Paints what lies in [from, to) on one row of pixels, of which the first is at `origin`. A column that holds several
 * cells has their colours' mean and is as full as they cover it. `ground` is below; `merged` columns of cells that stand
 * for several are striped. `lit` {search, palette}: cells whose arguments are found have colours of that palette. A cell that is wide enough leaves a gap behind it. The cells that have `labelled` pixels and
 * more come back, for their names.
 */
export function paintLane(row, cells, {from, to, origin, perPixel, palette, ground, labelled, lit}) {
  const wide = [];
  const width = row.length;
  const {start, duration, name, count, set} = cells;
  const sets = lit && set && lit.search.setsOf(cells.argumentSets);
  const [groundR, groundG, groundB] = unpack(ground);
  let column = -1;
  let [cover, r, g, b] = [0, 0, 0, 0]; // of that column
  const flush = () => {
    if (cover === 0) return;
    const share = LEAST + (1 - LEAST) * Math.min(1, cover);
    const scale = share / cover;
    const rest = 1 - share;
    row[column] = pack([r * scale + groundR * rest, g * scale + groundG * rest, b * scale + groundB * rest]);
    [cover, r, g, b] = [0, 0, 0, 0];
  };
  for (let i = firstBehind(cells, from); i < start.length && start[i] < to; i++) {
    const x0 = (Math.max(start[i], from) - origin) / perPixel;
    const x1 = (Math.min(start[i] + duration[i], to) - origin) / perPixel;
    const pixel = sets && sets[set[i]] === 1 ? lit.palette[name[i]] : palette[name[i]];
    if (x1 - x0 < 1) {
      const at = Math.max(0, Math.min(width - 1, Math.floor((x0 + x1) / 2)));
      const weight = Math.max(x1 - x0, 1e-6);
      if (at !== column) {
        flush();
        column = at;
      }
      cover += weight;
      r += weight * (pixel & 255);
      g += weight * ((pixel >> 8) & 255);
      b += weight * ((pixel >> 16) & 255);
      continue;
    }
    flush();
    const left = Math.max(0, Math.round(x0));
    const end = Math.min(width, Math.round(x1));
    row.fill(pixel, left, end > left + 3 && x1 < width ? end - 1 : end);
    if (count !== undefined && count[i] > 1) stripe(row, left, end - 1, ground);
    if (end - left >= labelled) wide.push({index: i, left, right: end});
  }
  flush();
  return wide;
}

function stripe(row, left, end, ground) {
  for (let x = Math.ceil(left / STRIPES) * STRIPES; x < end; x += STRIPES) row[x] = ground;
}
