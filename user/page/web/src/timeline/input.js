// SPDX-License-Identifier: BSD-2-Clause
// What pointer, wheel and keys do to the timeline.
import {OVERVIEW} from './paint.js';

const STILL = 3; // pixels; a pointer that moved less was a click
const EDGE = 6; // pixels around an end of the part that the overview marks
const LINE = 18; // pixels; browsers may tell of the wheel in lines

export const KEYS = [
  ['W S, + -, Ctrl+wheel, two fingers', 'closer, further away'],
  ['A D, ← →, drag, Shift+wheel', 'earlier, later'],
  ['↑ ↓, wheel', 'rows'],
  ['Shift+drag, drag on the axis', 'select an area'],
  ['Enter', 'select the first span in view; then: zoom to it; with a search: the next match'],
  ['← → ↑ ↓', 'with a span selected: the next one in its row, or in the row above or below'],
  ['F, double click', 'zoom to the selected span or area'],
  ['Home', 'all of the time'],
  ['N, Shift+N', 'the next, the previous match of the search (in names and arguments)'],
];

/** What the pointers do that are held, until `end` or one of them is let go. */
function hold(t, events, move, end = () => {}) {
  const {target} = events[0];
  const ids = events.map((e) => e.pointerId);
  const ended = new AbortController();
  const listen = (type, listener) =>
    target.addEventListener(type, (e) => ids.includes(e.pointerId) && listener(e), {signal: ended.signal});
  const stop = () => {
    ended.abort();
    t.held = null;
    t.dragging = false;
  };
  const letGo = () => {
    stop();
    end();
  };
  for (const id of ids) target.setPointerCapture(id);
  t.view.stop();
  t.held = {event: events[0], stop};
  listen('pointermove', move);
  listen('pointerup', letGo);
  listen('pointercancel', letGo);
}

/** Two fingers: what was below each of them stays there. */
function pinch(t, first, second) {
  const {view} = t;
  const places = new Map([first, second].map((e) => [e.pointerId, e.offsetX]));
  const [at, other] = [...places.values()].map((x) => t.timeAt(x));
  t.dragging = true;
  hold(t, [first, second], (e) => {
    places.set(e.pointerId, e.offsetX);
    const [x, y] = places.values();
    const perPixel = (other - at) / (y - x);
    if (!(perPixel > 0)) return; // they have passed each other
    view.set(at - x * perPixel, at + (t.surface.width - x) * perPixel);
    t.moved();
  });
}

/** Follows the pointer until it is let go; `done` is told whether it was moved at all. A second finger makes it a pinch. */
function drag(t, event, move, done) {
  if (event.button !== 0) return;
  if (t.held && event.pointerType === 'touch') {
    const {event: first, stop} = t.held;
    stop();
    pinch(t, first, event);
    return;
  }
  const {clientX, clientY} = event;
  let moved = false;
  const follow = (e) => {
    t.held.event = e;
    const [dx, dy] = [e.clientX - clientX, e.clientY - clientY];
    moved ||= Math.hypot(dx, dy) > STILL;
    if (!moved) return;
    t.dragging = true;
    t.tip.hide();
    move(dx, dy);
  };
  hold(t, [event], follow, () => done(moved));
}

/** Between two times and, of the rows, two heights. */
function dragArea(t, event, heights) {
  const {view} = t;
  const at = t.timeAt(event.offsetX);
  const move = (dx, dy) => {
    const other = t.timeAt(event.offsetX + dx);
    const [top, bottom] = heights(dy);
    t.area = {
      from: Math.max(view.low, Math.min(at, other)),
      to: Math.min(view.high, Math.max(at, other)),
      top,
      bottom,
    };
    t.request();
  };
  drag(t, event, move, (moved) => t.selectArea(moved ? t.area : null));
}

function dragRows(t, event) {
  const {scroll, view} = t;
  const {from, to} = view;
  const top = scroll.scrollTop;
  const y = event.offsetY + top;
  if (event.shiftKey) {
    dragArea(t, event, (dy) => [Math.min(y, y + dy), Math.max(y, y + dy)]);
    return;
  }
  const move = (dx, dy) => {
    const ns = (dx / t.surface.width) * (to - from);
    view.set(from - ns, to - ns);
    scroll.scrollTop = top - dy;
    t.moved();
  };
  drag(t, event, move, (moved) => moved || t.selectAt(event));
}

