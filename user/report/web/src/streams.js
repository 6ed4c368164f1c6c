// SPDX-License-Identifier: BSD-2-Clause
import {h} from './dom.js';

export default {
  key: 'streams',
  title: 'Streams',
  applies: () => true,
  render(element) {
    element.append(h('p', {}, 'to come'));
  },
};
