// SPDX-License-Identifier: BSD-2-Clause
// The tab "Timeline": processes, threads, states, streams and counters over the time. What the parts do stands in timeline/;
// here is what the reader does with them.
import {cellAt, firstBehind, firstFrom, levelFor} from './canvas/lanes.js';
import {Sheet, Surface} from './canvas/surface.js';
import {Ruler} from './canvas/text.js';
import {Tip} from './canvas/tip.js';
import {h, printable, refill} from './dom.js';
import {format, formatCount, formatNs} from './format.js';
import {arrowsOf, cellOf, readArrows} from './timeline/arrows.js';
import {Finer} from './timeline/finer.js';
import {GlidingView} from './timeline/glide.js';
import {KEYS, listen} from './timeline/input.js';
import {makeLabel} from './timeline/labels.js';
import {stateLegend} from './timeline/legend.js';
import {Search, countMatches, nextMatch, ownTimes} from './timeline/measure.js';
import {NOTHING, Names, group, idleKey, layOut, leavesOut, readTracks, sameLane, trackKey} from './timeline/model.js';
import {showPoint, showSpan, showTimes, spanText} from './timeline/panel.js';
import {busyShares, drawHead, drawRows, palettes, valueAt} from './timeline/paint.js';
import {color} from './theme.js';

const REST_MS = 250; // after which the table of what is in view is counted anew
const REACH = 3; // pixels, within which a span is hit that is too small for the pointer
const MANY_PROCESSES = 12; // more are folded at first

const KINDS = [
  ['spans', 'Spans'],
  ['states', 'States'],
  ['gpu', 'GPU'],
  ['samples', 'Samples'],
];

export class Timeline {
  constructor(element, data, place, block) {
    this.place = place;
    this.page = data.page;
    this.element = element;
    this.names = new Names(block.head.names);
    this.shownNames = [];
    this.tracks = readTracks(block, this.names);
    this.leftOut = leavesOut(block.head);
    this.arrows = this.ownArrows = readArrows(block, this.tracks);
    this.byKey = new Map(this.tracks.map((track) => [trackKey(track), track]));
    this.chosen = [];
    this.groups = group(this.tracks, block.head.names);
    this.folded = new Set(this.groups.flatMap((g, i) => [...(g.idle || (i > 0 && this.groups.length > MANY_PROCESSES) ? [g.key] : []), idleKey(g)]));
    this.pins = new Set();
    this.view = new GlidingView(block.head.from_ns, block.head.to_ns, () => this.moved());
    this.finer = new Finer(this.names, () => this.finerCame());
    this.lit = null;
    this.selected = this.area = this.found = null;
    this.kind = KINDS.find(([kind]) => this.tracks.some((t) => t.kind === kind))?.[0];
    this.sheet = new Sheet();
    this.build();
    this.ruler = new Ruler(`11px ${getComputedStyle(element).fontFamily}`);
    this.tip = new Tip(element);
    document.addEventListener('themechange', () => this.paintAnew());
    this.paintAnew();
    this.fold();
  }

  /* ---- what stands on the page ---- */

