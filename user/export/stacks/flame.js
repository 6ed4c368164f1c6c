/* SPDX-License-Identifier: BSD-2-Clause */
'use strict';
(function () {
const svg = document.documentElement, NS = 'http://www.w3.org/2000/svg';
const pad = +svg.dataset.pad, charWidth = +svg.dataset.char;
const frames = Array.from(document.querySelectorAll('#frames g')).map(function (g, i) {
  const text = g.querySelector('title').textContent, cut = text.indexOf('\n');
  return {g: g, rect: g.querySelector('rect'), text: g.querySelector('text'), name: text.slice(0, cut),
    facts: text.slice(cut + 1).replace(/\n/g, '   '), start: +g.dataset.s, total: +g.dataset.t,
    depth: +g.dataset.d, undrawn: +g.dataset.u || 0, index: i};
});
const detail = document.getElementById('detail'), all = frames[0];
if (!all) return;
const hint = 'Point at a frame for its times, click it to zoom, Ctrl-F to search, Esc to go back; Tab and arrow keys do the same.';
let zoom = all, reached = null, width = 0, input, matched;

/* East Asian and other wide characters take two columns; never too few, so nothing sticks out. */
function columns(text) {
  let n = 0;
  for (const c of text) n += c.codePointAt(0) < 0x1100 ? 1 : 2;
  return n;
}
function cut(text, room) {
  if (room < 3) return '';
  let used = 0, end = 0, last = 0;
  for (const c of text) {
    used += c.codePointAt(0) < 0x1100 ? 1 : 2;
    if (used > room) return text.slice(0, last) + '…';
    end += c.length;
    if (used <= room - 1) last = end;
  }
  return text;
}
/* Outer namespaces go first, so that the last part of the name stays. */
function fit(name, pixels) {
  const room = Math.floor((pixels - 6) / charWidth);
  if (room < 3) return '';
  if (columns(name) <= room) return name;
  let depth = 0, part = 0;
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (c === '<' || c === '(') depth++;
    if (c === '>' || c === ')') depth--;
    if (depth !== 0 || c !== ':' || name[i + 1] !== ':') continue;
    part = ++i + 1;
    if (columns(name.slice(part)) < room) return '…' + name.slice(part);
  }
  return cut(name.slice(part), room);
}
/* Both ends of a long name say more than its beginning alone. */
function cutMiddle(text, room) {
  const all = Array.from(text);
  if (columns(text) <= room) return text;
  let head = '', tail = '', i = 0, j = all.length;
  while (i < j) {
    const front = columns(head) <= columns(tail), next = front ? all[i++] : all[--j];
    if (columns(head) + columns(tail) + columns(next) > room - 1) break;
    if (front) head += next;
    else tail = next + tail;
  }
  return head + '…' + tail;
}
function tell(f) {
  const room = Math.floor((width - 2 * pad) / charWidth) - columns(f.facts) - 3;
  detail.textContent = f.facts + '   ' + cutMiddle(f.name, room);
}
function place(f, x, w, outer) {
  f.g.style.display = '';
  f.g.classList.toggle('outer', outer);
  f.rect.setAttribute('x', x.toFixed(2));
  /* a gap between neighbours, where there is room for one */
  f.rect.setAttribute('width', Math.max(w > 3 ? w - 0.8 : w, 0.1).toFixed(2));
  const shown = fit(f.name, w);
  f.text.textContent = shown;
  if (shown) f.text.setAttribute('x', (x + 4).toFixed(2));
}
function layout() {
  const inner = width - 2 * pad, scale = inner / zoom.total, end = zoom.start + zoom.total;
  for (const f of frames) {
    if (f.depth < zoom.depth && f.start <= zoom.start && f.start + f.total >= end) {
      place(f, pad, inner, true);
    } else if (f.depth >= zoom.depth && f.start >= zoom.start && f.start + f.total <= end) {
      const x = (f.start - zoom.start) * scale, w = f.total * scale;
      if (w < 0.1) f.g.style.display = 'none';
      else place(f, pad + x, w, false);
    } else {
      f.g.style.display = 'none';
    }
  }
  const reset = document.getElementById('reset');
  if (reset) reset.disabled = zoom === all;
}
function reach(f) {
  if (reached) reached.g.setAttribute('tabindex', -1);
  reached = f;
  f.g.setAttribute('tabindex', 0);
}
function zoomTo(f) {
  zoom = f;
  layout();
  if (reached.g.style.display === 'none') reach(f);
}
function search(text) {
  let pattern = null, count = 0, sum = 0, undrawn = 0, seen = -1;
  if (text) {
    try { pattern = new RegExp(text, 'i'); }
    catch (e) { pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i'); }
  }
  for (const f of frames) {
    const hit = pattern !== null && f !== all && pattern.test(f.name);
    f.g.classList.toggle('match', hit);
    if (!hit) {
      /* what is not drawn may match, too */
      if (f.start >= seen) undrawn += f.undrawn;
      continue;
    }
    count++;
    /* frames come parents first, left to right: a match inside a counted one is not new time */
    if (f.start >= seen) { sum += f.total; seen = f.start + f.total; }
  }
  const share = function (x) { return (100 * x / all.total).toFixed(2); }, least = share(sum), most = share(sum + undrawn);
  matched.textContent = pattern === null ? '' :
    count === 0 ? (undrawn > 0 ? 'no match in what is drawn' : 'no match') :
    (most !== least ? least + ' to ' + most : least) + '% in ' + count + (count === 1 ? ' frame' : ' frames');
  matched.title = undrawn > 0 ? 'frames that are not drawn may match, too' : '';
}
function resize() {
  const height = +svg.getAttribute('height');
  width = Math.max(640, window.innerWidth - (height > window.innerHeight ? 16 : 0));
  svg.setAttribute('width', width);
  const controls = document.getElementById('controls');
  if (controls) controls.setAttribute('x', width - 560 - pad);
  layout();
}
function html(name, properties) {
  return Object.assign(document.createElementNS('http://www.w3.org/1999/xhtml', name), properties);
}
function addControls() {
  const box = document.createElementNS(NS, 'foreignObject'), row = html('div', {className: 'controls'});
  box.id = 'controls';
  box.setAttribute('y', 12); box.setAttribute('width', 560); box.setAttribute('height', 34);
  matched = html('span', {id: 'matched'});
  input = html('input', {id: 'search', type: 'search', placeholder: 'Search (Ctrl-F), text or pattern'});
  const find = html('button', {id: 'find', textContent: 'Search'});
  const reset = html('button', {id: 'reset', textContent: 'Reset zoom'});
  input.addEventListener('input', function () { search(input.value); });
  find.addEventListener('click', function () { input.focus(); search(input.value); });
  reset.addEventListener('click', function () { zoomTo(all); });
  row.append(matched, input, find, reset);
  box.appendChild(row);
  svg.appendChild(box);
}
addControls();
detail.textContent = hint;
for (const f of frames) {
  f.g.addEventListener('click', function () { zoomTo(f); });
  f.g.addEventListener('mouseenter', function () { tell(f); });
  f.g.addEventListener('mouseleave', function () { detail.textContent = hint; });
  f.g.addEventListener('focus', function () { reach(f); tell(f); });
  f.g.addEventListener('blur', function () { detail.textContent = hint; });
  f.g.setAttribute('role', 'button');
  f.g.setAttribute('aria-label', f.name + ', ' + f.facts);
}
reach(all);
/* Tab reaches one frame, the last one or the outermost; arrow keys go on from it. */
const steps = {
  ArrowUp: function (f, o) { return o.depth === f.depth - 1 && o.start <= f.start && o.start + o.total >= f.start + f.total; },
  ArrowDown: function (f, o) { return o.depth === f.depth + 1 && o.start >= f.start && o.start + o.total <= f.start + f.total; },
  ArrowLeft: function (f, o) { return o.depth === f.depth && o.start < f.start; },
  ArrowRight: function (f, o) { return o.depth === f.depth && o.start > f.start; }
};
document.getElementById('frames').addEventListener('keydown', function (e) {
  if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); zoomTo(reached); return; }
  if (!steps[e.key]) return;
  e.preventDefault();
  const there = frames.filter(function (o) { return o.g.style.display !== 'none' && steps[e.key](reached, o); });
  /* frames stand left to right */
  const next = e.key === 'ArrowLeft' ? there[there.length - 1] : there[0];
  if (next) next.g.focus();
});
window.addEventListener('keydown', function (e) {
  if ((e.ctrlKey || e.metaKey) && e.key === 'f') { e.preventDefault(); input.focus(); input.select(); }
  if (e.key === 'Escape') {
    if (input.value) { input.value = ''; search(''); input.blur(); }
    else zoomTo(all);
  }
});
window.addEventListener('resize', resize);
resize();
})();
