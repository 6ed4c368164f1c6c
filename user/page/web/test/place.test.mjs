// SPDX-License-Identifier: BSD-2-Clause
import assert from 'node:assert/strict';
import test from 'node:test';
import {Place, formatPlace, parsePlace} from '../src/place.js';

/** What Place uses of a window. */
function fakeWindow(hash = '') {
  const entries = [hash];
  let at = 0;
  let onpop;
  return {
    entries,
    location: {
      get hash() {
        return entries[at];
      },
    },
    history: {
      pushState: (state, title, to) => entries.splice(++at, entries.length, to),
      replaceState: (state, title, to) => (entries[at] = to),
    },
    addEventListener: (name, listener) => (onpop = listener),
    back() {
      at--;
      onpop();
    },
  };
}

/** Timers that run when the test says so. Node 18 has none that can be cleared. */
function mockTimeouts(t) {
  const waiting = new Map();
  const {setTimeout, clearTimeout} = globalThis;
  globalThis.setTimeout = (run) => {
    const id = {};
    waiting.set(id, run);
    return id;
  };
  globalThis.clearTimeout = (id) => waiting.delete(id);
  t.after(() => Object.assign(globalThis, {setTimeout, clearTimeout}));
  return () => {
    const due = [...waiting.values()];
    waiting.clear();
    due.forEach((run) => run());
  };
}

test('a place survives its address, whatever names are in it', () => {
  const state = {
    tab: 'timeline',
    from: 1234567890,
    to: 9e15,
    q: 'a&b=c #1 <ü> %41',
    sel: '"\u202e\n',
    sort: 'operations.operations:-self_ns',
  };
  assert.deepEqual(parsePlace(formatPlace(state)), state);
});

test('a rank may have begun before the first capture', () => {
  const {from, to} = parsePlace('#from=-50.4&to=9');
  assert.deepEqual([from, to], [-50, 9]);
});

test('what an address says wrongly is left out', () => {
  for (const hash of [
    '',
    '#',
    '#from=1',
    '#from=5&to=5',
    '#from=x&to=9',
    '#from=1&to=Infinity',
    '#unknown=1',
  ])
    assert.deepEqual(
      parsePlace(hash),
      {tab: '', from: undefined, to: undefined, q: '', sel: '', sort: ''},
      hash,
    );
});

test('going somewhere makes a place to come back to; typing does not', (t) => {
  const pass = mockTimeouts(t);
  const window = fakeWindow('#tab=summary');
  const place = new Place(window);
  const seen = [];
  place.listen((state) => seen.push([state.tab, state.q]));
  place.go({tab: 'operations'});
  place.go({q: 'm'}, {replace: true});
  place.go({q: 'mm'}, {replace: true});
  assert.deepEqual(window.entries, ['#tab=summary', '#tab=operations'], 'typing is written later');
  pass();
  assert.deepEqual(window.entries, ['#tab=summary', '#tab=operations&q=mm']);
  place.go({tab: 'memory'});
  window.back();
  assert.deepEqual(place.state.q, 'mm');
  window.back();
  assert.deepEqual(seen, [
    ['operations', ''],
    ['operations', 'm'],
    ['operations', 'mm'],
    ['memory', 'mm'],
    ['operations', 'mm'],
    ['summary', ''],
  ]);
});

test('what was typed is kept when the reader goes on before it was written', (t) => {
  const pass = mockTimeouts(t);
  const window = fakeWindow('#tab=summary');
  const place = new Place(window);
  place.go({q: 'x'}, {replace: true});
  place.go({tab: 'memory'});
  assert.deepEqual(window.entries, ['#tab=summary&q=x', '#tab=memory&q=x']);
});

test('going to where one is changes nothing', () => {
  const window = fakeWindow('#tab=summary');
  const place = new Place(window);
  place.listen(() => assert.fail('nothing changed'));
  place.go({tab: 'summary'});
  assert.deepEqual(window.entries, ['#tab=summary']);
});
