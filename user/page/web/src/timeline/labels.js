// SPDX-License-Identifier: BSD-2-Clause
// The names left of the rows.
import {h, printable} from '../dom.js';
import {HEIGHT} from './model.js';

/** Rows of a thread besides its first have names of their own. */
function subtitles({block, y, parts}) {
  if (block?.kind !== 'thread') return [];
  return parts
    .filter((part) => part.depth === 0 && part.track.name && part.y >= y + HEIGHT.group)
    .map((part) =>
      h('span', {class: 'tl-sub quiet', vars: {top: `${part.y - y}px`}}, printable(part.track.name)),
    );
}

/** One that can be folded is a button, which calls `toggle` with its key. */
export function makeLabel(row, folded, toggle) {
  const {group, block, y, height} = row;
  const {key, title} = block ?? group;
  const number = block ? block.tid : group.pid;
  const name = printable(title);
  const foldable = !block || block.tracks.some((track) => track.lanes.length > 1);
  return h(
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
}
