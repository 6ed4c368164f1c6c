// SPDX-License-Identifier: BSD-2-Clause
// Operations: the longest as bars, one of them in detail, all in a table.
import {bars} from './bars.js';
import {h, placeLink, printable, refill} from './dom.js';
import {format, formatNs} from './format.js';
import {isEmpty, makeSection} from './section.js';
import {makeTable} from './table.js';

const BARS = 12;

/** Least, middle, 99th percentile and most, on a scale by powers. */
function spread(row) {
  const marks = ['min_ns', 'p50_ns', 'p99_ns', 'max_ns'].filter((key) => row[key] > 0);
  const low = Math.log(row.min_ns);
  const width = Math.log(row.max_ns) - low;
  if (marks.length < 4 || !(width > 0)) return null;
  const at = (key) => ((Math.log(row[key]) - low) / width).toFixed(4);
  return h(
    'div',
    {
      class: 'spread',
      role: 'img',
      'aria-label': marks.map((key) => `${key.replace('_ns', '')} ${formatNs(row[key])}`).join(', '),
    },
    h('span', {class: 'range', vars: {'--from': at('min_ns'), '--to': at('p99_ns')}}),
    ...marks.map((key) =>
      h('i', {class: key, title: `${key.replace('_ns', '')} ${formatNs(row[key])}`, vars: {'--at': at(key)}}),
    ),
  );
}

function detail(row, table, place, timeline, flame) {
  const find = (tab, text) => placeLink(place, {tab, q: row.name}, {class: 'button'}, text);
  return [
    h('h3', {title: printable(row.name)}, printable(row.name)),
    spread(row) ?? '',
    h(
      'dl',
      {class: 'figures'},
      ...table.columns
        .filter(({key, identity}) => !identity && row[key] !== null)
        .map(({key, title, unit}) => h('div', {}, h('dt', {}, title), h('dd', {}, format(row[key], unit)))),
    ),
    h(
      'p',
      {},
      flame && find('flame', 'find in flame graph'),
      ' ',
      timeline && find('timeline', 'find in timeline'),
    ),
  ];
}

/** @type {import('./tabs.js').Tab} */
export default {
  key: 'operations',
  title: 'Operations',
  sections: ['operations', 'samples'],
  applies: (data) =>
    ['operations', 'samples'].some(
      (key) => data.report?.sections[key] && !isEmpty(data.report.sections[key]),
    ),
  render(element, data, place) {
    const {sections} = data.report;
    const table = sections.operations?.tables.operations;
    const updates = [];
    if (table?.rows.length > 0) {
      const top = h('div', {class: 'card'});
      const side = h('aside', {class: 'card detail', 'aria-label': 'the operation that is selected'});
      const units = Object.fromEntries(table.columns.map(({key, unit, title}) => [key, {unit, title}]));
      const drawTop = (rows, order) => {
        const key = units[order?.key] && units[order.key].unit !== 'text' ? order.key : 'self_ns';
        const shown = rows.slice(0, BARS);
        const most = Math.max(...shown.map((row) => row[key] ?? 0), 0);
        const selected = table.rows.find((row) => row.name === place.state.sel) ?? shown[0];
        refill(
          top,
          h('h2', {}, `Operations by ${units[order?.key ?? key].title}`),
          bars(
            shown.map((row) => ({
              name: row.name,
              text: format(row[key], units[key].unit),
              link: [place, {sel: row.name}],
              selected: row === selected,
              parts: most > 0 ? [{share: (row[key] ?? 0) / most, tone: 'main'}] : [],
            })),
            `operations by ${units[key].title}`,
          ),
        );
        side.replaceChildren(
          ...(selected ? detail(selected, table, place, data.has('timeline'), data.has('trees')) : []),
        );
      };
      const all = makeTable({
        id: 'operations.operations',
        table,
        place,
        isSelected: (row) => row.name === place.state.sel,
        cells: {name: (row) => placeLink(place, {sel: row.name}, {}, printable(row.name))},
        onRows: drawTop,
        first: {key: 'self_ns', down: true},
        tall: true,
      });
      element.append(h('div', {class: 'beside'}, top, side), all.element);
      updates.push(all.update);
    }
    if (sections.samples && !isEmpty(sections.samples)) {
      const samples = makeSection('samples', sections.samples, place);
      element.append(samples.element);
      updates.push(samples.update);
    }
    return {update: (state) => updates.forEach((update) => update(state))};
  },
};
