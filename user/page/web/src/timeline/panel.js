// SPDX-License-Identifier: BSD-2-Clause
// Below the rows: what is selected, and as a table what takes the time in view.
import {h, printable} from '../dom.js';
import {format, formatCount, formatNs, formatShare} from '../format.js';
import {formatExactly, formatMoment} from './view.js';

const ROWS = 100;

const fill = (element, ...children) => element.replaceChildren(...children.filter(Boolean));

const fact = (title, text) => (text ? [h('dt', {}, title), h('dd', {}, printable(text))] : []);

/** A value as the trace has it; of stacks a frame a line. */
const valueText = (key, value) => {
  if (/stack$/i.test(key)) return (Array.isArray(value) ? value : value.split(';')).map(printable).join('\n');
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
};

const showArguments = (object) =>
  Object.entries(object ?? {}).flatMap(([key, value]) => [
    h('dt', {class: 'tl-argument'}, printable(key)),
    h('dd', {class: 'tl-argument'}, valueText(key, value)),
  ]);

const LINKS = 5;

const showLinks = (title, links) =>
  links.length > 0 && [
    h('dt', {}, title),
    h(
      'dd',
      {},
      ...links.slice(0, LINKS).map(({name, go}) => h('button', {class: 'link', onclick: go}, name)),
      links.length > LINKS && `and ${formatCount(links.length - LINKS)} more`,
    ),
  ];

/** What is known of a span, and where to go from it. `name`: as it may be shown; `into`, `outOf`: where arrows lead. */
export function showSpan(element, {track, depth, start, duration, busy, count, args}, name, {zoom, same, into, outOf}) {
  const merged = count > 1;
  const states = track.kind === 'states';
  fill(
    element,
    h('h3', {class: 'tl-name'}, name),
    merged &&
      h(
        'p',
        {class: 'tl-merged'},
        `${formatCount(count)} spans merged, zoom in: the name is that with the most time`,
      ),
    h(
      'dl',
      {class: 'tl-facts'},
      ...fact(merged ? 'First to last' : 'Duration', formatExactly(duration)),
      ...fact('Spans together', merged && formatExactly(busy)),
      ...fact('Start', formatMoment(start)),
      ...fact('End', formatMoment(start + duration)),
      ...fact('Process', track.process && `${track.process} (${track.pid})`),
      ...fact('Thread', track.thread && `${track.thread} (${track.tid})`),
      ...fact(track.kind === 'gpu' ? 'Stream' : 'Row', track.name),
      ...fact('Depth', track.kind === 'spans' && String(depth + 1)),
      showLinks(states ? 'Woken by' : 'Launched by', into),
      showLinks(states ? 'Wakes' : 'Launches', outOf),
      showArguments(args),
    ),
    h(
      'p',
      {},
      h('button', {onclick: zoom}, 'Zoom to it (f)'),
      ' ',
      h('button', {onclick: same}, 'Find all of this name'),
    ),
  );
}

export const spanText = ({start, duration, count}, name) =>
  `${formatNs(duration)}  ${name}${count > 1 ? `, ${formatCount(count)} spans merged` : ''}, at ${formatMoment(start)}`;

export function showPoint(element, track, at, value, name) {
  fill(
    element,
    h('h3', {class: 'tl-name'}, name),
    h(
      'dl',
      {class: 'tl-facts'},
      ...fact('Value', format(value, track.unit ?? 'number')),
      ...fact('At', formatMoment(at)),
    ),
  );
}

/** rows: of ownTimes(), of `moments` without times; `find` is called with the number of the name whose row is chosen. */
export function showTimes(element, {caption, rows, names, moments, find}) {
  const weight = (row) => (moments ? row.spans : row.own);
  const all = rows.reduce((sum, row) => sum + weight(row), 0);
  const cell = (text) => h('td', {class: 'number'}, text);
  const merged = rows.some((row) => row.merged || row.estimated);
  fill(
    element,
    h(
      'table',
      {class: 'tl-times'},
      h('caption', {}, caption),
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ...(moments ? ['Samples', 'Share'] : ['Own time', 'Share', 'Spans', 'Mean']).map((t) => h('th', {scope: 'col', class: 'number'}, t)),
          h('th', {scope: 'col'}, 'Name'),
        ),
      ),
      h(
        'tbody',
        {},
        ...rows.slice(0, ROWS).map((row) => {
          const about = row.merged ? '~' : '';
          const aboutTime = row.estimated ? '~' : '';
          return h(
            'tr',
            {},
            moments ? cell(about + formatCount(row.spans)) : cell(aboutTime + formatNs(row.own)),
            cell(all > 0 ? formatShare(weight(row) / all) : '-'),
            !moments && cell(about + formatCount(row.spans)),
            !moments && cell(row.merged ? '-' : aboutTime + formatNs(row.own / row.spans)),
            h(
              'td',
              {},
              h(
                'button',
                {class: 'link', title: names[row.name], onclick: () => find(row.name)},
                names[row.name],
              ),
            ),
          );
        }),
      ),
    ),
    rows.length > ROWS &&
      h('p', {class: 'quiet'}, `${formatCount(rows.length - ROWS)} more names are not shown`),
    merged &&
      h(
        'p',
        {class: 'quiet'},
        '~: spans that are merged in this page count, by the sum of their times, for the name with the most time among them, and ' +
          'so other names may lack some; those inside of others are spread evenly over what they lie in; zoom in for more',
      ),
    rows.length === 0 && h('p', {class: 'quiet'}, 'nothing'),
  );
}
