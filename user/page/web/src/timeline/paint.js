// SPDX-License-Identifier: BSD-2-Clause
// What the timeline looks like. All of it is drawn anew in each frame, and only what can be seen.
import {css, inkOn, mix} from '../canvas/pixels.js';
import {ofName, ofState, ofStyle} from '../canvas/colour.js';
import {firstBehind, firstFrom, levelFor, paintLane} from '../canvas/lanes.js';
import {drawLabels} from '../canvas/surface.js';
import {format} from '../format.js';
import {color} from '../theme.js';
import {cellOf} from './arrows.js';
import {visibleParts} from './model.js';
import {ticks} from './view.js';

const LABELLED = 26; // pixels that a cell needs for a name
const TICK_PIXELS = 110;
const ARROWHEAD = 6; // pixels
const DIMMED = 0.22; // what the search did not find keeps so much of its colour
const QUIET = 0.6; // and its name so much of its own

/** Pixels of names, {spans, states} by number, and what is written on them; `all`: those of what is not found, too. `match`: 1 for names that were searched for, or null. */
export function palettes(names, match) {
  const ground = ofStyle('--bg');
  const inks = new Map();
  const inkOf = (pixel, found) => {
    const key = found ? pixel : -pixel;
    if (!inks.has(key)) inks.set(key, css(found ? inkOn(pixel) : mix(inkOn(pixel), pixel, QUIET)));
    return inks.get(key);
  };
  const of = (colour) => {
    const found = (i) => !match || match[i] === 1;
    const all = Uint32Array.from(names, colour);
    const pixels = match ? all.map((pixel, i) => (found(i) ? pixel : mix(pixel, ground, DIMMED))) : all;
    return {all, pixels, ink: Array.from(pixels, (pixel, i) => inkOf(pixel, found(i)))};
  };
  return {spans: of(ofName), states: of(ofState), ground};
}

/** Lines at round times, behind everything. */
function drawGrid(context, view, width, height) {
  context.fillStyle = color('--line-soft');
  for (const {at} of ticks(view.from, view.to, width / TICK_PIXELS).places)
    context.fillRect(Math.round(((at - view.from) / view.span) * width), 0, 1, height);
}

function drawRowLines(context, layout, top, width, height) {
  for (const row of layout.rows) {
    if (row.y + row.height < top || row.y > top + height) continue;
    context.fillStyle = color(row.block ? '--line-soft' : '--bg-soft');
    if (row.block) context.fillRect(0, row.y + row.height - top - 1, width, 1);
    else context.fillRect(0, row.y - top, width, row.height);
  }
}

/** The value that holds at a time, or undefined before the first. */
export function valueAt(points, at) {
  const i = firstFrom(points.start, at);
  const value = points.start[i] === at ? points.value[i] : points.value[i - 1];
  return Number.isNaN(value) ? undefined : value;
}

/** A counter from 0 (or what is less) to its greatest value; in each column from the least to the greatest there. */
function drawCounter(context, part, view, {top, width}) {
  const [points] = part.lane;
  const {start, value} = points;
  part.range ??= value.reduce(([low, high], v) => (Number.isNaN(v) ? [low, high] : [Math.min(low, v), Math.max(high, v)]), [0, 0]);
  const [low, high] = part.range;
  const room = part.height - 4;
  const bottom = part.y - top + part.height - 1;
  const yOf = (v) => bottom - ((v - low) / (high - low || 1)) * room;
  const line = color('--accent');
  let i = Math.max(0, firstFrom(start, view.from) - 1);
  let held = start[i] <= view.from ? value[i] : undefined;
  for (let x = 0; x < width && i < start.length; x++) {
    const end = view.from + ((x + 1) / width) * view.span;
    let [least, most] = [held ?? Infinity, held ?? -Infinity];
    for (; i < start.length && start[i] < end; i++) {
      held = value[i];
      least = Math.min(least, held);
      most = Math.max(most, held);
    }
    if (held === undefined) continue;
    context.fillStyle = color('--accent-soft');
    context.fillRect(x, yOf(least), 1, yOf(low) - yOf(least));
    context.fillStyle = line;
    context.fillRect(x, yOf(most), 1, Math.max(1.5, yOf(least) - yOf(most)));
    if (i >= start.length) {
      // the last value holds to the end
      context.fillStyle = color('--accent-soft');
      context.fillRect(x + 1, yOf(held), width - x - 1, yOf(low) - yOf(held));
      context.fillStyle = line;
      context.fillRect(x + 1, yOf(held), width - x - 1, 1.5);
    }
  }
  const text = format(high, part.track.unit ?? 'number');
  const textWidth = context.measureText(text).width;
  context.fillStyle = color('--bg');
  context.globalAlpha = 0.8;
  context.fillRect(2, part.y - top + 1, textWidth + 6, 14);
  context.globalAlpha = 1;
  context.fillStyle = color('--text-quiet');
  context.fillText(text, 5, part.y - top + 8);
}

