// SPDX-License-Identifier: BSD-2-Clause
// A section of a report, whatever it is of: its figures, notes and tables.
import {h, placeLink, printable} from './dom.js';
import {format} from './format.js';
import {makeTable} from './table.js';

const WIDE = 20; // a text that has two columns
const LONG = 50; // a text that has a line for itself

/** Values with their titles; those that are not known are left out. */
export function figures({values, about}, {leaveOut = []} = {}) {
  const known = Object.keys(values).filter((key) => values[key] !== null && !leaveOut.includes(key));
  if (known.length === 0) return null;
  return h(
    'dl',
    {class: 'figures'},
    ...known.map((key) => {
      const text = printable(format(values[key], about[key]?.unit));
      const bad = key.startsWith('lost') && values[key] > 0;
      return h(
        'div',
        {
          class:
            `${text.length > LONG ? 'long' : text.length > WIDE ? 'two' : ''} ${bad ? 'bad' : ''}`.trim() ||
            undefined,
        },
        h('dt', {}, about[key]?.title ?? key),
        h('dd', {'data-key': key}, text),
      );
    }),
  );
}

export const notes = (texts) =>
  texts.length > 0 && h('ul', {class: 'notes'}, ...texts.map((text) => h('li', {}, printable(text))));

const AROUND_NS = 1e6; // what is shown around a moment that has no length

/** A moment as a link to its place in the timeline. */
function momentCell(place) {
  return (row, column) => {
    const at = row[column.key];
    if (at === null) return undefined;
    const length = row.time_ns ?? row.longest_gap_ns ?? AROUND_NS;
    const from = Math.max(0, Math.floor(at - length / 2));
    const to = Math.ceil(at + length * 1.5);
    return placeLink(
      place,
      {tab: 'timeline', from, to},
      {title: 'show in timeline'},
      format(at, column.unit),
    );
  };
}

/**
 * @param {string} key of the section
 * @param {any} section
 * @param {import('./place.js').Place} place
 * @param {object} [how]
 * @param {boolean} [how.title] whether its title stands above it
 * @param {boolean} [how.timeline] whether there is a timeline to jump to
 * @param {string[]} [how.leaveOut] values and tables that are shown otherwise
 * @param {(key: string) => object} [how.table] further options of its tables, by key
 * @returns {{element: HTMLElement, update: (state: any) => void}}
 */
export function makeSection(key, section, place, {title = true, timeline, leaveOut = [], table: more} = {}) {
  const tables = Object.entries(section.tables)
    .filter(([name, table]) => table.rows.length > 0 && !leaveOut.includes(name))
    .map(([name, table]) => {
      const moments = timeline ? table.columns.filter((column) => column.unit === 'time_ns') : [];
      const cells = Object.fromEntries(moments.map((column) => [column.key, momentCell(place)]));
      return makeTable({id: `${key}.${name}`, table, place, cells, ...more?.(name)});
    });
  const element = h(
    'section',
    {class: 'report', id: `section-${key}`, 'aria-label': section.title},
    title && h('h2', {}, section.title),
    figures(section, {leaveOut}),
    notes(section.notes),
    ...tables.map((table) => table.element),
  );
  return {
    element,
    update: (state) => tables.forEach((table) => table.update(state)),
  };
}

/** Whether there is anything in it. */
export const isEmpty = (section) =>
  Object.values(section.values).every((value) => value === null) &&
  section.notes.length === 0 &&
  Object.values(section.tables).every((table) => table.rows.length === 0);
