// SPDX-License-Identifier: BSD-2-Clause
// Bars without a canvas: a name, a bar of parts, a figure.
import {h, placeLink, printable} from './dom.js';

/**
 * @typedef {{share: number, tone: string, title?: string}} Part of the bar's length; tone: a class of style.css
 * @param {{name: string, parts: Part[], text: string, link?: [import('./place.js').Place, object], title?: string,
 *   selected?: boolean}[]} rows link: the place that the name leads to
 * @param {string} label
 */
export const bars = (rows, label) =>
  h(
    'ul',
    {class: 'bars', 'aria-label': label},
    ...rows.map(({name, parts, text, link, title, selected}) =>
      h(
        'li',
        {class: selected ? 'selected' : undefined},
        link
          ? placeLink(...link, {class: 'name', title: printable(title ?? name)}, printable(name))
          : h('span', {class: 'name', title: printable(title ?? name)}, printable(name)),
        h(
          'span',
          {class: 'track'},
          ...parts.map((part) =>
            h('span', {
              class: `part ${part.tone}`,
              title: part.title,
              vars: {'--share': part.share.toFixed(5)},
            }),
          ),
        ),
        h('span', {class: 'value'}, text),
      ),
    ),
  );

/** What the tones mean. @param {[string, string][]} tones tone and text */
export const legend = (tones) =>
  h(
    'ul',
    {class: 'legend'},
    ...tones.map(([tone, text]) => h('li', {}, h('i', {class: `part ${tone}`}), text)),
  );
