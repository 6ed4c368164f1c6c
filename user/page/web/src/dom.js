// SPDX-License-Identifier: BSD-2-Clause
// Elements are made here and nowhere else: what comes from a trace only ever becomes text.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'vars')
      for (const [name, v] of Object.entries(value)) element.style.setProperty(name, v);
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(
    ...children.flat().filter((child) => child !== undefined && child !== null && child !== false),
  );
  return element;
}

/**
 * An element. Attributes by name; `onclick` and its like are listeners, `vars` CSS properties (an attribute
 * "style" would be against the page's policy); children are elements and texts.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 * @returns {HTMLElement}
 */
export const h = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

/** The same for SVG. */
export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/** What is in the element made anew, without what is not there (undefined, false): the button or link of it that has the focus has it still. */
export function refill(element, ...children) {
  const controls = () => [...element.querySelectorAll('button, a')];
  const focused = controls().indexOf(document.activeElement);
  element.replaceChildren(...children.filter((child) => child !== undefined && child !== false));
  if (focused >= 0) controls()[focused]?.focus();
}

/** Characters that cannot be seen, or that turn the direction of a text: shown as one that can. */
// eslint-disable-next-line no-control-regex
const HARMFUL =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]/g;

const BLANK = '\u2423'; // the sign for one

/** A name as it may be shown: in one line, with nothing hidden in it; one of blanks alone has a sign for each. */
export const printable = (text) => (text.trim() === '' ? text.replace(/\s/g, BLANK) : text.replace(HARMFUL, '\ufffd'));

/**
 * A link to another place of the page; what it does not name stays as it is when it is followed.
 * @param {import('./place.js').Place} place
 * @param {Partial<import('./place.js').State>} changes
 * @param {Record<string, any>} attributes
 * @param {...any} children
 */
export const placeLink = (place, changes, attributes, ...children) =>
  h(
    'a',
    {
      ...attributes,
      href: place.link(changes),
      onclick: (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a window of its own
        event.preventDefault();
        place.go(changes);
      },
    },
    ...children,
  );
