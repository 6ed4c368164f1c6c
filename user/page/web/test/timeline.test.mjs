// SPDX-License-Identifier: BSD-2-Clause
import assert from 'node:assert/strict';
import test from 'node:test';
import zlib from 'node:zlib';
import {readTimeline} from '../src/blocks.js';
import {arrowsOf, cellOf, readArrows} from '../src/timeline/arrows.js';
import {readAnswer} from '../src/timeline/finer.js';
import {Search, countMatches, nextMatch, ownTimes} from '../src/timeline/measure.js';
import {Names, group, idleKey, layOut, readTracks, sameLane, trackKey, visibleParts} from '../src/timeline/model.js';
import {View, formatExactly, formatMoment, ticks} from '../src/timeline/view.js';
import {fakeBlocks} from './fake.mjs';

const cells = (rows) => ({
  start: Float64Array.from(rows, (r) => r[0]),
  duration: Float64Array.from(rows, (r) => r[1]),
  name: Uint32Array.from(rows, (r) => r[2]),
  count: Uint32Array.from(rows, (r) => r[3] ?? 1),
  busy: Float64Array.from(rows, (r) => r[4] ?? r[1]),
});
const track = (fields, depths = 1) => ({
  kind: 'spans', pid: 1, tid: 1, row: 0, process: 'p', thread: 't', name: '', ...fields,
  lanes: Array.from({length: depths}, () => [{...cells([]), resolution: 0}]),
});

test('own time is that of a cell without the cells inside of it', () => {
  const outer = cells([[0, 100, 0], [200, 100, 0]]);
  const inner = cells([[10, 20, 1], [40, 30, 2], [210, 80, 1]]);
  const rows = ownTimes([{cells: outer, inner}, {cells: inner, inner: null}], 0, 300, 3);
  assert.deepEqual(rows.map(({name, own, spans}) => [name, own, spans]), [[1, 100, 2], [0, 70, 2], [2, 30, 1]]);
});

test('own times of a part of the time are cut at its ends, and add up to the time covered', () => {
  const outer = cells([[0, 100, 0]]);
  const inner = cells([[0, 50, 1], [50, 50, 2]]);
  const rows = ownTimes([{cells: outer, inner}, {cells: inner, inner: null}], 25, 60, 3);
  assert.deepEqual(rows.map(({name, own}) => [name, own]), [[1, 25], [2, 10], [0, 0]]);
  assert.equal(rows.reduce((sum, r) => sum + r.own, 0), 35);
});

test('merged cells count all their spans, and say so', () => {
  const [row] = ownTimes([{cells: cells([[0, 10, 0, 40]]), inner: null}], 0, 10, 1);
  assert.deepEqual(row, {name: 0, own: 10, spans: 40, merged: true, estimated: true});
});

test('of merged cells the sum of durations counts, not the gaps between them; a cell that reaches beyond is shared out, and said to be', () => {
  // two calls of 100; in each ten of 4, one every 10, in cells that begin and end with them: 94 of which 40 are busy
  const outer = cells([[0, 100, 0], [200, 100, 0]]);
  const apart = cells([[3, 94, 1, 10, 40], [203, 94, 1, 10, 40]]);
  const figures = (inner, from = 0, to = 300) => ownTimes([{cells: outer, inner}, {cells: inner, inner: null}], from, to, 2)
    .map(({name, own, spans, merged, estimated}) => [name, own, spans, merged, estimated]);
  assert.deepEqual(figures(apart), [[0, 120, 2, false, false], [1, 80, 20, true, true]]);
  // the same twenty as one cell over both: none of them lies in the gap between the calls
  assert.deepEqual(figures(cells([[3, 294, 1, 20, 80]])), [[0, 120, 2, false, true], [1, 80, 20, true, true]]);
  // a part that begins in the middle of a merged cell
  assert.deepEqual(figures(apart, 50, 300).map(([name, own, , , estimated]) => [name, Math.round(own), estimated]), [[0, 90, true], [1, 60, true]]);
});

test('the block tells how much of merged cells is spans', () => {
  const plain = {cells: 1, start: 0, duration: 8, name: 16, count: 24};
  const bytes = new ArrayBuffer(48);
  new Float64Array(bytes).set([5, 100], 0);
  new Uint32Array(bytes).set([0], 4);
  new Uint32Array(bytes).set([3], 6);
  new Float64Array(bytes).set([40], 4);
  const names = new Names(['a']);
  const read = (level) => readTracks({
    head: {names: names.list, arguments: [], parts: [], tracks: [{kind: 'spans', lanes: [{depth: 0, levels: [level]}]}]},
    f64: (at, count) => new Float64Array(bytes, at, count),
    u32: (at, count) => new Uint32Array(bytes, at, count),
  }, names)[0].lanes[0][0];
  assert.deepEqual([...read({...plain, busy: 32}).busy], [40]);
  assert.deepEqual([...read(plain).busy], [100]);
});

