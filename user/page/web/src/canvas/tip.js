// SPDX-License-Identifier: BSD-2-Clause
// What stands beside the pointer.
import {h} from '../dom.js';

const AWAY = 14; // pixels from the pointer

export class Tip {
  constructor(parent) {
    this.figure = h('b', {});
    this.name = h('span', {});
    this.more = h('div', {class: 'quiet'});
    this.box = h(
      'div',
      {class: 'tip', hidden: true, 'aria-hidden': 'true'},
      h('div', {}, this.figure, this.name),
      this.more,
    );
    parent.append(this.box);
  }

  /** @param {PointerEvent} event @param {[string, string]} figureAndName @param {string} more a second line */
  show({clientX, clientY}, [figure, name], more) {
    this.figure.textContent = figure;
    this.name.textContent = name;
    this.more.textContent = more;
    this.box.hidden = false;
    const {offsetWidth, offsetHeight} = this.box;
    const x = clientX + AWAY + offsetWidth > innerWidth ? clientX - AWAY - offsetWidth : clientX + AWAY;
    const y = clientY + AWAY + offsetHeight > innerHeight ? clientY - AWAY - offsetHeight : clientY + AWAY;
    Object.assign(this.box.style, {left: `${Math.max(0, x)}px`, top: `${Math.max(0, y)}px`});
  }

  hide() {
    this.box.hidden = true;
  }
}
