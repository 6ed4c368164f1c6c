// SPDX-License-Identifier: BSD-2-Clause
// Modules: time by torch.nn.Module, and by line of Python.
import {h} from './dom.js';
import {isEmpty, makeSection} from './section.js';
import {findTree} from './tree/table.js';

/** @type {import('./tabs.js').Tab} */
export default {
  key: 'modules',
  title: 'Modules',
  sections: ['python'],
  applies: (data) => !!data.report?.sections.python && !isEmpty(data.report.sections.python),
  async render(element, data, place) {
    const shown = [
      await findTree(data, 'modules'),
      makeSection('python', data.report.sections.python, place, {title: false}),
    ];
    const parts = shown.filter(Boolean);
    const update = (state) => parts.forEach((part) => part.update(state));
    element.append(h('h2', {class: 'hidden-text'}, 'Modules'), ...parts.map((part) => part.element));
    update(place.state);
    return {update};
  },
};