test('the next match goes by time, then by lane, round the end, and back the same way', () => {
  const lanes = [cells([[0, 1, 1], [10, 1, 0], [20, 1, 1]]), cells([[0, 1, 1], [5, 1, 1], [30, 1, 0]])];
  const match = new Search(['other', 'WANTED one'], 'wanted');
  assert.deepEqual([...match.names], [0, 1]);
  const way = [[0, 0], [1, 0], [1, 1], [0, 2]]; // [lane, cell]
  let place = {start: -1, order: -1};
  for (let i = 0; i < 9; i++) {
    place = nextMatch(lanes, match, place, 1);
    assert.deepEqual([place.order, place.index], way[i % 4]);
    assert.deepEqual(countMatches(lanes, match, place), {all: 4, upTo: (i % 4) + 1});
  }
  for (let i = 1; i < 9; i++) {
    place = nextMatch(lanes, match, place, -1);
    assert.deepEqual([place.order, place.index], way[(16 - i) % 4]);
  }
  assert.equal(nextMatch(lanes, new Search(['other', 'x'], 'nothing'), place, 1), null);
});

test('a view keeps what is under the pointer, and stays in the recording', () => {
  const view = new View(0, 1000);
  view.zoom(4, 250);
  assert.deepEqual([view.from, view.to], [187.5, 437.5]);
  assert.equal((250 - view.from) / view.span, 0.25);
  view.pan(-1e6);
  assert.deepEqual([view.from, view.to], [0, 250]);
  view.zoom(1e-9);
  assert.deepEqual([view.from, view.to], [0, 1000]);
  view.zoom(1e9, 500);
  assert.equal(view.span, 20);
});

test('ticks stand at round times, in a unit in which they are short', () => {
  const labels = (from, to, most) => ticks(from, to, most).places.map(({label}) => label);
  assert.deepEqual(labels(0, 10e9, 5), ['0 s', '2 s', '4 s', '6 s', '8 s', '10 s']);
  assert.deepEqual(labels(1.1e6, 1.32e6, 3), ['1.1 ms', '1.2 ms', '1.3 ms']);
  assert.equal(ticks(0, 999, 10).step, 100);
  const far = ticks(5e9 + 1000, 5e9 + 2000, 5);
  assert.equal(far.base, '5.000 000 000 s');
  assert.deepEqual(far.places.map(({label}) => label), ['+1.0 us', '+1.2 us', '+1.4 us', '+1.6 us', '+1.8 us', '+2.0 us']);
});

test('moments and durations can be told to the nanosecond', () => {
  assert.equal(formatMoment(1234567890), '1.234 567 890 s');
  assert.equal(formatMoment(5), '0.000 000 005 s');
  assert.equal(formatExactly(812), '812 ns');
  assert.equal(formatExactly(1234567), '1.23 ms (1,234,567 ns)');
});

test('a search finds values of arguments too, and no keys', () => {
  const argumentSets = {sets: [[0], [1, 2], 0], parts: [{dims: [[3, 4]]}, {dims: [[7]]}, {stack: 'train.py(12): Main'}]};
  const cells = {start: [0, 10, 20], name: [0, 0, 0], set: Uint32Array.from([1, 2, 0]), argumentSets};
  const found = (text) => countMatches([cells], new Search(['op'], text), null).all;
  assert.deepEqual([found('main'), found('[3,4]'), found('dims'), found('op')], [1, 1, 0, 3]);
  assert.equal(nextMatch([cells], new Search(['op'], 'train.py'), {start: -1, order: 0}, 1).index, 1);
});

test('what has spans comes first, idle threads are folded together, and what is pinned stands at the top', () => {
  const names = ['Running', 'Blocked: poll'];
  const states = (tid, running, more) => ({...track({kind: 'states', tid, ...more}), lanes: [[{start: [0, running], duration: [running, 1000 - running], busy: [running, 1000 - running], name: [0, 1], count: [1, 1]}]]});
  const groups = group([states(3, 1), states(4, 2), track({kind: 'counter', tid: 0, name: 'memory'}), states(2, 900), {...track({tid: 5}), spans: 1},
    states(9, 3, {pid: 2, process: 'idle one'}), track({pid: 2, process: 'idle one', kind: 'counter', tid: 0, name: 'memory'})], names);
  assert.deepEqual(groups[0].blocks.map((b) => [b.kind, b.tid, !!b.idle]), [['thread', 5, false], ['thread', 2, false], ['thread', 3, true], ['thread', 4, true], ['counter', undefined, false]]);
  assert.deepEqual(groups.map((g) => g.idle), [false, true]);
  const folded = new Set([idleKey(groups[0])]);
  const rows = layOut(groups, folded).rows;
  assert.deepEqual(rows.slice(0, 5).map((row) => row.idle?.length ?? row.block?.tid), [undefined, 5, 2, 2, undefined]);
  const pinned = layOut(groups, folded, new Set([groups[0].blocks[1].key]));
  assert.deepEqual([pinned.rows[0].block.tid, pinned.rows[0].y, pinned.pinned], [2, 0, pinned.rows[0].height]);
  assert.equal(pinned.rows.filter((row) => row.block?.tid === 2).length, 1);
});

