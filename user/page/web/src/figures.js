// SPDX-License-Identifier: BSD-2-Clause
// All figures of the report that no other tab shows.
import {h} from './dom.js';
import {isEmpty, makeSection} from './section.js';

/** @type {import('./tabs.js').Tab} */
export default {
  key: 'figures',
  title: 'All figures',
  applies: (data) => !!data.report,
  render(element, data, place, tabs) {
    const claimed = new Set(tabs.flatMap((tab) => tab.sections ?? []));
    const parts = Object.entries(data.report.sections)
      .filter(([key, section]) => !claimed.has(key) && !isEmpty(section))
      .map(([key, section]) => makeSection(key, section, place, {timeline: data.has('timeline')}));
    element.append(...parts.map((part) => part.element), parts.length > 0 ? '' : h('p', {class: 'message'}, 'The report is empty.'));
    return {update: (state) => parts.forEach((part) => part.update(state))};
  },
};
