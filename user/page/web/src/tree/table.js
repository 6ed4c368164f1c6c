// SPDX-License-Identifier: BSD-2-Clause
// A tree of the block "trees" as a table whose rows open.
import {h, printable} from '../dom.js';
import {format, formatShare, heading} from '../format.js';
import {virtualRows} from '../rows.js';
import {inTotal} from './model.js';

/** Rows that are open at first, about. */
const FIRST_ROWS = 24;

/** Opens the largest nodes, until there are about so many rows. */
function firstOpen({total, children}, rows) {
  const open = new Set([0]);
  let shown = children[0].length;
  for (const i of [...total.keys()].slice(1).sort((a, b) => total[b] - total[a] || a - b)) {
    if (children[i].length === 0 || shown + children[i].length > rows) continue;
    open.add(i);
    shown += children[i].length;
  }
  return open;
}

/**
 * @param {any} tree one of `trees`
 * @param {string[]} names
 * @param {string} title
 */
export function makeTree(tree, names, title) {
  const sums = inTotal(tree);
  const {total, children} = sums;
  const open = firstOpen(sums, FIRST_ROWS);
  const nameOf = (i) => printable(names[tree.name[i]]);
  let rows = []; // {node, level}
  let focused = 0;
  let wanted = null; // nodes that the search leaves

  const body = h('tbody');
  const box = h(
    'div',
    {class: 'table-box', vars: {'--most': '160ch', '--least': '70ch'}},
    h(
      'table',
      {role: 'treegrid', 'aria-label': title},
      h('colgroup', {}, h('col'), ...[12, 10, 12, 11].map((w) => h('col', {vars: {width: `${w}ch`}}))),
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ...['name', 'total', 'share', 'self', 'count'].map((text, i) =>
            h('th', {scope: 'col', class: i > 0 ? 'figure' : undefined}, text),
          ),
        ),
      ),
      body,
    ),
  );

  const isOpen = (node) => (wanted ? children[node].some((child) => wanted.has(child)) : open.has(node));

  function makeRow(i) {
    const {node, level} = rows[i];
    const share = total[0] > 0 ? total[node] / total[0] : 0;
    const leaf = children[node].length === 0;
    return h(
      'tr',
      {
        'aria-level': level,
        'aria-expanded': leaf ? undefined : String(isOpen(node)),
        tabindex: i === focused ? 0 : -1,
        onclick: () => {
          focused = i;
          toggle(node);
          list.reveal(focused)?.focus();
        },
      },
      h(
        'td',
        {class: 'text node', title: nameOf(node), vars: {'--level': level - 1}},
        h('i', {class: 'twist', 'aria-hidden': 'true'}, leaf ? '' : isOpen(node) ? '▾' : '▸'),
        nameOf(node),
      ),
      h('td', {class: 'figure'}, format(total[node], tree.unit)),
      h('td', {class: 'figure bar', vars: {'--share': share.toFixed(4)}}, formatShare(share)),
      h('td', {class: 'figure'}, format(tree.self[node], tree.unit)),
      h('td', {class: 'figure'}, format(tree.count?.[node], 'count')),
    );
  }
  const list = virtualRows(box, body, makeRow);

  function lay(stay) {
    rows = [];
    const stack = [...children[0]].reverse().map((node) => ({node, level: 1}));
    while (stack.length > 0) {
      const row = stack.pop();
      if (wanted && !wanted.has(row.node)) continue;
      rows.push(row);
      if (!isOpen(row.node)) continue;
      for (let k = children[row.node].length - 1; k >= 0; k--)
        stack.push({node: children[row.node][k], level: row.level + 1});
    }
    focused = Math.min(focused, Math.max(0, rows.length - 1));
    list.reset(rows.length, {stay});
  }

  function toggle(node) {
    if (children[node].length === 0 || wanted) return;
    if (open.has(node)) open.delete(node);
    else open.add(node);
    lay(true);
  }

  function move(to) {
    focused = Math.max(0, Math.min(rows.length - 1, to));
    list.each((row, i) => (row.tabIndex = i === focused ? 0 : -1));
    list.reveal(focused)?.focus();
  }

  box.addEventListener('keydown', (event) => {
    const row = rows[focused];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = isOpen(row.node) && children[row.node].length > 0;
    const up = () => move(rows.findLastIndex((r, i) => i < focused && r.level < row.level));
    const act = {
      ArrowDown: () => move(focused + 1),
      ArrowUp: () => move(focused - 1),
      Home: () => move(0),
      End: () => move(rows.length - 1),
      ArrowRight: () => (inside ? move(focused + 1) : (toggle(row.node), move(focused))),
      ArrowLeft: () => (inside && !wanted ? (toggle(row.node), move(focused)) : row.level > 1 && up()),
      Enter: () => (toggle(row.node), move(focused)),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  let query;
  /** @param {import('../place.js').State} state */
  function update(state) {
    const now = state.q.trim().toLowerCase();
    if (now === query) return;
    query = now;
    wanted = null;
    if (query) {
      wanted = new Set();
      for (let i = tree.parent.length - 1; i > 0; i--) {
        if (!wanted.has(i) && !nameOf(i).toLowerCase().includes(query)) continue;
        wanted.add(i);
        wanted.add(tree.parent[i]);
      }
    }
    lay(false);
    const found =
      rows.length > 0 ? 'what matches the search, and what is above it' : 'nothing matches the search';
    about.textContent = format(total[0], tree.unit) + (wanted ? `, ${found}` : '');
  }

  const about = h('span', {class: 'quiet'});
  const element = h(
    'div',
    {class: 'table'},
    h('div', {class: 'caption'}, h('h3', {}, heading(title)), about),
    box,
  );
  return {element, update};
}

/**
 * The tree of that key, to be shown; null where the page has none.
 * @param {import('../blocks.js').Data} data
 * @param {string} key
 */
export async function findTree(data, key) {
  if (!data.has('trees')) return null;
  const {names, trees} = await data.json('trees');
  const tree = trees.find((t) => t.key === key);
  return tree && tree.parent.length > 1 ? makeTree(tree, names, tree.title) : null;
}