test('tracks are grouped by process and thread, states below spans, and fold', () => {
  const groups = group([track({}, 3), track({kind: 'states'}), track({tid: 2}), track({kind: 'counter', tid: 0, name: 'memory'}), track({pid: 2, process: 'q'})]);
  assert.deepEqual(groups.map((g) => [g.title, g.blocks.map((b) => b.tracks.map((t) => t.kind))]),
    [['p', [['spans', 'states'], ['spans'], ['counter']]], ['q', [['spans']]]]);
  const open = layOut(groups, new Set());
  assert.equal(open.rows.length, 2 + 4);
  for (const [i, row] of open.rows.entries()) assert.equal(row.y, i === 0 ? 0 : open.rows[i - 1].y + open.rows[i - 1].height);
  const folded = layOut(groups, new Set([groups[0].blocks[0].key]));
  assert.equal(open.rows[1].parts.length - folded.rows[1].parts.length, 2);
  assert.equal(layOut(groups, new Set([groups[0].key])).rows.length, 1 + 2);
  assert.deepEqual(visibleParts(open, open.rows[1].parts[1].y + 1, open.rows[1].parts[1].y + 2).map((p) => [p.track.kind, p.depth]), [['spans', 1]]);
});

test("the server's answer is read with or without its gzip, and its names become the page's", async () => {
  const bytes = fakeBlocks({spans: 100}).timeline;
  const names = new Names(['Running', 'another']);
  const plain = await readAnswer(bytes, names);
  const packed = await readAnswer(new Uint8Array(zlib.gzipSync(bytes)), names);
  const own = readTimeline(bytes);
  const direct = readTracks(own, new Names(own.head.names));
  for (const answer of [plain, packed]) {
    assert.equal(answer.tracks.size, own.head.tracks.length);
    const [first] = answer.tracks.values();
    const texts = (list, lane) => Array.from(lane[0].name, (i) => list[i]);
    assert.deepEqual(texts(names.list, first.lanes[1]), texts(own.head.names, direct[0].lanes[1]));
  }
  assert.equal(new Set(names.list).size, names.list.length);
});

test('a block that is cut off is refused', async () => {
  const bytes = fakeBlocks({spans: 100}).timeline;
  await assert.rejects(readAnswer(bytes.subarray(0, bytes.length - 64), new Names([])), /cut off/);
  await assert.rejects(readAnswer(bytes.subarray(8), new Names([])), /no timeline/);
});

test('ticks of half a unit have a digit for it, and moments before the first capture their sign', () => {
  assert.deepEqual(
    ticks(0, 2e9, 5).places.map((p) => p.label),
    ['0.0 s', '0.5 s', '1.0 s', '1.5 s', '2.0 s'],
  );
  assert.equal(formatMoment(-5e7), '-0.050 000 000 s');
});

test('lanes of two blocks are the same by their depth, and not by where they stand', () => {
  const lane = (depth) => ({depth, levels: []});
  const track = {kind: 'gpu', pid: 0, process: 'GPU 0 (a)', tid: 7, row: 0, name: 'stream 7'};
  const read = (lanes, more) => readTracks({head: {names: [], tracks: [{...track, ...more, lanes: lanes.map(lane)}]}}, new Names([]))[0];
  const page = read([0, 1, 1]), part = read([1, 1], {pid: 0x400001});
  assert.equal(trackKey(page), trackKey(part));
  assert.equal(sameLane(part, page, 0), undefined);
  assert.equal(sameLane(part, page, 1), part.lanes[0]);
  assert.equal(sameLane(part, page, 2), part.lanes[1]);
});

test('arrows end in spans that hold their times, and in the innermost of them', () => {
  const block = readTimeline(fakeBlocks({spans: 100}).timeline);
  const tracks = readTracks(block, new Names(block.head.names));
  const arrows = readArrows(block, tracks);
  assert.equal(arrows.length, 100);
  const [cells] = tracks[0].lanes[0];
  const step = {track: tracks[0], start: cells.start[7], duration: cells.duration[7]};
  const {into, outOf} = arrowsOf(arrows, step);
  assert.deepEqual([into.length, outOf.length, outOf[0]], [0, 1, arrows[7]]);
  const {depth, index} = cellOf(outOf[0].from);
  const [inner] = tracks[0].lanes[depth];
  assert.ok(inner.start[index] <= outOf[0].from.at && inner.start[index] + inner.duration[index] > outOf[0].from.at);
  assert.equal(readArrows(block, []).length, 0, 'of tracks that are not here');
});

test('of running totals the page shows how fast they rise, and nothing behind the last reading', () => {
  const columns = [[0, 1e9, 1e9, 3e9], [100, 600, 600, 700]];
  const track = {kind: 'counter', rate: true, lanes: [{depth: 0, levels: [{cells: 4, start: 0, value: 1}]}]};
  const block = {head: {names: [], tracks: [track]}, f64: (at) => Float64Array.from(columns[at]), u32: () => []};
  const [{lanes: [[{start, value}]]}] = readTracks(block, new Names([]));
  assert.deepEqual([[...start], [...value]], [[0, 1e9, 3e9], [500, 50, NaN]]);
});
