// SPDX-License-Identifier: BSD-2-Clause
// Where `xsptrace view` serves the page: finer cells of the part that is shown, as soon as it rests for a moment.
import {gunzip, readTimeline} from '../blocks.js';
import {readArrows} from './arrows.js';
import {leavesOut, readTracks, trackKey} from './model.js';

const REST_MS = 150;
const PIXELS = 1000; // about, of the view's width
const MARGIN = 0.5; // of the span that is shown, fetched on both sides

/** The server's answer is a block; gzip, unless the browser has taken that off. */
export async function readAnswer(bytes, names) {
  const plain = bytes[0] === 0x1f && bytes[1] === 0x8b ? await gunzip(bytes) : bytes;
  const block = readTimeline(plain);
  const list = readTracks(block, names);
  const tracks = new Map(list.map((track) => [trackKey(track), track]));
  const arrows = readArrows(block, list.map(trackKey));
  return {from: block.head.from_ns, to: block.head.to_ns, tracks, arrows, leftOut: leavesOut(block.head)};
}

export class Finer {
  /** @param {import('./model.js').Names} names @param {() => void} changed there is something new to show */
  constructor(names, changed) {
    this.names = names;
    this.changed = changed;
    this.block = null;
    this.problem = '';
    this.busy = false;
  }

  /** Whether what is there is all of the view, in cells that a pixel hides. */
  covers(view) {
    const {block} = this;
    return (
      block !== null &&
      block.from <= Math.max(0, view.from) &&
      block.to >= view.to &&
      this.resolution() <= view.span / PIXELS &&
      !(block.leftOut && view.span < (block.to - block.from) / 4)
    );
  }

  /** Of its cells, the coarsest lane's. */
  resolution() {
    let most = 0;
    for (const {lanes, kind} of this.block.tracks.values())
      if (kind !== 'counter') for (const [level] of lanes) most = Math.max(most, level.resolution);
    return most;
  }

  /** The view moved. `needed`: the page's own cells are too coarse for it. */
  look(view, needed) {
    clearTimeout(this.timer);
    if (!needed || this.covers(view)) {
      this.aborted?.abort(); // what comes would take the place of what is shown
      this.busy = false;
      return;
    }
    this.timer = setTimeout(() => this.#fetch(view), REST_MS);
  }

  async #fetch(view) {
    const from = Math.max(0, view.low, Math.floor(view.from - MARGIN * view.span)); // before the first capture: none
    const to = Math.min(view.high, Math.ceil(view.to + MARGIN * view.span));
    if (to <= from) return;
    this.aborted?.abort();
    const aborted = (this.aborted = new AbortController());
    this.busy = true;
    this.changed();
    try {
      const answer = await fetch(`timeline?from=${from}&to=${to}`, {signal: aborted.signal});
      if (!answer.ok) throw new Error(`the server says ${answer.status} ${answer.statusText}`);
      const block = await readAnswer(new Uint8Array(await answer.arrayBuffer()), this.names);
      if (aborted.signal.aborted) return;
      [this.block, this.problem] = [block, ''];
    } catch (error) {
      if (aborted.signal.aborted) return;
      this.problem = `finer spans cannot be had: ${error.message}`;
    }
    this.busy = false;
    this.changed();
  }
}