  build() {
    const button = (text, title, action) => h('button', {title, 'aria-label': title, onclick: action}, text);
    const zoom = (factor) => () => this.glide(factor, 0);
    this.status = h('span', {class: 'quiet tl-status'});
    this.matches = h('span', {class: 'tl-matches', hidden: true});
    this.matchText = h('span', {'aria-live': 'polite'});
    this.matches.append(
      button('‹', 'previous match (Shift+Enter)', () => this.nextMatch(-1)),
      this.matchText,
      button('›', 'next match (Enter)', () => this.nextMatch(1)),
    );
    this.head = h('canvas', {class: 'tl-head', 'aria-hidden': 'true'});
    this.canvas = h('canvas', {
      class: 'tl-rows',
      tabindex: '0',
      role: 'application',
      'aria-roledescription': 'timeline',
      'aria-label': 'spans over time; Enter selects one, the table below tells what takes the time in view',
    });
    this.labels = h('div', {class: 'tl-labels'});
    this.pinned = h('div', {class: 'tl-pinned'});
    this.content = h('div', {class: 'tl-content'}, this.labels, h('div', {class: 'tl-pins'}, this.pinned), this.canvas);
    this.scroll = h('div', {class: 'tl-scroll', onscroll: () => this.request()}, this.content);
    this.live = h('p', {class: 'hidden-text', 'aria-live': 'polite'});
    this.details = h('section', {class: 'tl-details', 'aria-label': 'selected', tabindex: '0'});
    this.kinds = h('div', {class: 'tl-kinds', role: 'group', 'aria-label': 'of what'});
    this.times = h('div', {
      class: 'tl-table',
      tabindex: '0',
      role: 'region',
      'aria-label': 'what takes the time in view',
    });
    this.element.append(
      h(
        'div',
        {class: 'toolbar'},
        button('+', 'closer (W)', zoom(2)),
        button('−', 'further away (S)', zoom(0.5)),
        button('←', 'earlier (A)', () => this.glide(1, -0.4)),
        button('→', 'later (D)', () => this.glide(1, 0.4)),
        button('All', 'all of the time (Home)', () => this.view.glideTo(this.view.low, this.view.high)),
        h('span', {class: 'toolbar-gap'}),
        button('Fold', 'fold all processes', () => this.fold(this.groups.map((g) => g.key))),
        button('Unfold', 'unfold everything', () => this.fold([])),
        h('span', {class: 'toolbar-gap'}),
        this.matches,
        h('span', {class: 'grow'}),
        stateLegend(this.names.list, this.tracks.filter(({kind}) => kind === 'states')),
        this.status,
      ),
      h('div', {class: 'tl-top'}, h('div', {class: 'tl-corner quiet'}), this.head),
      this.scroll,
      h(
        'div',
        {class: 'tl-foot'},
        this.details,
        h('section', {class: 'tl-in-view', 'aria-label': 'in view'}, this.kinds, this.times),
      ),
      this.live,
    );
    this.headSurface = new Surface(this.head, (s) => this.drawHead(s));
    this.surface = new Surface(
      this.canvas,
      (s) => this.drawRows(s),
      () => this.lookFiner(),
    );
    listen(this);
    this.showNothing();
    this.fillKinds();
  }

  fillKinds() {
    const there = KINDS.filter(([kind]) => this.tracks.some((t) => t.kind === kind));
    refill(
      this.kinds,
      ...there.map(([kind, title]) =>
        h(
          'button',
          {
            class: 'choice',
            'aria-pressed': String(kind === this.kind),
            onclick: () => {
              this.kind = kind;
              this.fillKinds();
              this.countTimes();
            },
          },
          title,
        ),
      ),
      this.area ? h('button', {onclick: () => this.selectArea(null)}, 'Forget the area (Esc)') : '',
    );
  }

  fold(keys) {
    if (keys) this.folded = new Set(keys);
    this.layout = layOut(this.groups, this.folded, this.pins);
    this.content.style.height = `${this.layout.height}px`;
    const labels = (rows) => rows.flatMap((row) => makeLabel(row, this.folded, (key) => this.toggle(key), (key) => this.pin(key)));
    this.labels.replaceChildren(...labels(this.layout.rows.filter((row) => !row.pinned)));
    this.pinned.replaceChildren(...labels(this.layout.rows.filter((row) => row.pinned)));
    this.pinned.style.height = `${this.layout.pinned}px`;
    this.request();
  }

  /** Kept at the top, or no longer. */
  pin(key) {
    if (!this.pins.delete(key)) this.pins.add(key);
    this.fold();
    [...this.labels.children, ...this.pinned.children].find((label) => label.dataset.key === key)?.focus();
  }

  toggle(key) {
    if (!this.folded.delete(key)) this.folded.add(key);
    this.fold();
    [...this.labels.children, ...this.pinned.children].find((label) => label.dataset.key === key)?.focus();
  }

  /* ---- drawing ---- */

