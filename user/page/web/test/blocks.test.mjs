// SPDX-License-Identifier: BSD-2-Clause
import assert from 'node:assert/strict';
import test from 'node:test';
import zlib from 'node:zlib';
import {Data, fromBase64, readTimeline} from '../src/blocks.js';
import {fakeBlocks} from './fake.mjs';

const block = (bytes) => ({textContent: zlib.gzipSync(bytes).toString('base64')});

test('blocks are read when they are asked for, once; those that are not there are said not to be', async () => {
  const blocks = {page: block('{"version":1}'), trees: block('{"names":["\u00e4"]}')};
  const data = await Data.open((key) => blocks[key] ?? null);
  assert.deepEqual(data.page, {version: 1});
  assert.equal(data.report, undefined);
  assert.equal(data.has('trees'), true);
  assert.equal(data.has('timeline'), false);
  assert.equal(blocks.trees.textContent.length > 0, true, 'not read yet');
  const trees = await data.json('trees');
  assert.deepEqual(trees, {names: ['\u00e4']});
  assert.equal(blocks.trees.textContent, '', 'its text is given back');
  assert.equal(await data.json('trees'), trees);
  await assert.rejects(data.timeline(), /no block "timeline"/);
});

test('base64 is read where the browser has no reader of its own', () => {
  const bytes = Uint8Array.from({length: 256}, (_, i) => i);
  assert.deepEqual(fromBase64(Buffer.from(bytes).toString('base64')), bytes);
});

/** "XSPT", length, JSON with blanks, then the columns. */
function timelineOf(json, columns) {
  const text = json.padEnd(Math.ceil(json.length / 8) * 8);
  const head = Buffer.alloc(8);
  head.write('XSPT', 'latin1');
  head.writeUInt32LE(text.length, 4);
  return new Uint8Array(
    Buffer.concat([head, Buffer.from(text), ...columns.map((c) => Buffer.from(c.buffer))]),
  );
}

test('columns of a timeline are views of its bytes', () => {
  const bytes = timelineOf('{"from_ns":5}', [Float64Array.of(1.5, 2.5), Uint32Array.of(7, 8)]);
  const {head, f64, u32} = readTimeline(bytes);
  assert.deepEqual(head, {from_ns: 5});
  assert.deepEqual([...f64(0, 2)], [1.5, 2.5]);
  assert.deepEqual([...u32(16, 2)], [7, 8]);
  assert.equal(f64(0, 2).buffer, bytes.buffer);
});

test('a timeline that is damaged is said to be', () => {
  const good = timelineOf('{}', [Float64Array.of(1)]);
  assert.throws(() => readTimeline(new Uint8Array(3)), /no timeline/);
  assert.throws(() => readTimeline(Uint8Array.from(good, (b, i) => (i === 0 ? 0 : b))), /no timeline/);
  assert.throws(() => readTimeline(good.slice(0, 12)), /cut off/);
  const {f64} = readTimeline(good);
  for (const [at, count] of [
    [0, 2],
    [8, 1],
    [-8, 1],
    [0, -1],
    [NaN, 1],
  ])
    assert.throws(() => f64(at, count), /cut off/);
});

test('the made-up page is one by page.h: every column lies in the block', () => {
  const {head, f64, u32} = readTimeline(new Uint8Array(fakeBlocks({spans: 2000}).timeline));
  for (const track of head.tracks) {
    for (const level of track.lanes.flatMap((lane) => lane.levels)) {
      const start = f64(level.start, level.cells);
      assert.ok(
        start.every((at, i) => i === 0 || at >= start[i - 1]),
        'in order',
      );
      if (track.kind !== 'counter')
        assert.ok(u32(level.name, level.cells).every((name) => name < head.names.length));
    }
  }
});
