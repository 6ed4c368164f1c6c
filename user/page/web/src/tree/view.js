// SPDX-License-Identifier: BSD-2-Clause
// What the flame graph and the sunburst have in common: choice of the tree, zoom, path, search, keys. How a tree is drawn is
// their own: {draw(surface, view), hit(view, x, y), height(view), keys: {KEY: neighbour}, controls(view)}.
import {css, inkOn, mix} from '../canvas/pixels.js';
import {KINDS, ofDifference, ofKind, ofStyle} from '../canvas/colour.js';
import {Surface} from '../canvas/surface.js';
import {Ruler} from '../canvas/text.js';
import {Tip} from '../canvas/tip.js';
import {h, printable, refill} from '../dom.js';
import {format, formatCount, formatShare} from '../format.js';
import {matching} from '../timeline/measure.js';
import {Tree, sandwich} from './model.js';

const DIMMED = 0.25;
const ZOOM_MS = 160;
const PATH = 9; // nodes of it that are shown
/** What a node's `count` counts, by the tree's key; else calls. */
const COUNTED = {'off-cpu': 'wait', samples: 'sample', memory: 'block', gpu: 'run'};

const many = (n, what) => `${formatCount(n)} ${what}${n === 1 ? '' : 's'}`;

export class TreeView {
  constructor(element, place, {names, trees}, drawing) {
    Object.assign(this, {element, place, names, drawing});
    this.sources = trees;
    this.shownNames = names.map(printable);
    this.laidOut = new Map();
    this.before = false;
    this.byChange = true;
    this.focus = 0;
    this.reached = -1;
    this.build();
    this.ruler = new Ruler(`12px ${getComputedStyle(element).fontFamily}`);
    this.tip = new Tip(element);
    document.addEventListener('themechange', () => this.paintAnew());
    this.follow(place.state);
  }

  build() {
    this.canvas = h('canvas', {
      class: 'tree-canvas',
      tabindex: '0',
      role: 'application',
      'aria-roledescription': this.drawing.title,
    });
    this.content = h('div', {class: 'tree-content'}, this.canvas);
    this.scroll = h('div', {class: 'tree-scroll', onscroll: () => this.surface.request()}, this.content);
    this.side = h('div', {
      class: 'tree-side',
      tabindex: '0',
      role: 'region',
      'aria-label': 'what is inside',
      hidden: !this.drawing.side,
    });
    this.choice = h(
      'select',
      {'aria-label': 'what the widths are', onchange: () => this.goTree(this.choice.value)},
      ...this.sources.map(({key, title}) => h('option', {value: key}, printable(title))),
    );
    this.reset = h('button', {title: 'all of it (Home)', onclick: () => this.go(this.tree.key, 0)}, 'All');
    this.controls = h('span', {class: 'toolbar-choices'});
    this.matched = h('span', {class: 'tree-matched', 'aria-live': 'polite'});
    this.legend = h('span', {class: 'tree-legend'});
    this.path = h('nav', {class: 'tree-path', 'aria-label': 'path'});
    this.line = h('div', {class: 'tree-line', 'aria-live': 'polite'});
    this.element.append(
      h(
        'div',
        {class: 'toolbar'},
        this.choice,
        this.reset,
        this.controls,
        this.matched,
        h('span', {class: 'grow'}),
        this.legend,
      ),
      this.path,
      h('div', {class: 'tree-body'}, this.scroll, this.side),
      this.line,
    );
    this.surface = new Surface(this.canvas, (surface) => this.draw(surface));
    const {canvas} = this;
    canvas.addEventListener('click', (e) => this.clicked(this.drawing.hit(this, e.offsetX, e.offsetY)));
    canvas.addEventListener('pointermove', (e) => this.showTip(e));
    canvas.addEventListener('pointerleave', () => this.tip.hide());
    canvas.addEventListener('keydown', (e) => this.key(e));
    canvas.addEventListener('focus', () => this.reach(this.reached < 0 ? this.focus : this.reached));
  }

  /* ---- what is shown ---- */

