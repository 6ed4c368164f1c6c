// SPDX-License-Identifier: BSD-2-Clause
// Light or dark: as the system has it, or as the reader chose.

const KEY = 'xsptrace-theme';
let colors = new Map();
let printing = false;
let onScreen; // what was chosen, while the page goes to the printer

/** A page from a file may have no storage. */
function stored(value) {
  try {
    if (value === undefined) return localStorage.getItem(KEY);
    localStorage.setItem(KEY, value);
  } catch {
    // then the choice lasts as long as the page
  }
  return null;
}

const systemDark = matchMedia('(prefers-color-scheme: dark)');

function changed() {
  colors = new Map();
  document.dispatchEvent(new Event('themechange'));
}

/** Takes the stored choice; from here on "themechange" comes at `document` whenever the colours change. */
export function startTheme() {
  const choice = stored();
  if (choice === 'light' || choice === 'dark') document.documentElement.dataset.theme = choice;
  systemDark.addEventListener('change', changed);
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
}

/** On paper all is light; behind it, as it was. */
function print(begins) {
  if (begins === printing) return;
  const {dataset} = document.documentElement;
  printing = begins;
  document.documentElement.classList.toggle('printing', begins);
  if (begins) [onScreen, dataset.theme] = [dataset.theme, 'light'];
  else if (onScreen) dataset.theme = onScreen;
  else delete dataset.theme;
  changed();
}

export const isDark = () => {
  const choice = document.documentElement.dataset.theme;
  return choice ? choice === 'dark' : systemDark.matches;
};

export function toggleTheme() {
  document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
  stored(document.documentElement.dataset.theme);
  changed();
}

/**
 * The colour of a custom property as it is now, for a canvas. Ask again after "themechange".
 * @param {string} name "--accent"
 * @returns {string}
 */
export function color(name) {
  if (!colors.has(name)) {
    const probe = document.createElement('i');
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    colors.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return colors.get(name);
}

const HUES = 12;

/** One of --hue-0 ... --hue-11 for a name: always the same one. @param {string} name */
export function hueOf(name) {
  let hash = 2166136261;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  return (hash >>> 8) % HUES;
}
