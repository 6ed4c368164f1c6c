// SPDX-License-Identifier: BSD-2-Clause
import assert from 'node:assert/strict';
import test from 'node:test';
import {cellAt, firstBehind, firstFrom, levelFor, paintLane} from '../src/canvas/lanes.js';
import {inkOn, luminance, mix, oklch, pack} from '../src/canvas/pixels.js';
import {cutMiddle, elide} from '../src/canvas/text.js';

const RED = pack([255, 0, 0]);
const BLUE = pack([0, 0, 255]);
const GROUND = pack([255, 255, 255]);
const cells = (rows) => ({
  start: Float64Array.from(rows, (r) => r[0]),
  duration: Float64Array.from(rows, (r) => r[1]),
  name: Uint32Array.from(rows, (r) => r[2] ?? 0),
  count: Uint32Array.from(rows, (r) => r[3] ?? 1),
});
const painted = (rows, {from = 0, to = 10, width = 10, labelled = 1e9} = {}) => {
  const row = new Uint32Array(width);
  const wide = paintLane(row, cells(rows), {from, to, origin: from, perPixel: (to - from) / width, palette: [RED, BLUE], ground: GROUND, labelled});
  return {row: Array.from(row), wide};
};

test('the coarsest level whose cells a pixel hides is taken, the finest where none is fine enough', () => {
  const levels = [0, 1000, 4000, 16000].map((resolution) => ({resolution}));
  assert.equal(levelFor(levels, 0.5).resolution, 0);
  assert.equal(levelFor(levels, 999).resolution, 0);
  assert.equal(levelFor(levels, 1000).resolution, 1000);
  assert.equal(levelFor(levels, 15999).resolution, 4000);
  assert.equal(levelFor(levels, 1e9).resolution, 16000);
  assert.equal(levelFor([{resolution: 64}, {resolution: 256}], 1).resolution, 64);
});

test('search by halving agrees with looking at each cell', () => {
  const c = cells(Array.from({length: 100}, (_, i) => [i * 10, i % 3 === 0 ? 10 : 4]));
  for (let at = -5; at < 1010; at += 0.5) {
    const behind = c.start.findIndex((s, i) => s + c.duration[i] > at);
    assert.equal(firstBehind(c, at), behind < 0 ? 100 : behind);
    const from = c.start.findIndex((s) => s >= at);
    assert.equal(firstFrom(c.start, at), from < 0 ? 100 : from);
  }
});

test('the cell at the pointer is hit; where it is too small the longest one nearby', () => {
  const c = cells([[0, 100], [200, 1], [203, 2], [400, 50]]);
  assert.equal(cellAt(c, 50, 5), 0);
  assert.equal(cellAt(c, 202, 5), 2);
  assert.equal(cellAt(c, 300, 5), -1);
  assert.equal(cellAt(c, 396, 5), 3);
});

test('cells of a pixel and more are as wide as they are long, with a gap behind them', () => {
  const {row, wide} = painted([[0, 5, 0], [5, 5, 1]], {labelled: 5});
  assert.deepEqual(row, [RED, RED, RED, RED, 0, BLUE, BLUE, BLUE, BLUE, BLUE]);
  assert.deepEqual(wide, [{index: 0, left: 0, right: 5}, {index: 1, left: 5, right: 10}]);
});

test('cells below a pixel are merged to their mean colour, never lost', () => {
  const {row} = painted([[2.0, 0.25, 0], [2.5, 0.25, 1], [7, 0.0001, 0]]);
  assert.deepEqual(row.map((p) => p !== 0), [false, false, true, false, false, false, false, true, false, false]);
  const [r, g, b] = [row[2] & 255, (row[2] >> 8) & 255, (row[2] >> 16) & 255];
  assert.equal(r, b); // as much of both
  assert.ok(g < r);
  assert.ok(luminance(row[7]) > luminance(RED) && luminance(row[7]) < 1); // pale, but there
});

test('only the part of a cell that lies in [from, to) is painted', () => {
  const row = new Uint32Array(10);
  paintLane(row, cells([[0, 10, 0]]), {from: 3, to: 6, origin: 0, perPixel: 1, palette: [RED], ground: GROUND, labelled: 99});
  assert.deepEqual(Array.from(row).map((p) => p !== 0), [0, 0, 0, 1, 1, 1, 0, 0, 0, 0].map(Boolean));
});

test('cells that stand for several are striped', () => {
  const {row} = painted([[0, 10, 0, 7]]);
  assert.equal(row[1], RED);
  assert.equal(row[4], GROUND);
});

test('names are cut in the middle, and characters of two code units are not', () => {
  const measure = (text) => [...text].length;
  assert.equal(cutMiddle('abcdefghij', 5, measure), 'ab…ij');
  assert.equal(cutMiddle('😀😁😂😃😄😅', 5, measure), '😀😁…😄😅');
  assert.equal(cutMiddle('abcdefghij', 2, measure), '');
});

test('of an elided name the last component stays', () => {
  const short = (name, room) => elide(name, room, (text) => [...text].length);
  assert.equal(short('app::(anonymous namespace)::spin', 10), '…::spin');
  assert.equal(short('app::(anonymous namespace)::spin', 30), '…::(anonymous namespace)::spin');
  assert.equal(short('void at::native::kernel<4, at::Add<float>>(int) const', 12), '…kernel…');
  assert.equal(short('autograd::engine::evaluate_function: MmBackward0', 14), '…MmBackward0');
  assert.equal(short('optimizer.py:267 Optimizer.zero_grad', 22), '…Optimizer.zero_grad');
  assert.equal(short('github.com/a/b.(*T).Run', 11), '…b.(*T).Run');
  assert.equal(short('cleanup_of_all_things', 9), 'clea…ings');
});

test('what is written on a colour can be read', () => {
  for (let hue = 0; hue < 360; hue += 5)
    for (const lightness of [0.38, 0.43, 0.5, 0.79, 0.87]) {
      const pixel = oklch(lightness, 0.1, hue);
      const [a, b] = [luminance(pixel) + 0.05, luminance(inkOn(pixel)) + 0.05];
      assert.ok(Math.max(a, b) / Math.min(a, b) >= 4.5, `${lightness} ${hue}`);
    }
  assert.equal(mix(RED, BLUE, 1), RED);
  assert.equal(mix(RED, BLUE, 0), BLUE);
});
