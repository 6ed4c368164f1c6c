// SPDX-License-Identifier: BSD-2-Clause
// A view that moves softly, unless the reader of the page does not want that.
import {View} from './view.js';

const GLIDE_MS = 45; // in which two thirds of the way are gone
const NEAR = 0.002; // of what is shown

export class GlidingView extends View {
  /** @param {number} low @param {number} high ns @param {() => void} moved it is elsewhere */
  constructor(low, high, moved) {
    super(low, high);
    this.moved = moved;
  }

  /** By so many times closer (what is at `at` stays there), and so many widths later; on top of what is on its way. */
  glide(factor, widths, at) {
    const goal = this.#place(this.goal ?? this);
    goal.zoom(factor, at);
    goal.pan(widths * goal.span);
    this.glideTo(goal.from, goal.to);
  }

  /** What is on its way stops. */
  stop() {
    cancelAnimationFrame(this.frame);
    this.goal = undefined;
  }

  glideTo(from, to) {
    const moving = this.goal !== undefined;
    this.goal = this.#place({from, to});
    if (moving) return;
    const soft = !matchMedia('(prefers-reduced-motion: reduce)').matches;
    let last = performance.now();
    const step = (now) => {
      const {goal} = this;
      const share = soft ? Math.min(1, 1 - Math.exp((last - now) / GLIDE_MS)) : 1;
      const rest = Math.abs(goal.from - this.from) + Math.abs(goal.to - this.to);
      last = now;
      if (share === 1 || rest < this.span * NEAR) {
        this.goal = undefined;
        this.set(goal.from, goal.to);
      } else {
        this.set(this.from + (goal.from - this.from) * share, this.to + (goal.to - this.to) * share);
        this.frame = requestAnimationFrame(step);
      }
      this.moved();
    };
    this.frame = requestAnimationFrame(step);
  }

  /** A part of the time that can be shown. */
  #place({from, to}) {
    const view = new View(this.low, this.high);
    view.set(from, to);
    return view;
  }
}
