// SPDX-License-Identifier: BSD-2-Clause
// What the colours of states mean.
import {css} from '../canvas/pixels.js';
import {ofState, stateClass} from '../canvas/colour.js';
import {h} from '../dom.js';

/** Of the states that are in these tracks: one entry a colour, in the order of the colours. */
export function stateLegend(names, tracks) {
  const seen = new Uint8Array(names.length);
  for (const track of tracks) for (const [{name}] of track?.lanes ?? []) for (let i = 0; i < name.length; i++) seen[name[i]] = 1;
  const found = new Map(names.filter((_, i) => seen[i] === 1).map((name) => [stateClass(name).title, name]));
  const element = h('span', {class: 'legend'});
  const fill = () =>
    element.replaceChildren(
      ...[...found]
        .sort(([a], [b]) => stateClass(found.get(a)).order - stateClass(found.get(b)).order)
        .map(([title, name]) => h('span', {}, h('i', {vars: {background: css(ofState(name))}}), title)),
    );
  document.addEventListener('themechange', fill);
  fill();
  return element;
}