/** `parts`: by track those that are laid out; of an end in what is folded away there is no arrow. */
function placeOf(end, parts, {view, top, width}) {
  const lanes = parts.get(end.track);
  if (!lanes) return null;
  const part = lanes[Math.min(cellOf(end)?.depth ?? 0, lanes.length - 1)];
  return [((end.at - view.from) / view.span) * width, part.y - top + part.height / 2];
}

/** Those of what is selected. */
function drawArrows(context, {chosen, view, layout, top}, width) {
  if (chosen.length === 0) return;
  const parts = new Map();
  for (const part of layout.rows.flatMap((row) => row.parts))
    parts.set(part.track, [...(parts.get(part.track) ?? []), part]);
  for (const arrow of chosen) {
    const [start, end] = [arrow.from, arrow.to].map((x) => placeOf(x, parts, {view, top, width}));
    if (!start || !end) continue;
    context.strokeStyle = context.fillStyle = color('--text-quiet');
    context.lineWidth = 1;
    const bend = Math.max(12, Math.abs(end[0] - start[0]) / 2);
    context.beginPath();
    context.moveTo(...start);
    context.bezierCurveTo(start[0] + bend, start[1], end[0] - bend, end[1], ...end);
    context.stroke();
    context.beginPath();
    context.moveTo(...end);
    context.lineTo(end[0] - ARROWHEAD, end[1] - ARROWHEAD / 2);
    context.lineTo(end[0] - ARROWHEAD, end[1] + ARROWHEAD / 2);
    context.fill();
  }
}

function outline(context, {x, y, width, height}, colour, line) {
  context.strokeStyle = colour;
  context.lineWidth = line;
  context.strokeRect(x + line / 2, y + line / 2, Math.max(width - line, 1), height - line);
}

/**
 * The rows. `scene`: {view, layout, top, palettes, names, ruler, sheet, segments(part): [{cells, from, to}], selected, area,
 * chosen, lit: what of arguments was searched for}.
 */
export function drawRows({context, width, height, scale}, scene) {
  const {view, layout, top, sheet, names, lit} = scene;
  const pixels = Math.round(width * scale);
  const perPixel = view.span / pixels;
  const parts = visibleParts(layout, top, top + height);
  const lanes = parts.filter((part) => part.track.kind !== 'counter');
  context.fillStyle = color('--bg');
  context.fillRect(0, 0, width, height);
  drawRowLines(context, layout, top, width, height);
  drawGrid(context, view, width, height);
  context.font = scene.ruler.font;
  context.textBaseline = 'middle';
  sheet.begin(pixels, lanes.length, 0);
  const wide = lanes.map((part, i) =>
    scene.segments(part, perPixel).flatMap(({cells, from, to}) =>
      paintLane(sheet.row(i), cells, {
        from,
        to,
        origin: view.from,
        perPixel,
        palette: paletteOf(scene.palettes, part.track).pixels,
        lit: lit && {search: lit, palette: paletteOf(scene.palettes, part.track).all},
        ground: scene.palettes.ground,
        labelled: LABELLED * scale,
      }).map((place) => ({...place, index: cells.name[place.index]})),
    ),
  );
  sheet.end(lanes.length);
  for (const [i, part] of lanes.entries()) {
    const y = part.y - top;
    sheet.draw(context, i, 0, y, width, part.height - 1);
    const {ink} = paletteOf(scene.palettes, part.track);
    drawLabels(context, scene.ruler, wide[i], {
      scale,
      x: 0,
      y,
      height: part.height - 1,
      text: (name) => names[name],
      ink: (name) => ink[name],
    });
  }
  for (const part of parts) if (part.track.kind === 'counter') drawCounter(context, part, view, {top, width});
  drawArrows(context, scene, width);
  drawSelection(context, scene, parts, width, height);
}

export const paletteOf = (all, track) => (track.kind === 'states' ? all.states : all.spans);

