// SPDX-License-Identifier: BSD-2-Clause
// Summary: what was recorded, what stands out, and all that no other tab shows.
import {bars} from './bars.js';
import {h, placeLink, printable} from './dom.js';
import {findingId, severity} from './findings.js';
import {format, formatCount, formatNs} from './format.js';
import {isEmpty, makeSection, notes} from './section.js';

const FINDINGS = 6;
const OPERATIONS = 8;

/** What stands large at the top: section, key of the value, title (else the report's own). */
const TILES = [
  ['recording', 'recorded_ns', 'recorded'],
  ['recording', 'spans', 'spans'],
  ['recording', 'processes', 'processes'],
  ['recording', 'threads', 'threads with spans'],
  ['job', 'time_ns', 'time'],
  ['job', 'ranks', 'ranks'],
  ['job', 'hosts', 'hosts'],
  ['job', 'collectives', 'collectives'],
  ['steps', 'steps', 'steps'],
  ['steps', 'steps_per_second'],
  ['steps', 'p50_ns', 'median step'],
];

function tiles(sections) {
  const known = TILES.filter(
    ([section, key]) =>
      (sections[section]?.values[key] ?? null) !== null && !(section === 'job' && key === 'time_ns' && sections.recording),
  );
  if (known.length === 0) return '';
  return h(
    'dl',
    {class: 'tiles'},
    ...known.map(([section, key, title]) => {
      const {values, about} = sections[section];
      return h(
        'div',
        {},
        h('dt', {}, title ?? about[key].title),
        h('dd', {'data-key': key}, format(values[key], about[key].unit)),
      );
    }),
  );
}

function findingsCard(findings, place) {
  const more = findings.length - FINDINGS;
  return h(
    'div',
    {class: 'card'},
    h('h2', {}, placeLink(place, {tab: 'bottlenecks'}, {}, 'Bottlenecks'), ` ${findings.length}`),
    findings.length === 0 && h('p', {class: 'quiet'}, 'none was found'),
    h(
      'ul',
      {class: 'short-findings'},
      ...findings
        .slice(0, FINDINGS)
        .map((finding) =>
          h(
            'li',
            {},
            severity(finding),
            placeLink(
              place,
              {tab: 'bottlenecks', sel: findingId(finding), q: ''},
              {title: finding.advice && printable(finding.advice)},
              printable(finding.title),
            ),
          ),
        ),
    ),
    more > 0 && placeLink(place, {tab: 'bottlenecks'}, {}, `and ${formatCount(more)} more`),
  );
}

function operationsCard(rows, place) {
  const shown = rows.toSorted((a, b) => (b.self_ns ?? 0) - (a.self_ns ?? 0)).slice(0, OPERATIONS);
  const most = Math.max(...shown.map((row) => row.self_ns), 1);
  return h(
    'div',
    {class: 'card'},
    h('h2', {}, placeLink(place, {tab: 'operations'}, {}, 'Operations'), ' by self time'),
    bars(
      shown.map((row) => ({
        name: row.name,
        text: format(row.self_ns, 'ns'),
        link: [place, {tab: 'operations', sel: row.name, q: ''}],
        parts: [{share: (row.self_ns ?? 0) / most, tone: 'main'}],
      })),
      'operations by self time',
    ),
  );
}

function devicesCard(rows, place) {
  return h(
    'div',
    {class: 'card'},
    h('h2', {}, placeLink(place, {tab: 'streams'}, {}, 'GPUs'), ' busy'),
    bars(
      rows.map((row) => ({
        name: `GPU ${row.device} ${row.name ?? ''}`,
        text: format(row.busy_share, 'share'),
        parts: [{share: row.busy_share ?? 0, tone: 'compute'}],
      })),
      'busy share of GPUs',
    ),
  );
}

function capturesCard(captures) {
  return h(
    'div',
    {class: 'card'},
    h('h2', {}, 'Captures'),
    h(
      'ul',
      {class: 'captures'},
      ...captures.map((c) =>
        h(
          'li',
          {},
          h('b', {}, printable(c.name)),
          ' ',
          printable([c.host, c.start, format(c.duration_ns, 'ns')].filter(Boolean).join(' · ')),
        ),
      ),
    ),
  );
}

/** @type {import('./tabs.js').Tab} */
export default {
  key: 'summary',
  title: 'Summary',
  applies: () => true,
  render(element, data, place, tabs) {
    const {page, report} = data;
    const sections = report?.sections ?? {};
    const claimed = new Set(tabs.flatMap((tab) => tab.sections ?? []));
    const operations = sections.operations?.tables.operations?.rows ?? [];
    const devices = sections.gpu?.tables.devices?.rows ?? [];
    const timeline = data.has('timeline');
    const parts = Object.entries(sections)
      .filter(([key, section]) => !claimed.has(key) && !isEmpty(section))
      .map(([key, section]) => makeSection(key, section, place, {timeline}));

    element.append(
      tiles(sections),
      notes(page.notes ?? []) || '',
      h(
        'div',
        {class: 'columns'},
        h(
          'div',
          {class: 'stack'},
          report && findingsCard(report.findings, place),
          page.captures.length > 1 && capturesCard(page.captures),
        ),
        h(
          'div',
          {class: 'stack'},
          operations.length > 0 && operationsCard(operations, place),
          devices.length > 0 && devicesCard(devices, place),
        ),
      ),
      ...parts.map((part) => part.element),
      h(
        'p',
        {class: 'quiet foot'},
        `Written by ${printable(page.tool)}${page.written ? `, ${printable(page.written)}` : ''}.`,
      ),
    );
    return {update: (state) => parts.forEach((part) => part.update(state))};
  },
};
