// SPDX-License-Identifier: BSD-2-Clause
// Arrows: from a call to what it launched on the GPU, from a thread to the one that it woke, from an operator to its node of the
// backward pass.
import {firstBehind} from '../canvas/lanes.js';

const MOST = 200; // that are shown at once

/** [{from, to}], each end {track, at}; `tracks`: what the block's are here, undefined where there is none. */
export function readArrows({head, f64, u32}, tracks) {
  if (!head.arrows) return [];
  const {count, from, to, tracks: ends} = head.arrows;
  const [start, end, track] = [f64(from, count), f64(to, count), u32(ends, 2 * count)];
  return Array.from(start, (_, i) => ({
    from: {track: tracks[track[2 * i]], at: start[i]},
    to: {track: tracks[track[2 * i + 1]], at: end[i]},
  })).filter((arrow) => arrow.from.track && arrow.to.track);
}

const within = (end, {track, start, duration}) =>
  end.track === track && end.at >= start && (end.at < start + duration || end.at === start);

/** Those that end in the span, and those that begin in it. */
export const arrowsOf = (arrows, span) => ({
  into: arrows.filter((arrow) => within(arrow.to, span)).slice(0, MOST),
  outOf: arrows.filter((arrow) => within(arrow.from, span)).slice(0, MOST),
});

/** Of a track's lanes the innermost that has something there: {depth, index}, or undefined. */
export function cellOf({track, at}) {
  for (let depth = track.lanes.length - 1; depth >= 0; depth--) {
    const [cells] = track.lanes[depth];
    const index = firstBehind(cells, at);
    if (cells.start[index] <= at) return {depth, index};
  }
  return undefined;
}
