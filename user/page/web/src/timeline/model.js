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
  const argumentSets = {sets: head.arguments ?? [], parts: head.parts ?? []};
  const argumentsOf = (l) => {
    if (l.arguments === undefined) return {argumentsOf: () => null};
    const numbers = u32(l.arguments, l.cells);
    return {argumentsOf: (i) => objectOf(numbers[i]), set: numbers, argumentSets};
  };
  const level = (l) => ({
    ...argumentsOf(l),
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

const IDLE = 50; // a thread with less than that part of the busiest one's time on a CPU, or ready, is idle
const ORDER = ['spans', 'gpu', 'states', 'samples', 'counter'];
const rank = (track) => ORDER.indexOf(track.kind);

/** The time on a CPU, or ready, that states tell of. `running`: 1 for names that say so. */
function busyOf(track, running) {
  const [cells] = track.lanes[0] ?? [];
  let sum = 0;
  for (let i = 0; i < (cells?.start.length ?? 0); i++) if (running[cells.name[i]] === 1) sum += cells.busy[i];
  return sum;
}

/**
 * [{key, title, pid, idle, blocks: [{key, title, kind, tid, idle, tracks}]}]. What has spans, or ran on a GPU, comes first, counters
 * last; `idle`: it did next to nothing.
 */
export function group(tracks, names = []) {
  const running = Uint8Array.from(names, (name) => (/^(Run|Preempted)/.test(name) ? 1 : 0));
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
  const all = [...groups.values()].map((g) => ({
    ...g,
    blocks: [...g.blocks.values()].map((b) => ({
      ...b,
      tracks: b.tracks.sort((x, y) => rank(x) - rank(y)),
      spans: b.tracks.some((track) => (track.kind === 'spans' || track.kind === 'gpu') && track.spans > 0),
      busy: b.tracks.reduce((sum, track) => sum + (track.kind === 'states' ? busyOf(track, running) : 0), 0),
    })),
  }));
  const most = all.flatMap(({blocks}) => blocks).reduce((a, {busy}) => Math.max(a, busy), 0);
  const late = (b) => 2 * (b.kind === 'counter') + !b.spans;
  for (const g of all) {
    for (const b of g.blocks) b.idle = b.kind === 'thread' && !b.spans && b.busy < most / IDLE;
    g.blocks.sort((x, y) => late(x) - late(y) || x.idle - y.idle); // else as in the block
    g.idle = most > 0 && g.blocks.every((b) => b.idle || b.kind === 'counter');
  }
  return all.sort((x, y) => y.blocks.some((b) => b.spans) - x.blocks.some((b) => b.spans) || x.idle - y.idle);
}

export const HEIGHT = {group: 26, spans: 18, gpu: 18, states: 14, samples: 14, counter: 40};
const MARGIN = 4; /* above and below what is in a block, and between its tracks */

/** The key of the head that idle threads of a process are folded under. */
export const idleKey = (g) => `${g.key} idle`;

/** One block from `y` on: its lanes, of a folded one the outermost. */
function blockRow(g, block, y, folded) {
  const row = {group: g, block, y, parts: []};
  let at = y + MARGIN;
  for (const track of block.tracks) {
    const lanes = folded.has(block.key) ? track.lanes.slice(0, 1) : track.lanes;
    for (const [depth, lane] of lanes.entries()) {
      row.parts.push({track, lane, depth, y: at, height: HEIGHT[track.kind] ?? HEIGHT.spans});
      at += row.parts.at(-1).height;
    }
    at += MARGIN;
  }
  row.height = Math.max(at, y + HEIGHT.group) - y;
  return row;
}

/**
 * Where everything stands that is not folded away: {height, rows, pinned}, a row being a group's head, the head of its idle
 * threads, or a block, {group, idle, block, y, height, parts}, and a part one lane, {track, lane, depth, y, height}. What is
 * pinned stands first, and stays there: `pinned` is its height.
 */
export function layOut(groups, folded, pins = new Set()) {
  const rows = [];
  let y = 0;
  const put = (row) => {
    rows.push(row);
    y += row.height;
  };
  const head = (row) => put({...row, y, height: HEIGHT.group, parts: []});
  for (const g of groups) for (const block of g.blocks) if (pins.has(block.key)) put({...blockRow(g, block, y, folded), pinned: true});
  const pinned = y;
  for (const g of groups) {
    head({group: g});
    if (folded.has(g.key)) continue;
    const blocks = g.blocks.filter((block) => !pins.has(block.key));
    const idle = blocks.filter((block) => block.idle);
    for (const block of blocks) {
      if (block.idle && idle.length > 1) {
        if (block === idle[0]) head({group: g, idle});
        if (folded.has(idleKey(g))) continue;
      }
      put(blockRow(g, block, y, folded));
    }
  }
  return {height: y, rows, pinned};
}

/** What of the layout meets [top, bottom). */
export const visibleParts = (layout, top, bottom) =>
  layout.rows.flatMap((row) =>
    row.y < bottom && row.y + row.height > top
      ? row.parts.filter((p) => p.y < bottom && p.y + p.height > top)
      : [],
  );
