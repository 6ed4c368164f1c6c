// SPDX-License-Identifier: BSD-2-Clause
// Compare: what differs between two sides, and how sure that is.
import {h, printable} from './dom.js';
import {findingCard} from './findings.js';
import {format} from './format.js';
import {isEmpty, makeSection} from './section.js';

const WORSE = new Set(['slower', 'more', 'grows more', 'came']);
const BETTER = new Set(['faster', 'less', 'grows less', 'went']);

/** @param {string} verdict one that ends in "?" is as bad, but less sure */
export function toneOf(verdict) {
  const plain = verdict.replace(/\?$/, '');
  return WORSE.has(plain) ? 'worse' : BETTER.has(plain) ? 'better' : 'even';
}

/** The change in a cell: its figure, and its interval beside the line of no change. */
function changeCell(most) {
  return (row, column) => {
    const text = format(row.change, column.unit);
    if (row.change === null || row.low === null || row.high === null || !(most > 0)) return text;
    const at = (value) => (0.5 + Math.max(-0.5, Math.min(0.5, value / most / 2))).toFixed(4);
    return h(
      'span',
      {class: 'change'},
      h(
        'span',
        {
          class: `interval ${toneOf(row.verdict ?? '')}`,
          title: `${format(row.low, column.unit)} to ${format(row.high, column.unit)} (95 %)`,
          vars: {'--low': at(row.low), '--high': at(row.high), '--at': at(row.change)},
        },
        h('i'),
      ),
      text,
    );
  };
}

const verdictCell = (row) =>
  row.verdict && h('span', {class: `verdict ${toneOf(row.verdict)}`}, printable(row.verdict));

/** Options of a table: those of measurements have verdicts and changes. */
function tableOptions(table) {
  const keys = new Set(table.columns.map((column) => column.key));
  if (!keys.has('verdict')) return {};
  const sizes = table.rows
    .flatMap((row) => [row.low, row.high, row.change].filter((v) => v !== null).map(Math.abs))
    .sort((a, b) => a - b);
  const most = sizes[Math.floor(sizes.length * 0.9)] ?? 0; // what is beyond ends at the edge
  return {
    cells: {verdict: verdictCell, change: changeCell(most)},
    bar: () => false,
    grow: {change: 10},
  };
}

/** @type {import('./tabs.js').Tab} */
export default {
  key: 'compare',
  title: 'Compare',
  applies: (data) => !!data.compare,
  render(element, data, place) {
    const {findings, sections} = data.compare;
    const make = ([key, section]) =>
      makeSection(`compare.${key}`, section, place, {table: (name) => tableOptions(section.tables[name])});
    const parts = Object.entries(sections).filter(([, section]) => !isEmpty(section)).map(make);
    const list = h('div', {class: 'findings'}, ...findings.map((finding) => findingCard(finding, place)));
    element.append(
      h('h2', {}, findings.length > 0 ? 'What became worse' : 'Nothing became worse, as far as can be told'),
      list,
      ...parts.map((part) => part.element),
    );
    return {update: (state) => parts.forEach((part) => part.update(state))};
  },
};
