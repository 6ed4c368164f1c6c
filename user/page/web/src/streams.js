// SPDX-License-Identifier: BSD-2-Clause
// Streams: what the GPUs did, and why they were idle.
import {bars, legend} from './bars.js';
import {h, placeLink} from './dom.js';
import {format, formatNs, formatShare} from './format.js';
import {isEmpty, makeSection} from './section.js';
import {findTree} from './tree/table.js';

const DEVICE_PARTS = [
  ['compute_ns', 'compute', 'compute'],
  ['communication_ns', 'communication', 'communication alone'],
  ['memory_ns', 'memory', 'memory alone'],
  ['idle_host_ns', 'idle-host', 'idle, the host was late'],
  ['idle_rest', 'idle', 'idle otherwise'],
  ['unrecorded_ns', 'unknown', 'not recorded'],
];
const STREAM_PARTS = [
  ['busy_ns', 'compute', 'busy'],
  ['host_wait_ns', 'idle-host', 'idle: host wait'],
  ['kernel_wait_ns', 'idle-kernel', 'idle: kernel wait'],
  ['other_ns', 'idle', 'idle: other'],
  ['unknown_ns', 'unknown', 'idle: launch not known'],
  ['unrecorded_ns', 'unknown', 'not recorded'],
];

const deviceName = (row, several) => `GPU ${row.device}${several ? ` of ${row.pid}` : ''}`;

/** Rows as bars of parts, on one scale. */
function stacked(rows, parts, nameOf, label) {
  const sum = (row) => parts.reduce((total, [key]) => total + (row[key] ?? 0), 0);
  const most = Math.max(...rows.map(sum), 1);
  const used = parts.filter(([key]) => rows.some((row) => row[key] > 0));
  return [
    legend(used.map(([, tone, text]) => [tone, text])),
    bars(
      rows.map((row) => ({
        name: nameOf(row),
        text: `${formatNs(row.busy_ns)} busy${row.busy_share === null ? '' : `, ${formatShare(row.busy_share)}`}`,
        parts: used.map(([key, tone, text]) => ({
          share: (row[key] ?? 0) / most,
          tone,
          title: `${text}: ${format(row[key], 'ns')}`,
        })),
      })),
      label,
    ),
  ];
}

/** A strip a device: how busy it was, by piece of the time; each leads to its piece of the timeline. */
function useOverTime(rows, several, timeline, place) {
  const devices = Map.groupBy(rows, (row) => `${row.pid}/${row.device}`);
  return [...devices.values()].map((pieces) => {
    const length = pieces.length > 1 ? pieces[1].from_ns - pieces[0].from_ns : 0;
    return h(
      'div',
      {class: 'use'},
      h('span', {class: 'name'}, deviceName(pieces[0], several)),
      h(
        'div',
        {class: 'strip'},
        ...pieces.map((piece) => {
          const text = `${formatShare(piece.busy_share)} busy from ${format(piece.from_ns, 'time_ns')}`;
          const attributes = {
            title: text,
            'aria-label': text,
            vars: {'--share': piece.busy_share.toFixed(3)},
          };
          const part = {
            tab: 'timeline',
            from: Math.floor(piece.from_ns),
            to: Math.ceil(piece.from_ns + length),
          };
          return timeline && length > 0
            ? placeLink(place, part, attributes)
            : h('span', {...attributes, role: 'img'});
        }),
      ),
    );
  });
}

/** @type {import('./tabs.js').Tab} */
export default {
  key: 'streams',
  title: 'Streams',
  sections: ['gpu', 'cuda'],
  applies: (data) =>
    ['gpu', 'cuda'].some((key) => data.report?.sections[key] && !isEmpty(data.report.sections[key])),
  async render(element, data, place) {
    const {sections} = data.report;
    const timeline = data.has('timeline');
    const rowsOf = (table) => sections.gpu?.tables[table]?.rows ?? [];
    const devices = rowsOf('devices').map((row) => ({
      ...row,
      idle_rest: Math.max(0, row.idle_ns - row.idle_host_ns),
    }));
    const several = new Set(devices.map((row) => row.pid)).size > 1;
    const card = (title, ...content) =>
      element.append(h('div', {class: 'card'}, h('h2', {}, title), ...content));

    if (devices.length > 0)
      card(
        'Time of devices',
        ...stacked(devices, DEVICE_PARTS, (row) => deviceName(row, several), 'time of devices'),
      );
    if (rowsOf('use').length > 0)
      card('Busy, over the time', ...useOverTime(rowsOf('use'), several, timeline, place));
    if (rowsOf('streams').length > 0) {
      const name = (row) => `${deviceName(row, several)}, stream ${row.stream}`;
      card(
        'Streams: busy, and why they were idle',
        ...stacked(rowsOf('streams'), STREAM_PARTS, name, 'streams'),
      );
    }
    const shownAbove = rowsOf('kernels').length > 0 ? ['kernels'] : []; // the GPU's own table of them has more
    const parts = ['gpu', 'cuda']
      .filter((key) => sections[key] && !isEmpty(sections[key]))
      .map((key) =>
        makeSection(key, sections[key], place, {
          timeline,
          title: key !== 'gpu',
          leaveOut: key === 'gpu' ? ['use'] : shownAbove,
        }),
      );
    parts.push(...[await findTree(data, 'gpu')].filter(Boolean));
    const update = (state) => parts.forEach((part) => part.update(state));
    element.append(...parts.map((part) => part.element));
    update(place.state); // what opens with its rows only then: the tree
    return {update};
  },
};
