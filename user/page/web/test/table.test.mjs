// SPDX-License-Identifier: BSD-2-Clause
import assert from 'node:assert/strict';
import test from 'node:test';
import {printable} from '../src/dom.js';
import {filterRows, givenOrder, knownColumns, parseSort, sortRows} from '../src/table.js';
import {inTotal} from '../src/tree/model.js';

const columns = [
  {key: 'name', title: 'name', unit: 'text', identity: true},
  {key: 'calls', title: 'calls', unit: 'count', identity: false},
  {key: 'self_ns', title: 'self', unit: 'ns', identity: false},
  {key: 'cpu_ns', title: 'CPU', unit: 'ns', identity: false},
];
const rows = [
  {name: 'step 10', calls: 5, self_ns: 30, cpu_ns: null},
  {name: 'step 9', calls: 7, self_ns: 20, cpu_ns: null},
  {name: '<Mm>', calls: 5, self_ns: 10, cpu_ns: null},
];
const names = (list) => list.map((row) => row.name);

test('rows are sorted by figures and by names with numbers; what is not known comes last both ways', () => {
  assert.deepEqual(names(sortRows(rows, {key: 'self_ns', down: false})), ['<Mm>', 'step 9', 'step 10']);
  assert.deepEqual(names(sortRows(rows, {key: 'name', down: true})), ['step 10', 'step 9', '<Mm>']);
  assert.deepEqual(
    names(sortRows(rows, {key: 'calls', down: true})),
    ['step 9', 'step 10', '<Mm>'],
    'equals keep their order',
  );
  const some = [
    {name: 'a', x: null},
    {name: 'b', x: 1},
    {name: 'c', x: 2},
  ];
  assert.deepEqual(names(sortRows(some, {key: 'x', down: true})), ['c', 'b', 'a']);
  assert.deepEqual(names(sortRows(some, {key: 'x', down: false})), ['b', 'c', 'a']);
  assert.deepEqual(names(rows), ['step 10', 'step 9', '<Mm>'], 'those given are as they were');
});

test('10,000 rows are sorted and filtered within a blink', () => {
  const many = Array.from({length: 10000}, (_, i) => ({
    name: `library::call_${i}`,
    self_ns: (i * 7919) % 10007,
  }));
  const start = process.cpuUsage();
  sortRows(many, {key: 'name', down: true});
  sortRows(many, {key: 'self_ns', down: true});
  assert.equal(filterRows(many, columns, 'CALL_123').length, 11);
  const {user, system} = process.cpuUsage(start);
  assert.ok(user + system < 500e3, `${user + system} us`);
});

test('columns without anything known are not shown; the order that was given is recognised', () => {
  const table = {columns, rows};
  assert.deepEqual(
    knownColumns(table).map((c) => c.key),
    ['name', 'calls', 'self_ns'],
  );
  assert.deepEqual(givenOrder(table), {key: 'self_ns', down: true});
  assert.equal(givenOrder({columns, rows: []}), undefined);
});

test('a table without texts has nothing to search in', () => {
  assert.equal(filterRows(rows, columns.slice(1), 'x').length, 3);
});

test('the sort of an address speaks of one table', () => {
  assert.deepEqual(parseSort('operations.operations:-self_ns', 'operations.operations'), {
    key: 'self_ns',
    down: true,
  });
  assert.deepEqual(parseSort('a.b:name', 'a.b'), {key: 'name', down: false});
  assert.equal(parseSort('a.b:name', 'a.bc'), undefined);
  assert.equal(parseSort('', 'a.b'), undefined);
});

test('totals of a tree are those of the nodes below, and its own', () => {
  const {total, children} = inTotal({parent: [-1, 0, 1, 1, 0], self: [1, 2, 3, 4, 50]});
  assert.deepEqual([...total], [60, 9, 3, 4, 50]);
  assert.deepEqual(children[0], [4, 1], 'the largest first');
});

test('characters that hide or turn a text are shown as one that does not', () => {
  assert.equal(printable('a\u202Eb\u0000c\n\u200Bd'), 'a\ufffdb\ufffdc\ufffd\ufffdd');
  assert.equal(printable('std::vector<int> Größe 漢字'), 'std::vector<int> Größe 漢字');
});
