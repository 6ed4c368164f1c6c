// SPDX-License-Identifier: BSD-2-Clause
// The tab "Sunburst": the same trees as rings around what is zoomed to.
import {arc} from 'd3-shape';
import {css} from './canvas/pixels.js';
import {cellAt, firstBehind} from './canvas/lanes.js';
import {color} from './theme.js';
import {treeTab} from './tree/view.js';

const RINGS = 6;
const FEWEST = 3; // a tree of fewer levels gets no wider rings
const HOLE = 1.25; // rings' widths of the middle
const LEAST = 1.2; // pixels along the arc; narrower ones next to each other are drawn as one
const TURN = 2 * Math.PI;
const LONGEST = 2; // of a turn's 2 pi, for a name: further round it stands on its head

function geometry(view) {
  const {width, height} = view.surface;
  const rings = Math.min(Math.max(view.tree.height[view.focus], FEWEST), RINGS);
  const ring = Math.max(10, (Math.min(width, height) / 2 - 8) / (rings + HOLE));
  return {x: width / 2, y: height / 2, ring, inner: (level) => (level === 0 ? 0 : (level - 1 + HOLE) * ring)};
}

/** Character by character round the middle, upright below it too. */
function drawAlong(context, ruler, text, middle, radius) {
  const below = middle > Math.PI / 2 && middle < 1.5 * Math.PI;
  const turn = (below ? -1 : 1) / radius;
  context.rotate(middle - (turn * ruler.width(text)) / 2);
  for (const character of text) {
    const half = (turn * ruler.width(character)) / 2;
    context.rotate(half);
    context.save();
    context.translate(0, -radius);
    if (below) context.rotate(Math.PI);
    context.fillText(character, 0, 0);
    context.restore();
    context.rotate(half);
  }
}

/** Along the arc where it is long, else from the middle outwards; nothing where neither can be read. */
function drawLabel(context, view, node, {from, to, inner, outer}) {
  const middle = (from + to) / 2;
  const radius = (inner + outer) / 2;
  const along = Math.min(to - from, LONGEST) * radius - 10;
  const outwards = outer - inner - 8;
  if (along < 4) return;
  const text = view.ruler.fit(view.nameOf(node), Math.max(along, outwards));
  if (text === '') return;
  context.save();
  context.fillStyle = view.ink(node);
  context.textAlign = 'center';
  if (along > outwards) {
    drawAlong(context, view.ruler, text, middle, radius);
  } else {
    context.rotate(middle - Math.PI / 2);
    context.translate(radius, 0);
    if (middle > Math.PI) context.rotate(Math.PI);
    context.fillText(text, 0, 0);
  }
  context.restore();
}

/** One ring: its arcs, and where they are too narrow to be told apart one for all of them. */
function drawRing(context, view, level, {ring, inner}) {
  const {tree, range} = view;
  const cells = tree.rows[range.depth + level];
  if (!cells) return;
  const turn = TURN / (range.to - range.from || 1);
  const [innerRadius, outerRadius] = [inner(level), inner(level) + ring - 1];
  const shape = arc()
    .innerRadius(innerRadius)
    .outerRadius(outerRadius)
    .padAngle(1 / outerRadius)
    .padRadius(outerRadius)
    .cornerRadius(2)
    .context(context);
  const fill = (style, startAngle, endAngle) => {
    context.fillStyle = style;
    context.beginPath();
    shape({startAngle, endAngle});
    context.fill();
  };
  let crowd = null;
  const endCrowd = () => {
    if (crowd) fill(color('--line'), crowd.from, crowd.to);
    crowd = null;
  };
  for (let i = firstBehind(cells, range.from); i < cells.start.length && cells.start[i] < range.to; i++) {
    const from = Math.max(0, (cells.start[i] - range.from) * turn);
    const to = Math.min(TURN, (cells.start[i] + cells.duration[i] - range.from) * turn);
    if ((to - from) * outerRadius < LEAST) {
      if (crowd && (from - crowd.to) * outerRadius > 1) endCrowd();
      crowd = {from: crowd?.from ?? from, to};
      continue;
    }
    endCrowd();
    const node = cells.name[i];
    fill(css(view.pixels[node]), from, to);
    drawLabel(context, view, node, {from, to, inner: innerRadius, outer: outerRadius});
    if (node === view.reached && document.activeElement === view.canvas) {
      context.strokeStyle = color('--text');
      context.lineWidth = 2;
      context.stroke();
    }
  }
  endCrowd();
}

function drawMiddle(context, view, {inner}) {
  const {focus, ruler} = view;
  const room = 2 * inner(1) * 0.82;
  context.fillStyle = color('--bg-soft');
  context.beginPath();
  context.arc(0, 0, inner(1) - 2, 0, TURN);
  context.fill();
  if (view.reached === focus && document.activeElement === view.canvas) {
    context.strokeStyle = color('--text');
    context.lineWidth = 2;
    context.stroke();
  }
  context.textAlign = 'center';
  const [value, ...share] = view.figures(focus).split('  ');
  context.fillStyle = color('--text');
  context.fillText(value, 0, -16);
  context.fillText(ruler.fit(view.nameOf(focus), room), 0, 0);
  context.fillStyle = color('--text-quiet');
  context.fillText(share.at(-1), 0, 16);
}

const drawing = {
  title: 'Sunburst',
  side: true,
  height: () => 0,

  /** Rings of one node each, as threads begin with, leave none for what there is to see. */
  home(tree) {
    const trunk = tree.trunk();
    return tree.depth[trunk] > RINGS / 2 ? trunk : 0;
  },

  keys: () => ({ArrowUp: 'child', ArrowDown: 'parent', ArrowLeft: 'previous', ArrowRight: 'next'}),

  draw({context}, view) {
    const place = geometry(view);
    context.save();
    context.translate(place.x, place.y);
    for (let level = RINGS; level > 0; level--) drawRing(context, view, level, place);
    drawMiddle(context, view, place);
    context.restore();
  },

  hit(view, x, y) {
    const {tree, range} = view;
    const place = geometry(view);
    const [dx, dy] = [x - place.x, y - place.y];
    const radius = Math.hypot(dx, dy);
    if (radius < place.inner(1)) return view.focus;
    const level = Math.floor(radius / place.ring - HOLE) + 1;
    const cells = level <= RINGS ? tree.rows[range.depth + level] : undefined;
    if (!cells) return -1;
    const share = ((Math.atan2(dx, -dy) + TURN) % TURN) / TURN;
    const width = range.to - range.from;
    const i = cellAt(cells, range.from + share * width, (width * LEAST) / (TURN * radius));
    return i < 0 ? -1 : cells.name[i];
  },
};

export default treeTab('sunburst', drawing, [
  ['click, Enter', 'zoom; the middle: back'],
  ['↑ ↓', 'outwards, inwards'],
  ['← →', 'round'],
  ['Esc, Home', 'one step out, all the way out'],
]);
