// SPDX-License-Identifier: BSD-2-Clause
// The account of the time: one bar, and a table with a row a place. The rows are those of the report.
import {bars} from './bars.js';
import {h, placeLink, printable} from './dom.js';
import {format, formatCount, formatNs, formatShare} from './format.js';

const LEAST = 0.01; // of all time: smaller places are one row
const MOST = 10; // places with a row of their own
const HUES = 12;

/** The kind of each place: the report has the parts of all places in the same order. */
function kindsOf(places, rows) {
  let at = 0;
  return places.map(({ns}) => {
    const {kind, place} = rows[at] ?? {};
    for (let left = ns; at < rows.length && left > 0; at++) left -= rows[at].ns;
    return {kind, known: place !== null && place !== undefined};
  });
}

/** [{what, detail, ns, each, share, error, kind, known, parts}]; `others`: what the small ones are together. */
export function placesOf({tables}) {
  const lines = tables.places?.rows ?? [];
  const heads = lines.filter((line) => line.part === null);
  const kinds = kindsOf(heads, tables.rows?.rows ?? []);
  const all = heads.map((line, i) => {
    const first = lines.indexOf(line) + 1;
    const next = lines.findIndex((other, at) => at >= first && other.part === null);
    const [what, ...detail] = line.what.split('  ');
    return {...line, ...kinds[i], what, detail: detail.join('  '), parts: lines.slice(first, next < 0 ? undefined : next)};
  });
  const large = all.filter(({share, kind}, i) => share >= LEAST && (i < MOST || kind === 'ready' || kind === 'probes'));
  const small = all.filter((place) => !large.includes(place));
  const sum = (key) => small.reduce((total, place) => total + place[key], 0);
  const others = small.length > 0 && {
    what: `${formatCount(small.length)} other place${small.length > 1 ? 's' : ''}`,
    detail: '',
    ns: sum('ns'),
    each_ns: sum('each_ns'),
    share: sum('share'),
    kind: 'others',
    parts: [],
  };
  return others ? [...large, others] : large;
}

const TITLES = {span: 'on a CPU', 'on CPU': 'on a CPU', waiting: 'waiting', ready: 'ready, without a CPU', probes: 'the recording', others: ''};

/** Solid: on a CPU; striped: waiting; grey: what is not the program's own. */
const tone = ({kind}, i) => ({
  class: `tone ${kind === 'waiting' ? 'waits' : ''}`,
  vars: {'--tone': ['ready', 'probes', 'others'].includes(kind) ? 'var(--idle)' : `var(--hue-${i % HUES})`},
});

/** "on a CPU 58 %, ready 36 %, waiting 6 %" */
export const useOf = ({cpu_share: cpu, ready_share: ready}) =>
  `on a CPU ${formatShare(cpu)}, ready ${formatShare(ready)}, waiting ${formatShare(Math.max(0, 1 - cpu - ready))}`;

function row(place, mark, {trees, to}, {each, part}) {
  const name = [printable(place.what.trim()), place.detail && h('span', {class: 'quiet'}, `  ${printable(place.detail)}`)];
  return h(
    'tr',
    {class: part ? 'part-of' : undefined},
    h(
      'td',
      {class: 'what', title: [place.what, place.detail, TITLES[place.kind]].filter(Boolean).join('  ')},
      mark && h('i', mark),
      trees && place.known ? placeLink(to, {tab: 'flame', q: place.what, sel: ''}, {}, ...name) : h('span', {}, ...name),
    ),
    each && h('td', {class: 'number'}, formatNs(place.each_ns)),
    h('td', {class: 'number'}, formatShare(place.share)),
    h('td', {class: 'number quiet'}, place.error_share > 0 ? `± ${formatShare(place.error_share)}` : ''),
  );
}

/** @param {any} section "account" of the report @param {import('./place.js').Place} to @param {{trees: boolean}} how */
export function makeAccount(section, to, {trees}) {
  const {values, tables} = section;
  const places = placesOf(section);
  const of = values.steps > 0 ? `one step of ${formatNs(values.ns / values.steps)}` : `${values.members > 1 ? 'one thread, of' : 'all of'} ${formatNs(values.ns / Math.max(1, values.members))}`;
  const marks = places.map(tone);
  const families = tables.families?.rows.slice(1) ?? [];
  return h(
    'section',
    {class: 'account', 'aria-label': section.title},
    h('h2', {}, `${section.title}: `, h('span', {}, of)),
    h(
      'div',
      {class: 'account-bar', role: 'img', 'aria-label': 'shares of the places'},
      ...places.map((place, i) =>
        h('i', {
          class: marks[i].class,
          vars: {...marks[i].vars, '--share': Math.max(0, place.share).toFixed(5)},
          title: `${formatShare(place.share)}  ${printable(place.what)}`,
        }),
      ),
    ),
    h(
      'p',
      {class: 'quiet legend'},
      h('span', {}, h('i', {class: 'tone', vars: {'--tone': 'var(--hue-0)'}}), 'on a CPU'),
      h('span', {}, h('i', {class: 'tone waits', vars: {'--tone': 'var(--hue-0)'}}), 'waiting'),
      h('span', {}, h('i', {class: 'tone', vars: {'--tone': 'var(--idle)'}}), 'ready, probes, small places'),
    ),
    h(
      'table',
      {},
      h('tbody', {}, ...places.flatMap((place, i) => [
        row(place, marks[i], {trees, to}, {each: true}),
        ...place.parts.map((part) => row(part, null, {trees, to}, {each: true, part: true})),
      ])),
    ),
    families.length > 0 && h('h3', {}, 'Other threads'),
    families.length > 0 &&
      bars(
        families.map(({thread, members, ns, cpu_ns: cpu, ready_ns: ready}) => ({
          name: `${thread}${members > 1 ? ` × ${formatCount(members)}` : ''}`,
          text: ns > 0 ? `${format(cpu / ns, 'share')} on a CPU` : '-',
          parts: ns > 0 ? [{share: cpu / ns, tone: 'main'}, {share: ready / ns, tone: 'idle'}] : [],
        })),
        'other threads: shares of their time on a CPU, and ready',
      ),
  );
}
