// SPDX-License-Identifier: BSD-2-Clause
import {h} from './dom.js';

export default {
  key: 'summary',
  title: 'Summary',
  applies: () => true,
  render(element) {
    element.append(h('p', {}, 'to come'));
  },
};
