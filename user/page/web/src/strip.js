// SPDX-License-Identifier: BSD-2-Clause
// One thread's timeline as a strip, which leads to the timeline.
import {levelFor, paintLane} from './canvas/lanes.js';
import {Sheet, Surface, drawLabels} from './canvas/surface.js';
import {Ruler} from './canvas/text.js';
import {h, placeLink, printable} from './dom.js';
import {formatNs} from './format.js';
import {Names, readTracks} from './timeline/model.js';
import {stateLegend} from './timeline/legend.js';
import {paletteOf, palettes} from './timeline/paint.js';

const DEPTHS = 3; // of spans
const HEIGHT = 15;
const LABELLED = 26; // pixels that a cell needs for a name
const AROUND = 0.05; // of the time that is shown, at either side of a click

const busy = ({lanes: [outermost]}) => (outermost ? outermost[0].busy.reduce((a, b) => a + b, 0) : 0);

/** Of the thread of that name and number; else of that name, else of any, the one with most in it. */
function threadOf(tracks, {thread, tid}) {
  const own = tracks.filter(({kind, row}) => row === 0 && (kind === 'spans' || kind === 'states'));
  const named = own.filter((track) => track.thread === thread);
  const exact = named.filter((track) => track.tid === tid);
  const [first] = (exact.length > 0 ? exact : named.length > 0 ? named : own).toSorted((a, b) => (b.kind === 'spans') - (a.kind === 'spans') || busy(b) - busy(a));
  return own.filter((track) => first && track.pid === first.pid && track.tid === first.tid).sort((a, b) => (b.kind === 'spans') - (a.kind === 'spans'));
}

/** @param {import('./blocks.js').Data} data @param {{thread?: string, tid?: number}} wanted */
export async function makeStrip(data, place, wanted) {
  const block = await data.timeline();
  const {from_ns: from, to_ns: to} = block.head;
  const names = new Names(block.head.names);
  const own = threadOf(readTracks(block, names), wanted);
  const lanes = own.flatMap((track) => track.lanes.slice(0, track.kind === 'spans' ? DEPTHS : 1).map((levels) => ({track, levels})));
  if (lanes.length === 0 || !(to > from)) return '';
  const canvas = h('canvas', {class: 'strip-canvas', vars: {height: `${lanes.length * HEIGHT}px`}});
  const [sheet, texts] = [new Sheet(), names.list.map(printable)];
  let colours, ruler;
  document.addEventListener('themechange', () => { colours = undefined; });
  new Surface(canvas, ({context, width, height, scale}) => {
    colours ??= palettes(names.list, null);
    ruler ??= new Ruler(`11px ${getComputedStyle(canvas).fontFamily}`);
    const pixels = Math.round(width * scale);
    const perPixel = (to - from) / pixels;
    context.font = ruler.font;
    context.textBaseline = 'middle';
    sheet.begin(pixels, lanes.length, colours.ground);
    const wide = lanes.map(({track, levels}, i) => {
      const cells = levelFor(levels, perPixel);
      const {pixels: palette} = paletteOf(colours, track);
      return paintLane(sheet.row(i), cells, {from, to, origin: from, perPixel, palette, ground: colours.ground, labelled: LABELLED * scale})
        .map((at) => ({...at, index: cells.name[at.index]}));
    });
    sheet.end(lanes.length);
    context.fillStyle = getComputedStyle(canvas).backgroundColor;
    context.fillRect(0, 0, width, height);
    for (const [i, {track}] of lanes.entries()) {
      sheet.draw(context, i, 0, i * HEIGHT, width, HEIGHT - 1);
      const {ink} = paletteOf(colours, track);
      drawLabels(context, ruler, wide[i], {scale, x: 0, y: i * HEIGHT, height: HEIGHT - 1, text: (name) => texts[name], ink: (name) => ink[name]});
    }
  });
  const [{process, thread, tid}] = own;
  return h(
    'section',
    {class: 'strip-of', 'aria-label': 'the thread over time'},
    h('h2', {}, placeLink(place, {tab: 'timeline'}, {}, 'Timeline'), ` of ${printable(thread || process || '')} (${tid})`),
    h(
      'a',
      {
        href: place.link({tab: 'timeline'}),
        'aria-label': 'to the timeline',
        title: 'to this time in the timeline',
        onclick: (event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          const at = from + (event.offsetX / canvas.clientWidth) * (to - from);
          const part = event.detail > 0 ? {from: Math.max(0, Math.floor(at - AROUND * (to - from))), to: Math.ceil(at + AROUND * (to - from))} : {};
          place.go({tab: 'timeline', ...part});
        },
      },
      canvas,
    ),
    h('p', {class: 'strip-ends quiet'}, h('span', {}, formatNs(from)), stateLegend(names.list, [own.find(({kind}) => kind === 'states')]), h('span', {}, formatNs(to))),
  );
}
