// SPDX-License-Identifier: BSD-2-Clause
// Figures as the tool's text has them: the cases of tests/unit/test_summary.c, and what C's printf writes.
import assert from 'node:assert/strict';
import test from 'node:test';
import {printable} from '../src/dom.js';
import {format, formatBytes, formatCount, formatNs, heading} from '../src/format.js';

test('times, bytes and counts are written as by the tool', () => {
  const times = [
    [0, '0 ns'],
    [999, '999 ns'],
    [1000, '1.00 us'],
    [1234567, '1.23 ms'],
    [45678901, '45.7 ms'],
    [999960000, '1.00 s'],
    [3600000000000, '3600 s'],
    [-1500, '-1.50 us'],
  ];
  for (const [ns, text] of times) assert.equal(formatNs(ns), text);
  assert.equal(formatBytes(1536), '1.50 KiB');
  for (const [bytes, text] of [
    [1023, '1023 B'],
    [1048000, '1023 KiB'],
    [1048100, '1.00 MiB'],
  ])
    assert.equal(formatBytes(bytes), text);
  for (const [n, text] of [
    [0, '0'],
    [999, '999'],
    [1234567, '1,234,567'],
    [95.4, '95.4'],
    [12345.6, '1.235e+04'],
  ])
    assert.equal(formatCount(n), text);
});

test('each unit has its form, and what is not known is "-"', () => {
  const cases = [
    [0.1234, 'share', '12.3 %'],
    [1, 'share', '100.0 %'],
    [5.5256703, 'per_second', '5.526/s'],
    [123456.7, 'per_second', '1.235e+05/s'],
    [1536, 'bytes_per_second', '1.50 KiB/s'],
    [1234567890, 'time_ns', '1.235 s'],
    [4711, 'number', '4711'],
    [0.00001234, 'number', '1.234e-05'],
    [0.5, 'number', '0.5'],
    [null, 'ns', '-'],
    [undefined, 'count', '-'],
    ['<b>', 'text', '<b>'],
    [7, 'a unit of tomorrow', '7'],
  ];
  for (const [value, unit, text] of cases) assert.equal(format(value, unit), text);
});

test('a heading begins with a capital, unless it begins with a name', () => {
  const cases = [
    ['by self time; totals', 'By self time; totals'],
    ['locks; without a holder', 'Locks; without a holder'],
    ['torch.nn.Module', 'torch.nn.Module'],
    ['at::mm', 'at::mm'],
    ['CUDA calls', 'CUDA calls'],
  ];
  for (const [title, text] of cases) assert.equal(heading(title), text);
});

test('of two figures that are as near it takes the even one, as C does', () => {
  assert.deepEqual([1125, 1375, 10250].map(formatNs), ['1.12 us', '1.38 us', '10.2 us']);
  assert.equal(format(0.0025, 'share'), '0.2 %');
});

test('a name of blanks alone can be seen, and named; others stay what they are', () => {
  assert.equal(printable(' '), '\u2423');
  assert.equal(printable('\u00a0\t'), '\u2423\u2423');
  assert.equal(printable(' a b '), ' a b ');
  assert.equal(printable(''), '');
});
