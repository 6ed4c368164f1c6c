// SPDX-License-Identifier: BSD-2-Clause
// The tabs in their order. A further one is a module with this interface and a line here.
import compare from './compare.js';
import figures from './figures.js';
import flame from './flame.js';
import memory from './memory.js';
import modules from './modules.js';
import operations from './operations.js';
import streams from './streams.js';
import summary from './summary.js';
import sunburst from './sunburst.js';
import timeline from './timeline.js';

/**
 * @typedef {object} Shown what render() may give back
 * @property {(state: import('./place.js').State) => void} [update] the place changed while the tab is shown, or
 *   it is shown again
 *
 * @typedef {object} Tab
 * @property {string} key in the address
 * @property {string} title
 * @property {string[]} [sections] of the report, which this tab shows; All figures shows those that no tab does
 * @property {[string, string][]} [keys] its own keys, and what they do, for the help
 * @property {boolean} [wide] takes the whole window, and scrolls by itself
 * @property {(data: import('./blocks.js').Data) => boolean} applies whether there is anything to show
 * @property {(element: HTMLElement, data: import('./blocks.js').Data, place: import('./place.js').Place, tabs: Tab[]) =>
 *   Shown | void | Promise<Shown | void>} render fills the element, once, when the tab is first shown; tabs: all that apply
 */

/** @type {Tab[]} a comparison opens on what it compares */
export const TABS = [
  compare,
  summary,
  timeline,
  flame,
  sunburst,
  operations,
  modules,
  memory,
  streams,
  figures,
];
