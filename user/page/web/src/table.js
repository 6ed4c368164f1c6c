// SPDX-License-Identifier: BSD-2-Clause
// A table of a report: sorted by its columns, filtered by the search.
import {h, printable} from './dom.js';
import {format, formatCount, heading} from './format.js';
import {virtualRows} from './rows.js';

/**
 * @typedef {{key: string, title: string, unit: string, identity: boolean}} Column
 * @typedef {{title: string, row_count: number, columns: Column[], rows: Record<string, any>[]}} Table
 * @typedef {{key: string, down: boolean}} Order
 */

const TEXT_CH = 34; // the widest text column but the flexible one
const NAME_CH = 26; // the flexible one, at least
const NAME_MOST_CH = 90;
const SAMPLE = 200; // rows that are measured for the columns' width
const collator = new Intl.Collator('en', {numeric: true});

/** The first column, and those in which something is known. @param {Table} table */
export const knownColumns = (table) =>
  table.columns.filter(({key}, i) => i === 0 || table.rows.some((row) => row[key] !== null));

/** @param {Record<string, any>[]} rows @param {Order} order @returns a new array; what is not known comes last */
export function sortRows(rows, {key, down}) {
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [a[key] ?? null, b[key] ?? null];
    if (x === null || y === null) return (x === null) - (y === null);
    return (
      sign * (typeof x === 'number' && typeof y === 'number' ? x - y : collator.compare(String(x), String(y)))
    );
  });
}

/** Rows with the query in one of their texts; all, where there are no texts. */
export function filterRows(rows, columns, query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return rows;
  const keys = columns.filter((column) => column.unit === 'text').map((column) => column.key);
  if (keys.length === 0) return rows;
  return rows.filter((row) => keys.some((key) => row[key]?.toLowerCase().includes(wanted)));
}

/** The order that a report gave its rows: by the first column of figures that falls. @param {Table} table */
export function givenOrder({columns, rows}) {
  const falls = ({key, unit, identity}) =>
    !identity &&
    unit !== 'text' &&
    rows.every((row, i) => row[key] !== null && (i === 0 || row[key] <= rows[i - 1][key])) &&
    rows[0][key] > rows.at(-1)[key];
  const column =
    rows.length > 2 && (columns.find((c) => c.unit !== 'count' && falls(c)) ?? columns.find(falls));
  return column ? {key: column.key, down: true} : undefined;
}

/** @param {string} sort "ID:-COLUMN" @param {string} id @returns {Order | undefined} if it speaks of this table */
export function parseSort(sort, id) {
  if (!sort.startsWith(`${id}:`)) return undefined;
  const key = sort.slice(id.length + 1);
  return key.startsWith('-') ? {key: key.slice(1), down: true} : {key, down: false};
}

/**
 * Widths in characters. The text column with the longest texts may be narrower: `least`, instead of its width.
 * @returns {{flexible: Column | undefined, least: number, each: number[]}}
 */
function widths(columns, rows, largest, grow) {
  const sample = rows.slice(0, SAMPLE);
  const longest = columns.map(({key, unit}) =>
    Math.max(format(largest.get(key), unit).length, ...sample.map((row) => format(row[key], unit).length)),
  );
  const texts = columns.filter(({unit}) => unit === 'text');
  const lengthOf = (column) => longest[columns.indexOf(column)];
  const flexible = texts.reduce((a, b) => (a && lengthOf(a) >= lengthOf(b) ? a : b), undefined);
  const each = columns.map((column, i) => {
    const words = column.title.split(' ').map((word) => word.length);
    const length = column.title.length;
    const title = Math.max(...words, length > 8 ? Math.ceil(length / 2) : length) + 1; // two lines, and the arrow
    const room = column.unit === 'text' ? 3 : 2; // letters may be wider than digits
    const most = column === flexible ? NAME_MOST_CH : TEXT_CH;
    return Math.min(most, Math.max(longest[i], title) + room) + (grow[column.key] ?? 0);
  });
  const least = flexible ? Math.min(NAME_CH, each[columns.indexOf(flexible)]) : 0;
  return {flexible, least, each};
}

/**
 * @param {object} given
 * @param {string} given.id "SECTION.TABLE": how the address names it
 * @param {Table} given.table
 * @param {import('./place.js').Place} given.place
 * @param {Record<string, (row: any, column: Column) => any>} [given.cells] what stands in cells of a column, where that is
 *   not the value alone
 * @param {(column: Column) => boolean} [given.bar] whether a column shows its values as bars, too
 * @param {(rows: any[], order: Order | undefined) => void} [given.onRows] told of the rows in their order, at each update
 * @param {(row: any) => boolean} [given.isSelected]
 * @param {Record<string, number>} [given.grow] characters that columns need beside their values
 * @param {Order} [given.first] the order at first, where the rows come in none
 * @param {boolean} [given.tall] the only one on its tab
 */