function drawSelection(context, {view, top, selected, area}, parts, width, height) {
  const xOf = (at) => ((at - view.from) / view.span) * width;
  const part = selected && parts.find((p) => p.track === selected.track && p.depth === selected.depth);
  if (part) {
    const x = Math.max(-4, xOf(selected.start));
    const right = Math.min(width + 4, xOf(selected.start + selected.duration));
    outline(
      context,
      {x: x - 1, y: part.y - top - 1, width: Math.max(right - x, 2) + 2, height: part.height + 1},
      color('--text'),
      2,
    );
  }
  if (area) {
    const [x, right] = [xOf(area.from), xOf(area.to)];
    const y = Math.max(area.top - top, -2);
    const bottom = Math.min(area.bottom - top, height + 2);
    context.globalAlpha = 0.16;
    context.fillStyle = color('--accent');
    context.fillRect(x, y, right - x, bottom - y);
    context.globalAlpha = 1;
    outline(context, {x, y, width: right - x, height: bottom - y}, color('--accent'), 1);
  }
}

/** How full each of `columns` parts of [low, high) is with outermost cells (of one name), 0 to 1 of the fullest. */
export function busyShares(tracks, {low, high}, columns, only) {
  const busy = new Float32Array(columns);
  const per = (high - low) / columns;
  for (const {
    lanes: [outermost],
  } of tracks) {
    if (!outermost) continue;
    const {start, duration, name} = levelFor(outermost, per);
    for (let i = firstBehind({start, duration}, low); i < start.length && start[i] < high; i++) {
      if (only !== undefined && name[i] !== only) continue;
      const end = Math.min((start[i] + duration[i] - low) / per, columns);
      for (let at = Math.max((start[i] - low) / per, 0); at < end; at = Math.floor(at) + 1)
        busy[Math.floor(at)] += Math.min(end, Math.floor(at) + 1) - at;
    }
  }
  const most = busy.reduce((a, b) => Math.max(a, b), 0);
  return most > 0 ? busy.map((b) => b / most) : busy;
}

export const OVERVIEW = 34; // pixels of the head; the axis is below

/** The head: how busy all of the time is, with the part that is shown; and the axis of that part. */
export function drawHead({context, width, height}, {view, shares, area, ruler}) {
  context.fillStyle = color('--bg-soft');
  context.fillRect(0, 0, width, height);
  context.fillStyle = color('--accent');
  context.globalAlpha = 0.55;
  for (let x = 0; x < shares.length; x++) {
    const h = shares[x] * (OVERVIEW - 6);
    if (h > 0) context.fillRect(x, OVERVIEW - 1 - Math.max(h, 1), 1, Math.max(h, 1));
  }
  context.globalAlpha = 1;
  const share = (at) => ((at - view.low) / (view.high - view.low)) * width;
  const [left, right] = [share(view.from), Math.max(share(view.to), share(view.from) + 3)];
  context.fillStyle = color('--bg');
  context.globalAlpha = 0.65;
  context.fillRect(0, 0, left, OVERVIEW);
  context.fillRect(right, 0, width - right, OVERVIEW);
  context.globalAlpha = 1;
  outline(context, {x: left, y: 0, width: right - left, height: OVERVIEW}, color('--accent'), 1.5);
  for (const x of [left, right]) {
    context.fillStyle = color('--accent');
    context.fillRect(Math.min(Math.max(x - 2, 0), width - 4), OVERVIEW / 2 - 7, 4, 14);
  }
  drawAxis(context, {view, area, ruler}, width, height);
}

function drawAxis(context, {view, area, ruler}, width, height) {
  const xOf = (at) => ((at - view.from) / view.span) * width;
  if (area) {
    context.fillStyle = color('--accent-soft');
    context.fillRect(xOf(area.from), OVERVIEW, xOf(area.to) - xOf(area.from), height - OVERVIEW);
  }
  const {places, base} = ticks(view.from, view.to, width / TICK_PIXELS);
  context.font = ruler.font;
  context.textBaseline = 'middle';
  const y = (OVERVIEW + height) / 2 + 1;
  const taken = base === '' ? 0 : ruler.width(base) + 16;
  for (const {at, label} of places) {
    const x = Math.round(xOf(at));
    context.fillStyle = color('--line');
    context.fillRect(x, OVERVIEW + 3, 1, height - OVERVIEW - 3);
    context.fillStyle = color('--text-quiet');
    if (x + 4 >= taken && x + 4 + ruler.width(label) < width) context.fillText(label, x + 4, y);
  }
  context.fillStyle = color('--text');
  if (base !== '') context.fillText(base, 4, y);
  context.fillStyle = color('--line');
  context.fillRect(0, height - 1, width, 1);
}