  /** The tree of that key; the first one where there is none. With a name: what calls that, and what it calls. */
  choose(key, name) {
    const source = this.sources.find((s) => s.key === key) ?? this.sources[0];
    const id = `${source.key} ${this.before}`;
    if (!this.laidOut.has(id)) this.laidOut.set(id, new Tree(source, this.before));
    const number = this.drawing.sandwich && name !== undefined ? this.names.indexOf(name) : -1;
    const middle = `${id} ${number}`;
    if (number >= 0 && this.middle?.id !== middle) this.middle = {id: middle, tree: new Tree(sandwich(this.laidOut.get(id), number))};
    const tree = number >= 0 ? this.middle.tree : this.laidOut.get(id);
    if (tree === this.tree) return;
    this.tree = tree;
    this.focus = 0;
    this.reached = -1;
    this.range = undefined;
    this.choice.value = source.key;
    this.canvas.setAttribute(
      'aria-label',
      `${this.drawing.title}: ${source.title}; arrow keys move, Enter zooms, Escape goes back`,
    );
    this.fillControls();
    this.search(this.searched ?? '', true);
  }

  fillControls() {
    const {tree} = this;
    const choice = (text, pressed, action) =>
      h('button', {class: 'choice', 'aria-pressed': String(pressed), onclick: action}, text);
    const again = (changes) => () => {
      Object.assign(this, changes);
      const {focus} = this;
      this.tree = undefined;
      this.choose(tree.key, tree.up && this.names[tree.name[0]]);
      this.zoom(this.tree.total[focus] > 0 ? focus : 0);
    };
    const middle = () => (this.reached > 0 ? this.reached : this.focus);
    refill(
      this.controls,
      ...(this.drawing.controls?.(this, choice) ?? []),
      this.drawing.sandwich &&
        h(
          'button',
          {
            class: 'choice',
            'aria-pressed': String(!!tree.up),
            title: 'callers and callees of the frame that was zoomed to (S)',
            onclick: () => (tree.up ? this.goTree(tree.key) : this.goSandwich(middle())),
          },
          'Sandwich',
        ),
      ...(tree.compared
        ? [
            choice('Colours by change', this.byChange, again({byChange: !this.byChange})),
            choice('Widths before', this.before, again({before: !this.before})),
          ]
        : []),
    );
    const kinds = [...new Set(tree.kind)].sort((a, b) => a - b);
    const swatch = (pixel, text) => h('span', {}, h('i', {vars: {'--swatch': css(pixel)}}), text);
    this.legend.replaceChildren(
      ...(tree.compared && this.byChange
        ? [swatch(ofDifference(-1), 'less than before'), swatch(ofDifference(1), 'more')]
        : kinds.filter((k) => KINDS[k]).map((k) => swatch(ofKind(k), KINDS[k].title))),
    );
  }

  paintAnew() {
    const {tree, found} = this;
    const ground = ofStyle('--bg');
    const byName = new Map();
    const colour = (i) => {
      if (tree.compared && this.byChange) return ofDifference(tree.change(i));
      const key = tree.name[i] * KINDS.length + tree.kind[i];
      if (!byName.has(key)) byName.set(key, ofKind(tree.kind[i], this.names[tree.name[i]]));
      return byName.get(key);
    };
    this.ground = ground;
    this.pixels = Uint32Array.from({length: tree.size}, (_, i) =>
      found && !found.nodes[i] ? mix(colour(i), ground, DIMMED) : colour(i),
    );
    this.inks = new Map();
    this.fillControls();
    this.fillSide();
    this.surface.request();
  }

  ink(i) {
    const pixel = this.pixels[i];
    if (!this.inks.has(pixel)) this.inks.set(pixel, css(inkOn(pixel)));
    return this.inks.get(pixel);
  }

  nameOf(i) {
    return this.shownNames[this.tree.name[i]];
  }

  /** In the tree's unit. */
  say(value) {
    return format(value, this.tree.unit === 'samples' ? 'count' : this.tree.unit);
  }

  /** "12.3 ms  4.5 %", and how much more or less than before. */
  figures(i) {
    const {tree} = this;
    const more = tree.compared ? tree.now[i] - tree.then[i] : 0;
    const change = tree.compared ? `  (${more < 0 ? '-' : '+'}${this.say(Math.abs(more))})` : '';
    return `${this.say(tree.total[i])}${change}  ${formatShare(tree.total[0] > 0 ? tree.total[i] / tree.total[0] : 0)}`;
  }

