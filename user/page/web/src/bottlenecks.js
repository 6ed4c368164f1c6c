// SPDX-License-Identifier: BSD-2-Clause
// Bottlenecks: what was found, what proves it, what to do about it.
import {h} from './dom.js';
import {findingCard, findingId} from './findings.js';
import {makeSection} from './section.js';

// what they find is an operation; the subjects of others are threads, places, kernels, which may have the same text
const OF_OPERATIONS = new Set(['hot-operation', 'loader', 'memory-bound']);

const matches = (finding, query) =>
  [finding.title, finding.rule, finding.subject, finding.advice].some((text) =>
    text?.toLowerCase().includes(query),
  );

/** @type {import('./tabs.js').Tab} */
export default {
  key: 'bottlenecks',
  title: 'Bottlenecks',
  sections: ['rules'],
  applies: (data) => !!data.report,
  render(element, data, place) {
    const {findings, sections} = data.report;
    const timeline = data.has('timeline');
    const operations = new Set(sections.operations?.tables.operations?.rows.map((row) => row.name));
    const list = h('div', {class: 'findings'});
    const rules = sections.rules && makeSection('rules', sections.rules, place);
    let revealed;

    const update = (state) => {
      const query = state.q.trim().toLowerCase();
      const shown = findings.filter((finding) => !query || matches(finding, query));
      list.replaceChildren(
        ...shown.map((finding) =>
          findingCard(finding, place, {
            timeline,
            selected: state.sel === findingId(finding),
            find:
              OF_OPERATIONS.has(finding.rule) && operations.has(finding.subject)
                ? [['operations', 'show in operations']]
                : [],
          }),
        ),
        shown.length === 0
          ? h(
              'p',
              {class: 'message'},
              findings.length > 0
                ? 'No finding matches the search.'
                : 'No bottleneck was found; the rules below had these data.',
            )
          : '',
      );
      rules?.update(state);
      if (state.sel && state.sel !== revealed) {
        revealed = state.sel;
        list.querySelector('[aria-current]')?.scrollIntoView({block: 'center'});
      }
    };
    element.append(h('h2', {class: 'hidden-text'}, 'Bottlenecks'), list, rules?.element ?? '');
    update(place.state);
    return {update};
  },
};
