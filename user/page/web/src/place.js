// SPDX-License-Identifier: BSD-2-Clause
// Where the reader of the page is, kept in the address behind "#": a link leads to the same place, and the
// browser's buttons go back and forth.

/**
 * @typedef {object} State
 * @property {string} tab key of the tab; '' for the first one
 * @property {number} [from] part of the time, ns from the beginning of the first capture
 * @property {number} [to]
 * @property {string} q what is searched for
 * @property {string} sel what is selected: a name, or what the tab takes for one
 * @property {string} sort "SECTION.TABLE:COLUMN", with "-" before COLUMN: largest first
 */

const REPLACE_MS = 250; // browsers stop pages that write their address too often

/** @param {string} hash @returns {State} */
export function parsePlace(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ''));
  const text = (key) => given.get(key) ?? '';
  const ns = (key) => {
    const value = given.has(key) ? Number(given.get(key)) : NaN;
    return Number.isFinite(value) ? Math.round(value) : undefined;
  };
  let [from, to] = [ns('from'), ns('to')];
  if (from === undefined || to === undefined || to <= from) from = to = undefined;
  return {tab: text('tab'), from, to, q: text('q'), sel: text('sel'), sort: text('sort')};
}

/** @param {State} state @returns {string} with its "#" */
export function formatPlace(state) {
  const out = new URLSearchParams();
  for (const key of ['tab', 'from', 'to', 'q', 'sel', 'sort']) {
    const value = state[key];
    if (value !== undefined && value !== '') out.set(key, String(value));
  }
  return `#${out}`;
}

export class Place {
  #window;
  #listeners = new Set();
  #timer;
  /** @type {State} read it, change it by go() */
  state;

  /** @param {Window} window */
  constructor(window) {
    this.#window = window;
    this.state = parsePlace(window.location.hash);
    window.addEventListener('popstate', () => {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#change(parsePlace(window.location.hash));
    });
  }

  #change(state) {
    this.state = state;
    for (const listener of this.#listeners) listener(state);
  }

  /** Calls at each change. @param {(state: State) => void} listener @returns {() => void} ends it */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The address of the place with these changes. @param {Partial<State>} changes */
  link(changes) {
    return formatPlace({...this.state, ...changes});
  }

  /**
   * Goes there. `replace`: no place of its own to go back to (typing, panning).
   * @param {Partial<State>} changes
   * @param {{replace?: boolean}} [how]
   */
  go(changes, {replace = false} = {}) {
    const state = {...this.state, ...changes};
    if (formatPlace(state) === formatPlace(this.state)) return;
    const {history} = this.#window;
    if (replace) {
      this.#timer ??= setTimeout(() => this.#flush(), REPLACE_MS);
    } else {
      this.#flush(); // what was left is what the back button returns to
      history.pushState(null, '', formatPlace(state));
    }
    this.#change(state);
  }

  #flush() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const hash = formatPlace(this.state);
    if (hash !== (this.#window.location.hash || '#')) this.#window.history.replaceState(null, '', hash);
  }
}
