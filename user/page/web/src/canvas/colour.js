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
  {title: 'Python', hues: [235, 270]},
  {title: 'native', hues: [125, 160]},
  {title: 'kernel', hues: [10, 34]},
  {title: 'thread', grey: true},
  {title: 'module', hues: [180, 215]},
  {title: 'GPU', hues: [295, 330]},
];

/** A hue of the kind by the name; without a name the one in the middle. */
export function ofKind(kind, name) {
  const {grey, hues} = KINDS[kind] ?? KINDS[0];
  if (grey) return isDark() ? oklch(0.4, 0.012, 250) : oklch(0.87, 0.012, 250);
  const share = name === undefined ? 0.5 : hueOf(name) / 11;
  const hue = hues[0] + (hues[1] - hues[0]) * share;
  const step = name === undefined ? 0.5 : (name.length % 5) / 4;
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

// Running and runnable as users of Perfetto know them; what blocks by what one can do about it.
const STATES = [
  [/^Running/, 0x2f7d31, 0x2f7d31],
  [/^Runnable/, 0xa7d37a, 0x8fbf5f],
  [/^Preempted/, 0xe3d25c, 0xcdbb45],
  [/lock|futex/, 0xeab5d0, 0x70395a],
  [/disk|file|page fault/, 0xf0a35f, 0x9c5a24],
  [/network|pipe/, 0x9cc3ee, 0x33608f],
  [/GPU|device/, 0xc3aaf0, 0x63499a],
  [/memory map/, 0xe2b0a3, 0x7d473a],
  [/child|signal|stopped/, 0xa89f93, 0x6d675e],
  [/poll|sleep/, 0xd5dae1, 0x343c47],
  [/(?:)/, 0xbcc4ce, 0x4a5360],
];

export function ofState(name) {
  const hex = STATES.find(([pattern]) => pattern.test(name))[isDark() ? 2 : 1];
  return pack([hex >> 16, (hex >> 8) & 255, hex & 255]);
}