  facts(i) {
    const {tree} = this;
    const of =
      !tree.up && tree.parent[i] >= 0 && tree.total[tree.parent[i]] > 0
        ? `${formatShare(tree.total[i] / tree.total[tree.parent[i]])} of its caller`
        : '';
    const count = tree.count?.[i] ? many(tree.count[i], COUNTED[tree.key] ?? 'call') : '';
    return [`own ${this.say(tree.own[i])}`, of, count, KINDS[tree.kind[i]]?.title]
      .filter(Boolean)
      .join(' · ');
  }

  draw(surface) {
    if (!this.tree) return;
    const {context, width, height} = surface;
    context.fillStyle = css(this.ground);
    context.fillRect(0, 0, width, height);
    context.font = this.ruler.font;
    context.textBaseline = 'middle';
    this.content.style.height = `${this.drawing.height(this)}px`;
    this.drawing.draw(surface, this);
  }

  /* ---- zoom ---- */

  /** What is zoomed to where no place says otherwise. */
  home(tree) {
    return this.drawing.home?.(tree) ?? 0;
  }

  /** As a place that one can come back to. */
  go(key, node) {
    const first = key === this.sources[0].key && node === this.home(this.tree);
    this.place.go({sel: first ? '' : `${key}:${node}`});
  }

  goTree(key) {
    this.place.go({sel: key === this.sources[0].key ? '' : key});
  }

  /** All that calls what the node is of, and all that that calls. */
  goSandwich(node) {
    this.place.go({sel: `${this.tree.key}~${this.names[this.tree.name[node]]}`});
  }

