// SPDX-License-Identifier: BSD-2-Clause
import {h} from './dom.js';

export default {
  key: 'compare',
  title: 'Compare',
  applies: () => true,
  render(element) {
    element.append(h('p', {}, 'to come'));
  },
};
