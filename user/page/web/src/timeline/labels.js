// SPDX-License-Identifier: BSD-2-Clause
// The names left of the rows.
import {h, printable} from '../dom.js';
import {formatCount} from '../format.js';
import {HEIGHT, idleKey} from './model.js';

/** Rows of a thread besides its first have names of their own. */
function subtitles({block, y, parts}) {
  if (block?.kind !== 'thread') return [];
  return parts
    .filter((part) => part.depth === 0 && part.track.name && part.y >= y + HEIGHT.group)
    .map((part) =>
      h('span', {class: 'tl-sub quiet', vars: {top: `${part.y - y}px`}}, printable(part.track.name)),
    );
}

/** What stands there: {key, name, number}. */
function about({group, block, idle, pinned}) {
  if (idle) return {key: idleKey(group), name: `${formatCount(idle.length)} idle threads`};
  const name = printable((block ?? group).title);
  if (pinned) return {key: block.key, name: `${name} · ${printable(group.title)}`, number: block.tid};
  return block ? {key: block.key, name, number: block.tid} : {key: group.key, name, number: group.pid};
}

/** One that can be folded is a button, which calls `toggle` with its key; blocks have one more, which calls `pin`. */
export function makeLabel(row, folded, toggle, pin) {
  const {block, pinned, y, height} = row;
  const {key, name, number} = about(row);
  const foldable = !block || block.tracks.some((track) => track.lanes.length > 1);
  const label = h(
    foldable ? 'button' : 'div',
    {
      class: `tl-label ${block ? 'tl-block' : 'tl-group'}`,
      title: `${name} ${number ?? ''}`,
      vars: {top: `${y}px`, height: `${height}px`},
      'data-key': key,
      ...(foldable && {'aria-expanded': String(!folded.has(key)), onclick: () => toggle(key)}),
    },
    h('span', {class: 'tl-title'}, name),
    number !== undefined && h('span', {class: 'quiet'}, String(number)),
    ...subtitles(row),
  );
  if (!block) return [label];
  const what = `${pinned ? 'unpin' : 'pin'} ${name}`;
  return [label, h('button', {class: 'tl-pin', vars: {top: `${y + 3}px`}, 'aria-pressed': String(!!pinned), title: what, 'aria-label': what, onclick: () => pin(key)}, pinned ? '↓' : '↑')];
}