/** The part that is shown is moved, or one of its ends; elsewhere another part is chosen. */
function dragOverview(t, event) {
  const {view} = t;
  const {from, to, low, high} = view;
  const ns = (pixels) => (pixels / t.headSurface.width) * (high - low);
  const at = low + ns(event.offsetX);
  const [left, right] = [Math.abs(at - from) < ns(EDGE), Math.abs(at - to) < ns(EDGE)];
  const inside = at > from && at < to && to - from < high - low;
  const move = (dx) => {
    const by = ns(dx);
    if (left && !right) view.set(Math.min(from + by, to), to);
    else if (right) view.set(from, Math.max(to + by, from));
    else if (inside) view.set(from + by, to + by);
    else view.set(Math.min(at, at + by), Math.max(at, at + by));
    t.moved();
  };
  drag(t, event, move, (moved) => {
    if (!moved && !inside) t.view.glideTo(at - (to - from) / 2, at + (to - from) / 2);
  });
}

const pixelsOf = ({deltaY, deltaMode}) => deltaY * (deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE : 1);

function zoomBy(t, event, at) {
  t.view.stop();
  t.view.zoom(Math.exp(-Math.max(-200, Math.min(200, pixelsOf(event))) / 300), at);
  t.moved();
}

function panBy(t, pixels) {
  t.view.stop();
  t.view.pan((pixels / t.surface.width) * t.view.span);
  t.moved();
}

/** With Ctrl (and by pinching) closer; to the side, or with Shift, later; else rows, if there are more than fit. */
function turnWheel(t, event) {
  const {scroll} = t;
  const at =
    event.target === t.canvas || (event.target === t.head && event.offsetY >= OVERVIEW)
      ? t.timeAt(event.offsetX)
      : undefined;
  const side = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
  const rows = event.target !== t.head && scroll.scrollHeight > scroll.clientHeight;
  event.preventDefault();
  if (event.ctrlKey || event.metaKey) zoomBy(t, event, at);
  else if (event.shiftKey || Math.abs(side) > Math.abs(event.deltaY)) panBy(t, side);
  else if (rows) scroll.scrollTop += pixelsOf(event);
  else zoomBy(t, event, at);
}

/** What the key does here, if anything. */
function actionOf(t, event) {
  const {selected, scroll, view} = t;
  const anywhere = {
    w: () => t.glide(1.5, 0),
    s: () => t.glide(1 / 1.5, 0),
    a: () => t.glide(1, -0.15),
    d: () => t.glide(1, 0.15),
    '+': () => t.glide(2, 0),
    '=': () => t.glide(2, 0),
    '-': () => t.glide(0.5, 0),
    f: () => t.zoomToSelected(),
    n: () => t.nextMatch(event.key === 'N' ? -1 : 1),
    escape: selected ? () => t.select(null) : t.area && (() => t.selectArea(null)),
  };
  const onRows = {
    Home: () => t.view.glideTo(view.low, view.high),
    ArrowLeft: () => (selected ? t.selectBeside(-1) : t.glide(1, -0.15)),
    ArrowRight: () => (selected ? t.selectBeside(1) : t.glide(1, 0.15)),
    ArrowUp: () => (selected ? t.selectAcross(-1) : scroll.scrollBy(0, -3 * LINE)),
    ArrowDown: () => (selected ? t.selectAcross(1) : scroll.scrollBy(0, 3 * LINE)),
    PageUp: () => scroll.scrollBy(0, -0.9 * scroll.clientHeight),
    PageDown: () => scroll.scrollBy(0, 0.9 * scroll.clientHeight),
    Enter: () => (t.lit ? t.nextMatch(event.shiftKey ? -1 : 1) : selected ? t.zoomToSelected() : t.selectFirst()),
  };
  return (
    anywhere[event.key.toLowerCase()] ??
    ([t.canvas, t.element, document.body].includes(event.target) ? onRows[event.key] : undefined)
  );
}

function pressKey(t, event) {
  const here = t.element.contains(event.target) || event.target === document.body;
  const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  const meant = !t.element.hidden && here && !writing && !event.ctrlKey && !event.metaKey && !event.altKey;
  const action = meant && !document.querySelector('dialog[open]') && actionOf(t, event);
  if (!action) return;
  action();
  event.preventDefault();
  event.stopImmediatePropagation();
}

/** @param {import('../timeline.js').Timeline} t */
export function listen(t) {
  const {canvas, head, scroll} = t;
  canvas.addEventListener('pointerdown', (e) => dragRows(t, e));
  canvas.addEventListener('pointermove', (e) => {
    t.pointerTime = t.timeAt(e.offsetX);
    if (!t.dragging) t.showTip(e);
  });
  canvas.addEventListener('pointerleave', () => {
    t.pointerTime = undefined;
    t.tip.hide();
  });
  canvas.addEventListener('dblclick', () => t.zoomToSelected());
  head.addEventListener('pointerdown', (e) =>
    e.offsetY < OVERVIEW ? dragOverview(t, e) : dragArea(t, e, () => [0, t.layout.height]),
  );
  for (const element of [head, scroll])
    element.addEventListener('wheel', (e) => turnWheel(t, e), {passive: false});
  // before the page's own keys
  document.addEventListener('keydown', (e) => pressKey(t, e), {capture: true});
}
