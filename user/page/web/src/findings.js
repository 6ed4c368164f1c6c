// SPDX-License-Identifier: BSD-2-Clause
// What the rules of `analyze` and `compare` found.
import {h, placeLink, printable} from './dom.js';
import {format, formatShare} from './format.js';

const AROUND = 0.25; // of a finding's time, shown at either side of it

/** How the address names it. */
export const findingId = (finding) => [finding.rule, finding.subject].filter(Boolean).join('/');

export const severity = (finding) =>
  h('span', {class: `severity ${finding.severity}`}, finding.severity.toUpperCase());

const labelled = (label, text) => text && h('p', {}, h('b', {}, `${label}: `), printable(text));

/** The part of the time that shows a finding; undefined if it has none. */
export function findingPlace({from_ns: from, to_ns: to}) {
  if (!(to > 0)) return undefined;
  const around = Math.max(1000, (to - from) * AROUND);
  return {from: Math.max(0, Math.floor(from - around)), to: Math.ceil(to + around)};
}

/**
 * @param {any} finding
 * @param {import('./place.js').Place} place
 * @param {{timeline?: boolean, selected?: boolean, find?: [string, string][]}} [how] find: tabs that may show its subject
 */
export function findingCard(finding, place, {timeline, selected, find = []} = {}) {
  const known = Object.entries(finding.values).filter(([, value]) => value !== null);
  const at = timeline && findingPlace(finding);
  return h(
    'article',
    {
      class: `finding ${finding.severity}`,
      id: `finding-${findingId(finding)}`,
      'aria-current': selected ? 'true' : undefined,
    },
    h(
      'header',
      {},
      severity(finding),
      h('h3', {}, printable(finding.title)),
      h(
        'span',
        {class: 'share', vars: {'--share': Math.min(1, finding.share).toFixed(4)}},
        formatShare(finding.share),
      ),
    ),
    known.length > 0 &&
      h(
        'dl',
        {class: 'evidence'},
        ...known.map(([key, value]) =>
          h(
            'div',
            {},
            h('dt', {}, finding.about[key].title),
            h('dd', {'data-key': key}, printable(format(value, finding.about[key].unit))),
          ),
        ),
      ),
    finding.advice && h('p', {}, printable(finding.advice)),
    labelled('Uncertain', finding.uncertain),
    h(
      'footer',
      {},
      at && placeLink(place, {tab: 'timeline', ...at, q: ''}, {class: 'button'}, 'show in timeline'),
      ...find.map(([tab, text]) => placeLink(place, {tab, q: finding.subject}, {class: 'button'}, text)),
      h('span', {class: 'quiet'}, `rule ${finding.rule}`),
    ),
  );
}
