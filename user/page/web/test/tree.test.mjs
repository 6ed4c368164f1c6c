// SPDX-License-Identifier: BSD-2-Clause
import assert from 'node:assert/strict';
import test from 'node:test';
import {Tree, sandwich} from '../src/tree/model.js';
import {fakeBlocks} from './fake.mjs';

//        0 all
//     1        2         own: 1: 10, 2: 5
//   3   4               own: 3: 1, 4: 4
const SMALL = {key: 'wall', title: 'time', unit: 'ns', parent: [-1, 0, 0, 1, 1], name: [0, 1, 2, 1, 3], kind: [4, 0, 0, 0, 0], self: [0, 10, 5, 1, 4], before: [0, 0, 10, 1, 0], count: [0, 1, 1, 1, 1]};

test('the total of a node is its own and those below it, the widest child stands first', () => {
  const tree = new Tree(SMALL);
  assert.deepEqual([...tree.total], [20, 15, 5, 1, 4]);
  assert.deepEqual([...tree.start], [0, 0, 15, 4, 0]);
  assert.deepEqual(tree.rows.map((row) => [...row.name]), [[0], [1, 2], [4, 3]]);
  assert.deepEqual(tree.children[1], [4, 3]);
  assert.deepEqual(tree.path(3), [0, 1, 3]);
  assert.deepEqual([...tree.height], [2, 1, 0, 0, 0]);
});

test('the trunk ends where the tree branches, or where a node is left that calls nothing', () => {
  const chain = (...self) => new Tree({...SMALL, parent: self.map((_, i) => i - 1), name: self, kind: self, self, before: undefined, count: self});
  assert.equal(new Tree(SMALL).trunk(), 0);
  assert.equal(chain(0, 0, 1, 0, 100).trunk(), 3);
  assert.equal(chain(0, 0, 20, 100).trunk(), 2);
});

test('arrows lead to parents, widest children and neighbours', () => {
  const tree = new Tree(SMALL);
  assert.equal(tree.neighbour(0, 'child'), 1);
  assert.equal(tree.neighbour(1, 'child'), 4);
  assert.equal(tree.neighbour(4, 'next'), 3);
  assert.equal(tree.neighbour(3, 'next'), 3);
  assert.equal(tree.neighbour(3, 'parent'), 1);
  assert.equal(tree.neighbour(0, 'parent'), 0);
});

test('a sandwich has all callers of a name above and all its callees below, recursion once', () => {
  // 0: all, a > f > g, b > f > f > g, and f's own time
  const source = {key: 'wall', unit: 'ns', parent: [-1, 0, 1, 2, 0, 4, 5, 6], name: [0, 1, 2, 3, 4, 2, 2, 3], kind: [4, 0, 0, 0, 0, 0, 0, 0],
    self: [0, 1, 10, 20, 2, 5, 7, 30], count: [0, 1, 1, 1, 1, 1, 1, 1]};
  const middle = new Tree(sandwich(new Tree(source), 2));
  assert.equal(middle.total[0], 10 + 20 + 5 + 7 + 30);
  const of = (up) => middle.name.map((name, i) => [name, middle.total[i], middle.up[i]]).filter(([, , u], i) => i > 0 && u === up).map(([name, total]) => [name, total]);
  assert.deepEqual(of(1).sort(), [[1, 30], [4, 42]]);
  assert.deepEqual(of(0), [[3, 20], [2, 37], [3, 30]]);
  assert.deepEqual(middle.rows.map(({name}) => name.length), [2, 1, 2, 1], 'callers, the name, callees');
  assert.equal(middle.depth[0], 1);
});

test('the share of what matches counts a match inside a match once', () => {
  const tree = new Tree(SMALL);
  const {count, share, nodes} = tree.search(Uint8Array.of(0, 1, 0, 0));
  assert.equal(count, 2);
  assert.equal(share, 15 / 20);
  assert.deepEqual([...nodes], [0, 1, 0, 1, 0]);
});

test('what is not drawn by itself may match, too, unless it is inside a match', () => {
  // 0: all, 1: a (match), 2: small ones in a, 3: small ones outside
  const tree = new Tree({parent: [-1, 0, 1, 0], name: [0, 1, 2, 2], kind: [4, 0, 0, 0], self: [0, 10, 5, 5]});
  const {count, share, most} = tree.search(Uint8Array.of(0, 1, 0), 2);
  assert.deepEqual([count, share, most], [1, 15 / 20, 20 / 20]);
  assert.equal(tree.search(Uint8Array.of(0, 1, 0)).most, 15 / 20);
});

test('a comparison says what is new (1), gone (-1) and the same (0), and may have widths of before', () => {
  const tree = new Tree(SMALL);
  assert.deepEqual([4, 2, 3].map((i) => tree.change(i)), [1, -0.5, 0]);
  assert.deepEqual([...new Tree(SMALL, true).total], [11, 1, 10, 1, 0]);
  assert.equal(new Tree({...SMALL, before: undefined}).compared, false);
});

test('in every tree no node is narrower than its children, nothing overlaps, and the root is the sum of all', () => {
  for (const source of JSON.parse(fakeBlocks().trees).trees) {
    const tree = new Tree(source);
    assert.equal(tree.total[0], source.self.reduce((a, b) => a + b, 0));
    for (let i = 0; i < tree.size; i++) {
      const children = tree.children[i].filter((c) => tree.total[c] > 0);
      assert.equal(children.reduce((sum, c) => sum + tree.total[c], 0) + source.self[i], tree.total[i]);
      let at = tree.start[i];
      for (const c of children) {
        assert.ok(Math.abs(tree.start[c] - at) < 1e-6 * tree.total[0], `${c} stands where the one before ends`);
        at += tree.total[c];
      }
    }
  }
});

test('100,000 nodes are laid out at once', () => {
  const size = 100000;
  const parent = Array.from({length: size}, (_, i) => (i === 0 ? -1 : Math.floor(i / 3)));
  const began = performance.now();
  const tree = new Tree({parent, name: parent, kind: parent, self: parent.map(() => 1)});
  console.log(`# ${Math.round(performance.now() - began)} ms`);
  assert.equal(tree.total[0], size);
});