  /** Colours depend on the theme and on what is searched for. */
  paintAnew() {
    const {list} = this.names;
    for (let i = this.shownNames.length; i < list.length; i++) this.shownNames.push(printable(list[i]));
    this.palettes = palettes(list, this.lit?.names ?? null);
    this.request();
  }

  request() {
    this.surface.request();
    this.headSurface.request();
  }

  drawHead(surface) {
    if (this.shares?.length !== surface.width) this.shares = this.countBusy(surface.width);
    drawHead(surface, this);
  }

  /** Of spans; of a recording without them, of running threads. */
  countBusy(columns) {
    // a stream's further rows are waits and overhead
    const spans = this.tracks.filter((t) => t.kind === 'spans' || (t.kind === 'gpu' && t.row === 0));
    if (spans.length > 0) return busyShares(spans, this.view, columns);
    return busyShares(
      this.tracks.filter((t) => t.kind === 'states'),
      this.view,
      columns,
      this.names.list.indexOf('Running'),
    );
  }

  drawRows(surface) {
    const {view, layout, palettes: colours, ruler, sheet, selected, area, shownNames: names, chosen, lit} = this;
    const segments = (part, perPixel) => this.segments(part, perPixel);
    const scene = {
      view,
      layout,
      palettes: colours,
      ruler,
      sheet,
      selected,
      area,
      names,
      chosen,
      lit,
      segments,
      top: this.scroll.scrollTop,
    };
    drawRows(surface, scene);
    if (layout.pinned === 0) return;
    // what is pinned stands over what scrolls below it
    const {context, width, scale} = surface;
    const rows = layout.rows.filter((row) => row.pinned);
    drawRows({context, width, height: layout.pinned, scale}, {...scene, layout: {...layout, rows}, top: 0, area: null});
    context.fillStyle = color('--line');
    context.fillRect(0, layout.pinned - 1, width, 1);
  }

  get perPixel() {
    return this.view.span / Math.max(1, this.surface.width * this.surface.scale);
  }

  /** The cells to draw of a lane, and where: the server's where the page's are too coarse. */
  segments({track, lane, depth}, perPixel) {
    const {
      view,
      finer: {block},
    } = this;
    const cells = levelFor(lane, perPixel);
    if (!block || cells.resolution <= perPixel || block.from >= view.to || block.to <= view.from)
      return [{cells, from: view.from, to: view.to}];
    const finer = sameLane(block.tracks.get(trackKey(track)), track, depth);
    const [from, to] = [Math.max(view.from, block.from), Math.min(view.to, block.to)];
    return [
      {cells, from: view.from, to: from},
      ...(finer ? [{cells: levelFor(finer, perPixel), from, to}] : []),
      {cells, from: to, to: view.to},
    ].filter((segment) => segment.to > segment.from);
  }

  /** The finest cells of a lane around a time. */
  cellsAround({track, lane, depth}, at) {
    const {block} = this.finer;
    const finer =
      block &&
      at >= block.from &&
      at <= block.to &&
      sameLane(block.tracks.get(trackKey(track)), track, depth);
    return finer && finer[0].resolution < lane[0].resolution ? finer[0] : lane[0];
  }

  /* ---- the view ---- */

