// SPDX-License-Identifier: BSD-2-Clause
// The part of the time that is shown, and the axis that says which.
import {formatNs} from '../format.js';

const LEAST_NS = 20; /* in all of the width */

export class View {
  constructor(low, high) {
    this.low = low;
    this.high = Math.max(high, low + LEAST_NS);
    this.set(low, this.high);
  }

  get span() {
    return this.to - this.from;
  }

  /** Moved, rather than cut, where it would stick out. */
  set(from, to) {
    const span = Math.min(Math.max(to - from, LEAST_NS), this.high - this.low);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, this.low), this.high - span);
    this.to = this.from + span;
  }

  /** factor > 1: closer. What is at `at` stays where it is. */
  zoom(factor, at = (this.from + this.to) / 2) {
    const span = Math.min(Math.max(this.span / factor, LEAST_NS), this.high - this.low);
    const share = (at - this.from) / this.span;
    this.set(at - share * span, at + (1 - share) * span);
  }

  pan(ns) {
    this.set(this.from + ns, this.to + ns);
  }
}

const UNITS = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'us'],
  [1, 'ns'],
];

/** 1, 2 or 5 of a power of ten, at least `least`. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least * (1 - 1e-9));
}

/**
 * At most `most` round places. Close up, where each would need many digits, they are told from `base` on, which has a
 * label of its own ('' where not).
 */
export function ticks(from, to, most) {
  const step = Math.max(1, roundStep((to - from) / most));
  const [size, unit] = UNITS.find(([s]) => step >= s / 10) ?? UNITS.at(-1);
  const far = to / step > 1e5;
  const base = far ? Math.floor(from / (1000 * size)) * 1000 * size : 0;
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  const places = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step)
    places.push({at, label: `${far ? '+' : ''}${((at - base) / size).toFixed(digits)} ${unit}`});
  return {step, places, base: far ? formatMoment(base) : ''};
}

/** All digits of a moment: "1.234 567 890 s". */
export function formatMoment(ns) {
  const whole = Math.abs(Math.round(ns)),
    seconds = Math.floor(whole / 1e9);
  const rest = String(whole - seconds * 1e9)
    .padStart(9, '0')
    .replace(/\B(?=(\d{3})+$)/g, ' ');
  return `${ns <= -0.5 ? '-' : ''}${seconds}.${rest} s`;
}

/** "1.23 ms (1,234,567 ns)", where the short one does not say it all. */
export function formatExactly(ns) {
  const short = formatNs(ns);
  return ns < 1000 ? short : `${short} (${String(Math.round(ns)).replace(/\B(?=(\d{3})+$)/g, ',')} ns)`;
}
