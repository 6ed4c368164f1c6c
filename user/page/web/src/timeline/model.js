// SPDX-License-Identifier: BSD-2-Clause
// The block "timeline" as tracks of lanes, and tracks as what people fold: processes, and blocks (a thread, a stream,
// a counter) in them. Nothing here knows of pixels but `layOut`.

/** Texts by number; those of a finer block are added to those of the page. */
export class Names {
  constructor(list) {
    this.list = list;
    this.index = new Map(list.map((text, i) => [text, i]));
  }

  number(text) {
    let i = this.index.get(text);
    if (i === undefined) this.index.set(text, (i = this.list.push(text) - 1));
    return i;
  }
}

/** Of running totals how much is added a second, from each point to the next; behind the last one it is not known. */
function ratesOf({start, value}) {
  const kept = [];
  for (let i = 0; i < start.length; i++) {
    const last = kept.at(-1);
    if (last === undefined || (start[i] > start[last] && value[i] >= value[last])) kept.push(i);
  }
  const rate = (i, next) => ((value[next] - value[i]) / (start[next] - start[i])) * 1e9;
  return {
    start: Float64Array.from(kept, (i) => start[i]),
    value: Float64Array.from(kept, (i, at) => rate(i, kept[at + 1])),
  };
}

/** As blocks.js has it → tracks whose levels are views of the block's bytes: {resolution, start, duration, busy, name, count, argumentsOf(cell)}. */
export function readTracks({head, f64, u32}, names) {
  const numbers =
    names.list === head.names ? null : Uint32Array.from(head.names, (text) => names.number(text));
  const nameColumn = (at, cells) => (numbers ? u32(at, cells).map((i) => numbers[i]) : u32(at, cells));
  const objectOf = (number) =>
    number > 0 && head.arguments[number - 1] ? Object.assign({}, ...head.arguments[number - 1].map((i) => head.parts[i])) : null;
  const argumentsOf = (l) => {
    if (l.arguments === undefined) return () => null;
    const numbers = u32(l.arguments, l.cells);
    return (i) => objectOf(numbers[i]);
  };
  const level = (l) => ({
    argumentsOf: argumentsOf(l),
    resolution: l.resolution_ns,
    start: f64(l.start, l.cells),
    duration: f64(l.duration, l.cells),
    name: nameColumn(l.name, l.cells),
    count: u32(l.count, l.cells),
    busy: f64(l.busy ?? l.duration, l.cells),
  });
  const points = (rate) => (l) => {
    const plain = {start: f64(l.start, l.cells), value: f64(l.value, l.cells)};
    return rate ? ratesOf(plain) : plain;
  };
  return head.tracks.map((track) => ({
    ...track,
    laneKeys: track.lanes.map((lane, i, all) => {
      const part = all.slice(0, i).filter((other) => other.depth === lane.depth).length;
      return `${lane.depth}.${part}`;
    }),
    lanes: track.lanes.map((lane) => lane.levels.map(track.kind === 'counter' ? points(track.rate) : level)),
  }));
}

/** Arrows or arguments that a smaller part of the time has. */
export const leavesOut = (head) => head.arrows?.left_out > 0 || head.arguments_left_out > 0;

/** Which track of one block is which of another. GPUs have numbers that are a block's own; their process tells them apart. */
export const trackKey = (t) =>
  [t.kind, t.process, t.kind === 'gpu' ? '' : t.pid, t.tid, t.row, t.name].join('\n');

/** A lane without cells. */
export const NOTHING = [
  {
    resolution: 0,
    start: new Float64Array(0),
    duration: new Float64Array(0),
    busy: new Float64Array(0),
    name: new Uint32Array(0),
    count: new Uint32Array(0),
  },
];

/** The lane of another block's track that is this track's at `depth`; undefined: it has nothing there. */
export const sameLane = (other, track, depth) => other?.lanes[other.laneKeys.indexOf(track.laneKeys[depth])];

function blockOf(track) {
  switch (track.kind) {
    case 'gpu':
      return {key: `gpu ${track.tid} ${track.name}`, title: track.name || track.thread || 'GPU', kind: 'gpu'};
    case 'counter':
      return {key: `counter ${track.tid} ${track.name}`, title: track.thread ? `${track.name}, ${track.thread}` : track.name, kind: 'counter'};
    default:
      return {
        key: `thread ${track.tid}`,
        title: track.thread || `thread ${track.tid}`,
        kind: 'thread',
        tid: track.tid,
      };
  }
}

/** [{key, title, pid, blocks: [{key, title, kind, tid, tracks}]}], in the block's order; states stand above their spans. */
export function group(tracks) {
  const groups = new Map();
  for (const track of tracks) {
    const key = `${track.pid} ${track.process ?? ''}`;
    if (!groups.has(key))
      groups.set(key, {key, title: track.process || 'process', pid: track.pid, blocks: new Map()});
    const {blocks} = groups.get(key),
      block = blockOf(track);
    if (!blocks.has(block.key)) blocks.set(block.key, {...block, key: `${key} ${block.key}`, tracks: []});
    blocks.get(block.key).tracks.push(track);
  }
  return [...groups.values()].map((g) => ({
    ...g,
    blocks: [...g.blocks.values()].map((b) => ({
      ...b,
      tracks: b.tracks.sort((x, y) => (y.kind === 'states') - (x.kind === 'states')),
    })),
  }));
}

export const HEIGHT = {group: 26, spans: 18, gpu: 18, states: 14, samples: 14, counter: 40};
const MARGIN = 4; /* above and below what is in a block, and between its tracks */

/**
 * Where everything stands that is not folded away: {height, rows}, a row being a group's head or a block, {group, block,
 * y, height, parts}, and a part one lane, {track, lane, depth, y, height}. Of a folded block the outermost lanes are left.
 */
export function layOut(groups, folded) {
  const rows = [];
  let y = 0;
  for (const g of groups) {
    rows.push({group: g, y, height: HEIGHT.group, parts: []});
    y += HEIGHT.group;
    for (const block of folded.has(g.key) ? [] : g.blocks) {
      const row = {group: g, block, y, parts: []};
      y += MARGIN;
      for (const track of block.tracks) {
        const lanes = folded.has(block.key) ? track.lanes.slice(0, 1) : track.lanes;
        for (const [depth, lane] of lanes.entries()) {
          row.parts.push({track, lane, depth, y, height: HEIGHT[track.kind] ?? HEIGHT.spans});
          y += row.parts.at(-1).height;
        }
        y += MARGIN;
      }
      row.height = Math.max(y, row.y + HEIGHT.group) - row.y;
      y = row.y + row.height;
      rows.push(row);
    }
  }
  return {height: y, rows};
}

/** What of the layout meets [top, bottom). */
export const visibleParts = (layout, top, bottom) =>
  layout.rows.flatMap((row) =>
    row.y < bottom && row.y + row.height > top
      ? row.parts.filter((p) => p.y < bottom && p.y + p.height > top)
      : [],
  );
