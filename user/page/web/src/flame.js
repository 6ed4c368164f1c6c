// SPDX-License-Identifier: BSD-2-Clause
// The tab "Flame graph": the root below, or above it as an icicle.
import {cellAt, paintLane} from './canvas/lanes.js';
import {Sheet, drawLabels} from './canvas/surface.js';
import {color} from './theme.js';
import {treeTab} from './tree/view.js';

const ROW = 19;
const LABELLED = 24;
const REACH = 2; // pixels

/** A sandwich has callers above and callees below: its root is in between. */
const fromTop = (view) => view.icicle || !!view.tree.up;

/** Where the rows of a depth begin, from the top of the content; the root is below unless it is an icicle. */
function rowTop(view, depth) {
  const all = Math.max(view.tree.rows.length * ROW, view.scroll.clientHeight);
  return fromTop(view) ? depth * ROW : all - (depth + 1) * ROW;
}

const drawing = {
  title: 'Flame graph',
  sandwich: true,
  height: (view) => view.tree.rows.length * ROW,

  controls: (view, choice) =>
    [
      ['Flame', false],
      ['Icicle', true],
    ].map(([title, icicle]) =>
      choice(title, !!view.icicle === icicle, () => {
        view.icicle = icicle;
        view.fillControls();
        drawing.reveal(view, view.focus);
        view.surface.request();
      }),
    ),

  keys: (view) => ({
    [fromTop(view) ? 'ArrowDown' : 'ArrowUp']: 'child',
    [fromTop(view) ? 'ArrowUp' : 'ArrowDown']: 'parent',
    ArrowLeft: 'previous',
    ArrowRight: 'next',
  }),

  draw({context, width, height, scale}, view) {
    const {tree, range, scroll} = view;
    if (!view.revealed) {
      view.revealed = true; // the root is seen first
      drawing.reveal(view, view.focus);
    }
    const rows = (view.sheet ??= new Sheet());
    const pixels = Math.round(width * scale);
    const perPixel = (range.to - range.from) / pixels || 1;
    const seen = tree.rows
      .map((cells, depth) => ({cells, depth, y: rowTop(view, depth) - scroll.scrollTop}))
      .filter(({y}) => y < height && y + ROW > 0);
    rows.begin(pixels, seen.length, view.ground);
    const wide = seen.map(({cells}, i) =>
      paintLane(rows.row(i), cells, {
        ...range,
        origin: range.from,
        perPixel,
        palette: view.pixels,
        ground: view.ground,
        labelled: LABELLED * scale,
      }).map((place) => ({...place, index: cells.name[place.index]})),
    );
    rows.end(seen.length);
    for (const [i, {y, depth}] of seen.entries()) {
      context.globalAlpha = depth < range.depth && !tree.up ? 0.6 : 1; // what is outside of the zoom
      rows.draw(context, i, 0, y, width, ROW - 1);
      drawLabels(context, view.ruler, wide[i], {
        scale,
        x: 0,
        y,
        height: ROW - 1,
        text: (node) => view.nameOf(node),
        ink: (node) => view.ink(node),
      });
    }
    context.globalAlpha = 1;
    if (tree.up) drawing.outline(context, {...view, reached: 0}, width);
    if (document.activeElement === view.canvas && view.reached >= 0) drawing.outline(context, view, width);
  },

  outline(context, view, width) {
    const {tree, range, reached, scroll} = view;
    const xOf = (value) => ((value - range.from) / (range.to - range.from)) * width;
    const [left, right] = [
      Math.max(1, xOf(tree.start[reached])),
      Math.min(width - 1, xOf(tree.end(reached))),
    ];
    context.strokeStyle = color('--text');
    context.lineWidth = 2;
    context.strokeRect(
      left,
      rowTop(view, tree.depth[reached]) - scroll.scrollTop,
      Math.max(right - left, 2),
      ROW - 1,
    );
  },

  hit(view, x, y) {
    const {tree, range, scroll, surface} = view;
    const at = y + scroll.scrollTop;
    const depth = fromTop(view) ? Math.floor(at / ROW) : Math.floor((rowTop(view, 0) + ROW - at) / ROW);
    const cells = tree.rows[depth];
    if (!cells) return -1;
    const perPixel = (range.to - range.from) / surface.width;
    const i = cellAt(cells, range.from + x * perPixel, perPixel * REACH);
    return i < 0 ? -1 : cells.name[i];
  },

  reveal(view, node) {
    const {scroll, tree} = view;
    view.content.style.height = `${drawing.height(view)}px`;
    const y = rowTop(view, tree.depth[node]);
    if (y < scroll.scrollTop || y + ROW > scroll.scrollTop + scroll.clientHeight)
      scroll.scrollTop = fromTop(view) ? y - ROW : y + 2 * ROW - scroll.clientHeight;
  },
};

export default treeTab('flame', drawing, [
  ['click, Enter', 'zoom; again: back'],
  ['↑ ↓', 'to who called it and what it calls'],
  ['← →', 'to its neighbours'],
  ['Esc, Home', 'one step out, all the way out'],
  ['S', 'sandwich: all that calls the frame, and all that it calls'],
]);
