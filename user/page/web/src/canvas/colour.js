// SPDX-License-Identifier: BSD-2-Clause
// Colours of names, states, kinds of nodes and differences, as pixels; each with text on it that can be read, in both themes.
import {color, hueOf, isDark} from '../theme.js';
import {oklch, pack} from './pixels.js';

/** A colour of the style sheet, "--bg". */
export const ofStyle = (name) =>
  pack(
    color(name)
      .match(/[\d.]+/g)
      .slice(0, 3)
      .map(Number),
  );

/** The same as everywhere else on the page. */
export const ofName = (name) => ofStyle(`--hue-${hueOf(name)}`);

/** Kinds of a tree's nodes, as user/page/page.h numbers them. */
export const KINDS = [
  {title: 'span', hues: [48, 88]},
  {title: 'Python', hues: [215, 250]},
  {title: 'native', hues: [125, 160]},
  {title: 'kernel', hues: [10, 34]},
  {title: 'thread', grey: true},
  {title: 'module', hues: [180, 215]},
  {title: 'GPU', hues: [295, 330]},
  {title: 'waiting', hues: [255, 285], pale: true},
];

/** A hue of the kind by the name; without a name the one in the middle. */
export function ofKind(kind, name) {
  const {grey, hues, pale} = KINDS[kind] ?? KINDS[0];
  if (grey) return isDark() ? oklch(0.4, 0.012, 250) : oklch(0.87, 0.012, 250);
  const share = name === undefined ? 0.5 : hueOf(name) / 11;
  const hue = hues[0] + (hues[1] - hues[0]) * share;
  const step = name === undefined ? 0.5 : (name.length % 5) / 4;
  if (pale) return isDark() ? oklch(0.36 + 0.04 * step, 0.03, hue) : oklch(0.9 + 0.04 * step, 0.03, hue);
  return isDark() ? oklch(0.43 + 0.07 * step, 0.085, hue) : oklch(0.79 + 0.08 * step, 0.1, hue);
}

/** share: -1 (faster, or gone: blue) to 1 (slower, or new: red). */
export function ofDifference(share) {
  const strength = Math.min(1, Math.abs(share)) ** 0.5;
  const hue = share < 0 ? 250 : 25;
  return isDark()
    ? oklch(0.38 + 0.14 * strength, 0.15 * strength, hue)
    : oklch(0.92 - 0.2 * strength, 0.15 * strength, hue);
}

// Quiet, as spans stand beside them: a thread that runs is green, one that could is light, what blocks by what one can do about it.
const STATES = [
  [/^Running/, 'running', 0xa9cfab, 0x35573a],
  [/^Runnable/, 'ready', 0xdcebb9, 0x5b6f36],
  [/^Preempted/, 'preempted', 0xf0e6a8, 0x7a6f2c],
  [/\block\b|futex/, 'lock', 0xecc7da, 0x633a54],
  [/disk|file|page fault/, 'disk, file, page fault', 0xf3c9a2, 0x7d4d26],
  [/network|pipe/, 'network, pipe', 0xc3d9f1, 0x345470],
  [/GPU|device/, 'GPU', 0xd6c8f1, 0x54467a],
  [/memory map/, 'memory map', 0xebccc4, 0x63402f],
  [/child|signal|stopped/, 'child, signal', 0xcbc5bd, 0x565149],
  [/poll|sleep/, 'poll, sleep', 0xe6e9ed, 0x282f38],
  [/(?:)/, 'other waits', 0xd9dde2, 0x3a424c],
].map(([pattern, title, light, dark], order) => ({pattern, title, light, dark, order}));

/** {title, order}: what the state's colour means. */
export const stateClass = (name) => STATES.find(({pattern}) => pattern.test(name));

export function ofState(name) {
  const {light, dark} = stateClass(name);
  const hex = isDark() ? dark : light;
  return pack([hex >> 16, (hex >> 8) & 255, hex & 255]);
}
