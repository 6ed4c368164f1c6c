// SPDX-License-Identifier: BSD-2-Clause
// The dialog behind "?": which keys there are.
import {h} from './dom.js';

const KEYS = [
  ['1 … 9, 0', 'the tabs'],
  ['/', 'search'],
  ['Esc', 'clear the search and what is selected'],
  ['?', 'this help'],
  ['Tab, Enter', 'go through what can be clicked'],
];

const list = (keys) =>
  h(
    'dl',
    {class: 'keys'},
    ...keys.flatMap(([key, what]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)]),
  );

/** @param {import('./tabs.js').Tab[]} tabs */
export function openHelp(tabs) {
  const dialog = h(
    'dialog',
    {'aria-label': 'keys', onclose: () => dialog.remove()},
    h('h2', {}, 'Keys'),
    list(KEYS),
    ...tabs.filter((tab) => tab.keys).flatMap((tab) => [h('h3', {}, tab.title), list(tab.keys)]),
    h(
      'p',
      {class: 'quiet'},
      'The address of the page keeps the place: tab, part of the time, search and sorting.',
    ),
    h('button', {onclick: () => dialog.close()}, 'Close'),
  );
  document.body.append(dialog);
  dialog.showModal();
}
