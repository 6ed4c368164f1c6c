// SPDX-License-Identifier: BSD-2-Clause
// Summary: the answer. Where the time went, what was found and what to do, and the busiest thread over time.
import {makeAccount, useOf} from './account.js';
import {bars} from './bars.js';
import {h, placeLink, printable} from './dom.js';
import {findingCard, findingId} from './findings.js';
import {format, formatCount, formatNs} from './format.js';
import {isEmpty, makeSection, notes} from './section.js';
import {makeStrip} from './strip.js';

const OPERATIONS = 8;
const FINDINGS = 3; // that stand open
const JOB = ['job', 'ranks', 'rank_steps', 'collectives']; // sections of several ranks
/** What they find is an operation; the subjects of others are threads, places, kernels, which may have the same text. */
const OF_OPERATIONS = new Set(['hot-operation', 'loader', 'memory-bound']);

/** What was recorded, once: section, key of the value, what it counts. */
const FACTS = [
  ['recording', 'spans', 'span', 'spans'],
  ['recording', 'threads', 'thread with spans', 'threads with spans'],
  ['recording', 'processes', 'process', 'processes'],
];

function facts({page, report}) {
  const sections = report?.sections ?? {};
  const counts = FACTS.filter(([section, key]) => sections[section]?.values[key] > 0).map(
    ([section, key, one, many]) => `${formatCount(sections[section].values[key])} ${sections[section].values[key] === 1 ? one : many}`,
  );
  const written = `written by ${page.tool}${page.written ? `, ${page.written}` : ''}`;
  return h('p', {class: 'quiet foot'}, printable([...counts, written].join(' · ')));
}

/** Who was recorded, for how long, how busy it was. */
function head({page, report}) {
  const {account, steps} = report?.sections ?? {};
  const {values = {}} = account ?? {};
  const middle = steps?.values.p50_ns;
  const text = [
    `${formatNs(values.duration_ns ?? page.captures[0]?.duration_ns)} recorded`,
    values.threads && `${formatCount(values.busy_threads)} busy thread${values.busy_threads === 1 ? '' : 's'} of ${formatCount(values.threads)}`,
    account && useOf(values),
    values.steps ? `${formatCount(values.steps)} steps of ${formatNs(values.ns / values.steps)}` : middle && `steps of ${formatNs(middle)}`,
  ].filter(Boolean);
  return h('div', {class: 'who'}, values.who && h('h2', {title: printable(values.who)}, printable(values.who)), h('p', {}, text.join(' · ')));
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

const matches = (finding, query) =>
  [finding.title, finding.rule, finding.subject, finding.advice].some((text) => text?.toLowerCase().includes(query));

/** What was found; again where the search or what is selected changes. */
function findingsList(data, place) {
  const {findings, sections} = data.report;
  const operations = new Set(sections.operations?.tables.operations?.rows.map((row) => row.name));
  const element = h('div', {class: 'findings'});
  let revealed;
  return {
    element,
    update({q, sel}) {
      const query = q.trim().toLowerCase();
      const shown = findings.filter((finding) => !query || matches(finding, query));
      const cards = shown.map((finding) =>
        findingCard(finding, place, {
          timeline: data.has('timeline'),
          selected: sel === findingId(finding),
          find:
            OF_OPERATIONS.has(finding.rule) && operations.has(finding.subject)
              ? [['operations', 'show in operations']]
              : [],
        }),
      );
      const more = cards.length - FINDINGS;
      const wanted = query !== '' || shown.slice(FINDINGS).some((finding) => sel === findingId(finding));
      element.replaceChildren(
        ...cards.slice(0, FINDINGS),
        more > 0 ? h('details', {open: wanted}, h('summary', {}, `${formatCount(more)} more`), h('div', {class: 'findings'}, ...cards.slice(FINDINGS))) : '',
        cards.length > 0
          ? ''
          : h('p', {class: 'quiet'}, findings.length > 0 ? 'No finding matches the search.' : 'Nothing was found that a known change would save.'),
      );
      if (sel && sel !== revealed) {
        revealed = sel;
        element.querySelector('[aria-current]')?.scrollIntoView({block: 'center'});
      }
    },
  };
}

/** @type {import('./tabs.js').Tab} */
export default {
  key: 'summary',
  title: 'Summary',
  sections: JOB,
  applies: () => true,
  render(element, data, place) {
    const {page, report} = data;
    const sections = report?.sections ?? {};
    const timeline = data.has('timeline');
    const operations = sections.operations?.tables.operations?.rows ?? [];
    const devices = sections.gpu?.tables.devices?.rows ?? [];
    const parts = JOB.filter((key) => sections[key] && !isEmpty(sections[key])).map((key) => makeSection(key, sections[key], place, {timeline}));
    if (report) parts.unshift(findingsList(data, place));
    const [findings, ...job] = report ? parts : [undefined, ...parts];
    const strip = h('div', {class: 'strip-room'});

    element.append(
      head(data),
      h(
        'div',
        {class: 'columns'},
        h(
          'div',
          {class: 'stack'},
          sections.account && makeAccount(sections.account, place, {trees: data.has('trees')}),
          !sections.account && operations.length > 0 && operationsCard(operations, place),
          devices.length > 0 && devicesCard(devices, place),
        ),
        h(
          'div',
          {class: 'stack'},
          report && h('h2', {}, 'Findings'),
          findings?.element,
          page.captures.length > 1 && capturesCard(page.captures),
        ),
      ),
      strip,
      ...job.map((part) => part.element),
      notes(page.notes ?? []) || '',
      facts(data),
    );
    const update = (state) => parts.forEach((part) => part.update(state));
    update(place.state);
    // it is large, and what is above need not wait for it
    if (timeline)
      requestAnimationFrame(async () => {
        try {
          strip.append(await makeStrip(data, place, sections.account?.tables.families?.rows[0] ?? {}));
        } catch (error) {
          console.error(error);
          strip.append(h('p', {class: 'message bad'}, `The timeline cannot be read: ${error.message}`));
        }
      });
    return {update};
  },
};