  /** The view was moved: everything that follows it. */
  moved({keepPlace = false} = {}) {
    this.request();
    this.tip.hide();
    this.lookFiner();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      if (!keepPlace) this.tellPlace();
      this.countTimes();
    }, REST_MS);
    this.tellStatus();
  }

  /** Asks the server where the page is too coarse for what is shown. */
  lookFiner() {
    this.finer.look(
      this.view,
      this.page.server === true &&
        this.surface.width > 0 &&
        (this.coarseness() > this.perPixel || (this.leftOut && this.view.span < (this.view.high - this.view.low) / 2)),
    );
  }

  tellPlace() {
    const {view} = this;
    const whole = view.from <= view.low && view.to >= view.high;
    const [from, to] = whole ? [] : [Math.round(view.from), Math.round(view.to)];
    this.told = {from, to};
    this.place.go({from, to}, {replace: true});
  }

  /** The page's finest resolution where it merged anything. */
  coarseness() {
    if (this.coarsest !== undefined) return this.coarsest;
    this.coarsest = 0;
    for (const {kind, lanes} of this.tracks)
      if (kind !== 'counter')
        for (const [level] of lanes) this.coarsest = Math.max(this.coarsest, level.resolution);
    return this.coarsest;
  }

  tellStatus() {
    const {finer, view} = this;
    let text = '';
    if (this.coarseness() > this.perPixel) {
      const resolution =
        finer.block && finer.block.from <= view.from && finer.block.to >= view.to
          ? finer.resolution()
          : this.coarseness();
      const merged = resolution > 0 ? `spans below ${formatNs(resolution)} are merged` : '';
      const capture = this.page.captures[0]?.name ?? 'CAPTURE';
      if (finer.problem) text = `${merged}; ${finer.problem}`;
      else if (finer.busy) text = 'getting every span …';
      else if (merged && this.page.server) text = merged;
      else if (merged) text = `${merged}; for every span: xsptrace view ${printable(capture)}`;
    }
    const status = `${formatNs(view.span)} in view${text && '; '}${text}`;
    if (status === this.status.textContent) return; // while it is panned
    this.status.textContent = this.status.title = status;
  }

  finerCame() {
    const {block} = this.finer;
    // where the page has them all, it has them
    if (block && this.ownArrows.length === 0) {
      const here = ({track, at}) => ({track: this.byKey.get(track), at});
      this.arrows = block.arrows
        .map(({from, to}) => ({from: here(from), to: here(to)}))
        .filter(({from, to}) => from.track && to.track);
    }
    if (this.names.list.length > this.shownNames.length) {
      this.search(this.place.state.q, true);
    }
    this.request();
    this.tellStatus();
    this.countTimes();
  }

  /** By so many times closer, at the pointer, and so many widths later. */
  glide(factor, widths) {
    this.view.glide(factor, widths, this.pointerTime);
  }

  /** So that all of it can be seen, with a margin. */
  zoomTo({from, to}) {
    const margin = (to - from) * 0.1;
    this.view.glideTo(from - margin, to + margin);
  }

  /* ---- what is selected ---- */

  partOf(track, depth) {
    return this.layout.rows.flatMap((row) => row.parts).find((p) => p.track === track && p.depth === depth);
  }

  select(span, {reveal = false} = {}) {
    this.selected = span;
    this.chosen = [];
    if (span) {
      const name = this.shownNames[span.name];
      const {into, outOf} = arrowsOf(this.arrows, span);
      this.chosen = [...into, ...outOf];
      showSpan(this.details, span, name, {
        into: into.flatMap(({from}) => this.otherEnd(from)),
        outOf: outOf.flatMap(({to}) => this.otherEnd(to)),
        zoom: () => this.zoomToSelected(),
        same: () => this.place.go({q: this.names.list[span.name]}),
      });
      this.live.textContent = spanText(span, name);
      if (reveal) this.reveal(span);
    } else {
      this.showNothing();
    }
    this.place.go(
      {sel: span ? `span:${this.tracks.indexOf(span.track)}.${span.depth}@${span.start}` : ''},
      {replace: true},
    );
    this.request();
  }

  /** What an arrow leads to: its name, and how to go there. */
  otherEnd(end) {
    const cell = cellOf(end);
    if (!cell) return [];
    const {track} = end;
    const [cells] = track.lanes[cell.depth];
    const span = this.spanOf({track, depth: cell.depth}, cells, cell.index);
    const name = [track.thread, this.shownNames[span.name]].filter(Boolean).map(printable).join(' · ');
    return [{name, go: () => this.select(span, {reveal: true})}];
  }

  showNothing() {
    this.details.replaceChildren(
      h(
        'p',
        {class: 'quiet'},
        'Click a span, or press Enter, for what is known of it. Shift and drag selects an area; “?” shows the keys.',
      ),
    );
    this.live.textContent = '';
  }

  /** Into view, unfolded. */
  reveal({track, depth, start, duration}) {
    const g = this.groups.find((x) => x.blocks.some((b) => b.tracks.includes(track)));
    const block = g.blocks.find((b) => b.tracks.includes(track));
    const folded = [this.folded.delete(g.key), depth > 0 && this.folded.delete(block.key), block.idle && this.folded.delete(idleKey(g))];
    if (folded.includes(true)) this.fold();
    const part = this.partOf(track, depth);
    const {scroll, view} = this;
    const top = scroll.scrollTop + this.layout.pinned;
    if (!this.pins.has(block.key) && (part.y < top || part.y + part.height > scroll.scrollTop + scroll.clientHeight))
      scroll.scrollTop = part.y - this.layout.pinned - scroll.clientHeight / 3;
    if (
      start + duration < view.from ||
      start > view.to ||
      (duration < view.span && (start < view.from || start + duration > view.to))
    )
      this.view.glideTo(start + duration / 2 - view.span / 2, start + duration / 2 + view.span / 2);
  }

  /** Those of a span that the page holds without them, for want of room. */
  finerArguments({track, depth}, start, duration) {
    const [cells] = sameLane(this.finer.block?.tracks.get(trackKey(track)), track, depth) ?? NOTHING;
    const i = firstFrom(cells.start, start);
    return cells.start[i] === start && cells.duration[i] === duration ? cells.argumentsOf(i) : null;
  }

  /** The server's cells end where what was asked for ends: of one that goes on there the page knows the whole. */
  spanOf(part, cells, i) {
    const {block} = this.finer;
    const [whole] = part.track.lanes[part.depth];
    if (
      block &&
      cells !== whole &&
      cells.count[i] === 1 &&
      (cells.start[i] <= block.from || cells.start[i] + cells.duration[i] >= block.to)
    ) {
      const k = firstBehind(whole, cells.start[i]);
      if (whole.count[k] === 1 && whole.name[k] === cells.name[i] && whole.start[k] <= cells.start[i])
        [cells, i] = [whole, k];
    }
    return {
      track: part.track,
      depth: part.depth,
      start: cells.start[i],
      duration: cells.duration[i],
      busy: cells.busy[i],
      name: cells.name[i],
      count: cells.count[i],
      args: cells.argumentsOf?.(i) ?? this.finerArguments(part, cells.start[i], cells.duration[i]),
    };
  }

  zoomToSelected() {
    const {selected, area} = this;
    if (selected) this.zoomTo({from: selected.start, to: selected.start + Math.max(selected.duration, 1)});
    else if (area) this.zoomTo(area);
  }

  /** The first one that can be seen. */
  selectFirst() {
    const {scrollTop, clientHeight} = this.scroll;
    for (const part of this.layout.rows.flatMap((row) => row.parts)) {
      if (part.y < scrollTop || part.y > scrollTop + clientHeight || part.track.kind === 'counter') continue;
      const cells = this.cellsAround(part, this.view.from);
      const i = firstBehind(cells, this.view.from);
      if (i < cells.start.length && cells.start[i] < this.view.to)
        return this.select(this.spanOf(part, cells, i), {reveal: true});
    }
    return undefined;
  }

  selectBeside(step) {
    const {track, depth, start, duration} = this.selected;
    const part = {track, depth, lane: track.lanes[depth]};
    const cells = this.cellsAround(part, start);
    let i = firstFrom(cells.start, step > 0 ? start + duration : start);
    if (step < 0 || cells.start[i] === start) i += step; // one without duration is behind itself
    if (i >= 0 && i < cells.start.length) this.select(this.spanOf(part, cells, i), {reveal: true});
  }

  /** The row above or below that has something at this time, or else near it. */
  selectAcross(step) {
    const parts = this.layout.rows
      .flatMap((row) => row.parts)
      .filter((p) => p.track.kind !== 'counter' && p.lane[0].start.length > 0);
    const {track, depth, start, duration} = this.selected;
    const next = parts[parts.findIndex((p) => p.track === track && p.depth === depth) + step];
    if (!next) return;
    const from = Math.max(start, Math.min(this.view.from, start + duration));
    const cells = this.cellsAround(next, from);
    const i = Math.min(firstBehind(cells, from), cells.start.length - 1);
    this.select(this.spanOf(next, cells, i), {reveal: true});
  }

  selectArea(area) {
    this.area = area && area.to > area.from ? area : null;
    this.fillKinds();
    this.countTimes();
    this.request();
  }

  /** "TRACK.DEPTH" of what the area touches. */
  touched({top, bottom}) {
    const parts = this.layout.rows
      .flatMap((row) => row.parts)
      .filter((p) => p.y < bottom && p.y + p.height > top);
    this.numbers ??= new Map(this.tracks.map((track, i) => [track, i]));
    return new Set(parts.map((p) => `${this.numbers.get(p.track)}.${p.depth}`));
  }

  /** The table of what takes the time: in the area, else in view. */
  countTimes() {
    const {
      area,
      view,
      finer: {block},
      kind,
    } = this;
    const {from, to} = area ?? view;
    const chosen = area && this.touched(area);
    const finer = block && block.from <= from && block.to >= to ? block.tracks : null;
    const lanesOf = (track, t) => {
      const other = finer?.get(trackKey(track));
      const lanes = other ? track.lanes.map((lane, depth) => sameLane(other, track, depth) ?? NOTHING) : track.lanes;
      return lanes
        .map(([cells], depth) => ({cells, inner: (kind === 'spans' && lanes[depth + 1]?.[0]) || null}))
        .filter((_, depth) => !chosen || chosen.has(`${t}.${depth}`))
        // of a stream what ran on the GPU: the first depth has the program's ranges, around it
        .filter((_, depth) => kind !== 'gpu' || !track.laneKeys[depth].startsWith('0.'));
    };
    if (!kind) {
      this.times.replaceChildren(h('p', {class: 'quiet'}, 'There are no spans here: counters alone were recorded.'));
      return;
    }
    const what = KINDS.find(([key]) => key === kind)[1];
    showTimes(this.times, {
      caption: `${what} in ${area ? 'the selected area' : 'view'}: ${formatNs(to - from)}${area ? `, ${formatCount(chosen.size)} rows` : ''}`,
      rows: ownTimes(
        this.tracks.flatMap((track, t) => (track.kind === kind && !(kind === 'gpu' && track.row > 0) ? lanesOf(track, t) : [])),
        from,
        to,
        this.names.list.length,
      ),
      names: this.shownNames,
      moments: kind === 'samples',
      find: (name) => this.place.go({q: this.names.list[name]}),
    });
  }

  /* ---- search ---- */

  search(text, again = false) {
    if (!again && text === this.searched) return;
    this.searched = text;
    this.lit = text === '' ? null : new Search(this.names.list, text);
    this.matches.hidden = this.lit === null;
    this.paintAnew();
    this.found = again ? this.found : null;
    if (this.lit) this.tellMatches();
  }

  /** All lanes that spans are in, folded or not, in their order on the page. */
  searchedLanes() {
    this.searchable ??= this.groups
      .flatMap((g) => g.blocks.flatMap((b) => b.tracks))
      .filter((t) => t.kind !== 'counter')
      .flatMap((track) => track.lanes.map((lane, depth) => ({track, depth, lane})));
    return this.searchable;
  }

  tellMatches() {
    const lanes = this.searchedLanes();
    const {all, upTo} = countMatches(
      lanes.map(({lane}) => lane[0]),
      this.lit,
      this.found,
    );
    this.matchText.textContent =
      all === 0 ? 'no match' : `${this.found ? `${formatCount(upTo)}/` : ''}${formatCount(all)}`;
    this.matchText.title =
      this.coarseness() > 0
        ? 'spans that are merged in this page are found by the name with the most time among them'
        : '';
  }

  nextMatch(direction) {
    if (!this.lit) return;
    const lanes = this.searchedLanes();
    const from = this.found ?? {start: direction > 0 ? this.view.from : this.view.to, order: -direction};
    const next = nextMatch(
      lanes.map(({lane}) => lane[0]),
      this.lit,
      from,
      direction,
    );
    if (!next) return;
    this.found = next;
    const part = lanes[next.order];
    this.select(this.spanOf(part, part.lane[0], next.index), {reveal: true});
    this.tellMatches();
  }

  /* ---- what is at a place of the screen ---- */

  timeAt(x) {
    return this.view.from + (x / this.surface.width) * this.view.span;
  }

  partAt(y) {
    const at = y < this.layout.pinned ? y : y + this.scroll.scrollTop;
    return this.layout.rows
      .find((r) => at >= r.y && at < r.y + r.height)
      ?.parts.find((p) => at >= p.y && at < p.y + p.height);
  }

  /** What is drawn there: {part, span} or {part, value}. */
  hit({offsetX, offsetY}) {
    const part = this.partAt(offsetY);
    const at = this.timeAt(offsetX);
    if (!part) return null;
    if (part.track.kind === 'counter') return {part, at, value: valueAt(part.lane[0], at)};
    const {cells} = this.segments(part, this.perPixel).find((s) => at >= s.from && at <= s.to) ?? {};
    const i = cells ? cellAt(cells, at, this.perPixel * REACH) : -1;
    return i < 0 ? null : {part, span: this.spanOf(part, cells, i)};
  }

  showTip(event) {
    const hit = this.hit(event);
    if (!hit || (!hit.span && hit.value === undefined)) return this.tip.hide();
    const {track} = hit.part;
    const where = [track.process, track.thread || track.name].filter(Boolean).map(printable).join(' · ');
    if (!hit.span)
      return this.tip.show(event, [format(hit.value, track.unit ?? 'number'), printable(track.name)], where);
    const {duration, name, count} = hit.span;
    return this.tip.show(
      event,
      [formatNs(duration), this.shownNames[name]],
      count > 1 ? `${formatCount(count)} spans merged, zoom in · ${where}` : where,
    );
  }

  /** What is drawn there; nothing where nothing is. */
  selectAt(event) {
    const hit = this.hit(event);
    this.select(hit?.span ?? null);
    if (!hit || hit.span || hit.value === undefined) return;
    const {track} = hit.part;
    const name = printable(track.name);
    showPoint(this.details, track, hit.at, hit.value, name);
    this.live.textContent = `${name}: ${format(hit.value, track.unit ?? 'number')}`;
  }

  /* ---- the place ---- */

  /** What the address says, where that is not what was written there from here. */
  follow({from, to, q, sel}) {
    if (from !== this.told?.from || to !== this.told?.to) {
      this.told = {from, to};
      this.view.stop();
      this.view.set(from ?? this.view.low, to ?? this.view.high);
      this.moved({keepPlace: true});
    }
    this.search(q);
    if (sel === '' && this.selected) this.select(null);
  }

  /** A span that a link leads to: "span:TRACK.DEPTH@START". */
  followSelection(sel) {
    const [, track, depth, start] = /^span:(\d+)\.(\d+)@([\d.]+)$/.exec(sel) ?? [];
    const lane = this.tracks[track]?.kind !== 'counter' && this.tracks[track]?.lanes[depth];
    const i = lane ? cellAt(lane[0], Number(start), 0.5) : -1;
    if (i >= 0) this.select(this.spanOf({track: this.tracks[track], depth: Number(depth)}, lane[0], i));
  }
}

export default {
  key: 'timeline',
  title: 'Timeline',
  wide: true,
  keys: KEYS,
  applies: (data) => data.has('timeline'),
  async render(element, data, place) {
    const timeline = new Timeline(element, data, place, await data.timeline());
    timeline.followSelection(place.state.sel);
    timeline.follow(place.state);
    timeline.moved({keepPlace: true});
    return {update: (state) => timeline.follow(state), nextMatch: (direction) => timeline.nextMatch(direction)};
  },
};