export function makeTable({id, table, place, cells = {}, bar, onRows, isSelected, tall, first, grow = {}}) {
  const columns = knownColumns(table);
  const given = givenOrder(table);
  const usual = given ?? first;
  const largest = new Map(
    columns
      .filter(({unit}) => unit !== 'text')
      .map(({key}) => [key, table.rows.reduce((m, row) => Math.max(m, row[key] ?? 0), 0)]),
  );
  let rows = table.rows;
  let order = usual;
  let drawn; // for what the rows were made

  const link = (column) => {
    // first as one expects it of the column, then the other way round
    const down = order?.key === column.key ? !order.down : column.unit !== 'text';
    return `${id}:${down ? '-' : ''}${column.key}`;
  };
  const heads = columns.map((column) =>
    h(
      'th',
      {scope: 'col', class: column.unit === 'text' ? undefined : 'figure'},
      h('button', {onclick: () => place.go({sort: link(column)}, {replace: true})}, printable(column.title)),
    ),
  );

  function cell(column, row) {
    const value = row[column.key];
    const text = column.unit === 'text' && value !== null ? printable(value) : format(value, column.unit);
    const isBar =
      value > 0 && (column.unit === 'share' ? true : order?.key === column.key && column.unit !== 'text');
    const share = column.unit === 'share' ? Math.min(1, value) : value / largest.get(column.key);
    return h(
      'td',
      {
        class: `${column.unit === 'text' ? 'text' : 'figure'}${isBar && bar?.(column) !== false ? ' bar' : ''}`,
        title: column.unit === 'text' && text.length > 12 ? text : undefined,
        vars: isBar ? {'--share': share.toFixed(4)} : {},
      },
      cells[column.key]?.(row, column) ?? text,
    );
  }

  const body = h('tbody');
  const {flexible, least, each} = widths(columns, table.rows, largest, grow);
  const most = each.reduce((sum, w) => sum + w, 0);
  const box = h(
    'div',
    {
      class: tall ? 'table-box tall' : 'table-box',
      tabindex: '0',
      role: 'region',
      'aria-label': table.title,
      vars: {
        '--most': `${most}ch`,
        '--least': `${flexible ? most - each[columns.indexOf(flexible)] + least : most}ch`,
      },
    },
    h(
      'table',
      {'aria-rowcount': table.rows.length + 1},
      h(
        'colgroup',
        {},
        ...each.map((w, i) => h('col', {vars: columns[i] === flexible ? {} : {width: `${w}ch`}})),
      ),
      h('thead', {}, h('tr', {'aria-rowindex': 1}, ...heads)),
      body,
    ),
  );
  const mark = (element, i) => {
    if (isSelected?.(rows[i])) element.setAttribute('aria-current', 'true');
    else element.removeAttribute('aria-current');
    return element;
  };
  const list = virtualRows(box, body, (i) =>
    mark(h('tr', {'aria-rowindex': i + 2}, ...columns.map((column) => cell(column, rows[i]))), i),
  );
  const count = h('span', {class: 'quiet'});
  const element = h(
    'div',
    {class: 'table', id: `table-${id}`},
    h('div', {class: 'caption'}, h('h3', {}, heading(table.title)), count),
    box,
  );

  /** @param {import('./place.js').State} state */
  function update(state) {
    const asked = parseSort(state.sort, id);
    order = columns.some((column) => column.key === asked?.key) ? asked : usual;
    const key = [state.q, order?.key, order?.down].join('\n');
    if (key === drawn) {
      list.each(mark);
      onRows?.(rows, order);
      return;
    }
    drawn = key;
    rows = filterRows(table.rows, columns, state.q);
    if (order && order !== given) rows = sortRows(rows, order);
    columns.forEach((column, i) => {
      const here = order?.key === column.key;
      heads[i].setAttribute('aria-sort', here ? (order.down ? 'descending' : 'ascending') : 'none');
    });
    const held = table.rows.length;
    count.textContent = [
      rows.length < held
        ? `${formatCount(rows.length)} of ${formatCount(held)} rows`
        : `${formatCount(held)} ${held === 1 ? 'row' : 'rows'}`,
      table.row_count > held && `of ${formatCount(table.row_count)}: the page holds the first`,
    ]
      .filter(Boolean)
      .join(' ');
    list.reset(rows.length);
    onRows?.(rows, order);
  }
  update(place.state);
  return {element, update};
}
