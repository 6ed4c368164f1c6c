// SPDX-License-Identifier: BSD-2-Clause
// What the colours of states mean.
import {css} from '../canvas/pixels.js';
import {ofState, stateClass} from '../canvas/colour.js';
import {h} from '../dom.js';

/** Of the states that are in these tracks: one entry a colour, in the order of the colours. */
export function stateLegend(names, tracks) {
  const found = new Map();
  for (const track of tracks)
    for (const levels of track?.lanes ?? [])
      for (const i of new Set(levels.at(-1).name)) found.set(stateClass(names[i]).title, names[i]);
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