  zoom(node) {
    const {tree} = this;
    this.focus = node;
    this.fillPath(tree.path(node));
    this.reset.disabled = node === 0;
    this.tell(node);
    this.fillSide();
    const goal = {from: tree.start[node], to: tree.end(node), depth: tree.depth[node]};
    const start = this.range;
    this.moving = goal;
    if (!start || matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.range = goal;
      this.surface.request();
      return;
    }
    const began = performance.now();
    const step = (now) => {
      if (this.moving !== goal) return;
      const share = 1 - (1 - Math.min(1, Math.max(0, now - began) / ZOOM_MS)) ** 3;
      const between = (key) => start[key] + (goal[key] - start[key]) * share;
      this.range = share === 1 ? goal : {from: between('from'), to: between('to'), depth: goal.depth};
      this.surface.request();
      if (share < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  /** Of a long path the root and the innermost nodes. */
  fillPath(path) {
    const shown = path.length > PATH ? [path[0], -1, ...path.slice(1 - PATH)] : path;
    const step = (i) =>
      h(
        'button',
        {
          title: `${this.figures(i)}  ${this.nameOf(i)}`,
          onclick: () => this.go(this.tree.key, i),
          'aria-current': i === this.focus && 'true',
        },
        this.nameOf(i),
      );
    this.path.replaceChildren(...shown.map((i) => (i < 0 ? '…' : step(i))));
  }

  clicked(node) {
    if (node < 0) return;
    if (this.tree.up) return this.goSandwich(node);
    this.reached = node;
    this.go(this.tree.key, node === this.focus ? Math.max(0, this.tree.parent[node]) : node);
  }

  /** The keys moved there. */
  reach(node) {
    this.reached = node;
    this.tell(node);
    this.drawing.reveal?.(this, node);
    this.surface.request();
  }

  tell(node) {
    this.line.replaceChildren(
      h('b', {}, this.figures(node)),
      this.nameOf(node),
      h('span', {class: 'quiet'}, ` · ${this.facts(node)}`),
    );
  }

  showTip(event) {
    const node = this.drawing.hit(this, event.offsetX, event.offsetY);
    if (node < 0) this.tip.hide();
    else this.tip.show(event, [this.figures(node), this.nameOf(node)], this.facts(node));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.reached < 0) this.reached = this.focus;
    const where = this.drawing.keys(this)[event.key];
    const {tree, focus} = this;
    if (where) {
      const next = tree.neighbour(this.reached, where);
      // what is outside of the zoom cannot be reached
      if (tree.end(next) > tree.start[focus] && tree.start[next] < tree.end(focus)) this.reach(next);
    } else if (event.key === 's' && this.drawing.sandwich) {
      this.goSandwich(this.reached);
    } else if (tree.up && event.key === 'Enter') {
      this.goSandwich(this.reached);
    } else if (tree.up && ['Escape', 'Backspace', 'Home'].includes(event.key)) {
      this.goTree(tree.key);
    } else if (event.key === 'Enter') {
      this.go(tree.key, this.reached);
    } else if (event.key === 'Home') {
      this.go(tree.key, 0);
    } else if ((event.key === 'Escape' || event.key === 'Backspace') && focus !== 0) {
      this.reach(tree.parent[focus]);
      this.go(tree.key, tree.parent[focus]);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /* ---- search, place ---- */

  search(text, again = false) {
    if (!again && text === this.searched) return;
    this.searched = text;
    this.found =
      text === '' ? null : this.tree.search(matching(this.names, text), this.names.indexOf('(small)'));
    const [least, most] = [this.found?.share ?? 0, this.found?.most ?? 0].map(formatShare);
    this.matched.textContent = !this.found
      ? ''
      : this.found.count === 0
        ? this.found.most > 0
          ? 'no match in what is drawn'
          : 'no match'
        : `${least === most ? least : `${least} to ${most}`} in ${many(this.found.count, 'node')}`;
    this.paintAnew();
  }

  /** To the next node that the search found, the largest first. */
  nextMatch(direction) {
    const {found, tree} = this;
    if (!found || found.count === 0) return;
    const list = [...found.nodes.keys()].filter((i) => found.nodes[i] && tree.total[i] > 0).sort((a, b) => tree.total[b] - tree.total[a] || a - b);
    const at = list.indexOf(this.reached);
    this.reach(list[at < 0 ? (direction > 0 ? 0 : list.length - 1) : (at + direction + list.length) % list.length]);
  }

  /** What is inside of the zoomed node, as a table. */
  fillSide() {
    if (!this.drawing.side || !this.tree) return;
    const {tree, focus} = this;
    const cell = (text) => h('td', {class: 'number'}, text);
    const children = tree.children[focus].filter((i) => tree.total[i] > 0);
    const all = tree.total[focus] || 1;
    const row = (value, name) =>
      h('tr', {}, cell(this.say(value)), cell(formatShare(value / all)), h('td', {}, name));
    this.side.replaceChildren(
      h(
        'table',
        {},
        h('caption', {}, `${this.figures(focus)}  ${this.nameOf(focus)}`),
        h(
          'tbody',
          {},
          tree.own[focus] > 0 && row(tree.own[focus], h('i', {class: 'quiet'}, 'its own')),
          ...children
            .slice(0, 200)
            .map((i) =>
              row(
                tree.total[i],
                h(
                  'button',
                  {class: 'link', title: this.nameOf(i), onclick: () => this.go(tree.key, i)},
                  this.nameOf(i),
                ),
              ),
            ),
        ),
      ),
      children.length > 200 ? h('p', {class: 'quiet'}, `and ${formatCount(children.length - 200)} more`) : '',
    );
  }

  follow({sel, q}) {
    const [, key, node, name] = /^([\w-]+)(?::(\d+)|~(.*))?$/s.exec(sel) ?? [];
    const known = this.sources.some((s) => s.key === key);
    this.choose(known ? key : this.sources[0].key, name);
    const at = this.tree.up ? 0 : known && this.tree.total[node] > 0 ? Number(node) : this.home(this.tree);
    if (!this.range || at !== this.focus) this.zoom(at);
    this.search(q);
  }
}

/** A tab that draws trees in that way. */
export const treeTab = (key, drawing, keys) => ({
  key,
  title: drawing.title,
  wide: true,
  keys,
  applies: (data) => data.has('trees'),
  async render(element, data, place) {
    const {names, trees} = await data.json('trees');
    const shown = trees.filter(({self, before = []}) => self.some((x) => x > 0) || before.some((x) => x > 0));
    if (shown.length === 0)
      return element.append(h('p', {class: 'message'}, 'Nothing was recorded that could be drawn here.'));
    const view = new TreeView(element, place, {names, trees: shown}, drawing);
    return {update: (state) => view.follow(state), nextMatch: (direction) => view.nextMatch(direction)};
  },
});
