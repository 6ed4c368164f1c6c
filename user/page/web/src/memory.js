// SPDX-License-Identifier: BSD-2-Clause
// Memory: what there was over the time, what was alive at the peak and where it came from.
import uPlot from 'uplot';
import {h, printable} from './dom.js';
import {formatBytes} from './format.js';
import {isEmpty, makeSection} from './section.js';
import {color} from './theme.js';
import {View} from './timeline/view.js';
import {findTree} from './tree/table.js';

const SERIES = 10; // in the chart, the largest; the colours are that many
const HEIGHT = 260;

/** The counters in bytes of the timeline: {name, x, y}, the largest first. */
function counters({head, f64}) {
  /** The last value holds until the end. */
  const extended = (array, last) => Float64Array.from([...array, last]);
  const found = head.tracks
    .filter(({kind, unit, lanes}) => kind === 'counter' && unit === 'bytes' && lanes[0]?.levels[0].cells > 0)
    .map((track) => {
      const [{cells, start, value}] = track.lanes[0].levels;
      const y = f64(value, cells);
      const most = y.reduce((m, v) => Math.max(m, v), 0);
      return {
        name: track.name,
        process: `${track.process} (${track.pid})`,
        pid: track.pid,
        x: extended(f64(start, cells), head.to_ns),
        y: extended(y, y.at(-1)),
        most,
      };
    })
    .sort((a, b) => b.most - a.most);
  const several = new Set(found.map(({pid}) => pid)).size > 1;
  return found.map((counter) => ({
    ...counter,
    name: several ? `${counter.name}, ${counter.process}` : counter.name,
  }));
}

/** A chart of them, in the colours as they are now. */
function makeChart(element, series, place) {
  const axis = {
    stroke: color('--text-quiet'),
    grid: {stroke: color('--line-soft'), width: 1},
    ticks: {stroke: color('--line'), width: 1},
    font: '12px system-ui, sans-serif',
  };
  const data = uPlot.join(series.map(({x, y}) => [x, y]));
  for (const column of data.slice(1)) // each value holds until the next
    for (let i = 1; i < column.length; i++) column[i] ??= column[i - 1];
  /** What holds at the left edge counts too, where it has no point in view. */
  const range = (u, low, high) => {
    const at = Math.max(0, (u.series[0].idxs?.[0] ?? 0) - 1);
    const held = u.series.map((s, i) => (i > 0 && s.show ? (u.data[i][at] ?? 0) : 0));
    return [0, (Math.max(high ?? 0, ...held) || 1) * 1.05];
  };
  const seconds = (span) => (span >= 20e9 ? 0 : span >= 2e9 ? 1 : span >= 2e8 ? 2 : 4);
  const chart = new uPlot(
    {
      width: Math.max(300, element.clientWidth),
      height: HEIGHT,
      cursor: {drag: {x: true, y: false, setScale: false}},
      scales: {x: {time: false}, y: {range}},
      axes: [
        {
          ...axis,
          space: 80, // pixels that a label needs
          values: (u, ticks) =>
            ticks.map((t) => `${(t * 1e-9).toFixed(seconds(u.scales.x.max - u.scales.x.min))} s`),
        },
        {
          ...axis,
          size: 76,
          values: (u, ticks) => ticks.map(formatBytes),
          incrs: [...Array(45).keys()].map((k) => 2 ** k),
        },
      ],
      series: [
        {label: 'time', value: (u, t) => (t === null ? '-' : `${(t * 1e-9).toFixed(3)} s`)},
        ...series.map((s, i) => ({
          label: printable(s.name),
          stroke: color(`--series-${i}`),
          width: 1.5,
          points: {show: false},
          spanGaps: true,
          paths: uPlot.paths.stepped({align: 1}),
          value: (u, v) => (v === null ? '-' : formatBytes(v)),
        })),
      ],
      hooks: {
        setSelect: [
          (u) => {
            if (!(u.select.width > 0)) return;
            const at = (px) => Math.round(u.posToVal(px, 'x'));
            place.go({from: Math.max(0, at(u.select.left)), to: at(u.select.left + u.select.width)});
            u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
          },
        ],
      },
    },
    data,
    element,
  );
  chart.over.addEventListener('dblclick', () => place.go({from: undefined, to: undefined}));
  return chart;
}

/** The card with the chart; drawn anew when its width or the colours change. */
function chartCard(series, head, place) {
  const canvas = h('div', {class: 'chart'});
  const left = series.length - SERIES;
  const card = h(
    'div',
    {class: 'card'},
    h('h2', {}, 'Memory over the time'),
    canvas,
    h(
      'p',
      {class: 'quiet'},
      'Drag to zoom, double-click to see all; a click on a name hides its line.',
      left > 0 && ` ${left} smaller counters are only in the timeline.`,
    ),
  );
  let chart;
  let width = 0;
  const zoom = ({from, to}) => {
    const view = new View(head.from_ns, head.to_ns); // of a part that is too short uPlot finds no ticks
    view.set(from ?? view.low, to ?? view.high);
    chart?.setScale('x', {min: view.from, max: view.to});
  };
  const draw = () => {
    width = canvas.clientWidth;
    if (width === 0) return; // hidden
    chart?.destroy();
    chart = makeChart(canvas, series.slice(0, SERIES), place);
    zoom(place.state);
  };
  new ResizeObserver(() => canvas.clientWidth !== width && draw()).observe(canvas);
  document.addEventListener('themechange', draw);
  return {element: card, update: zoom};
}

/** @type {import('./tabs.js').Tab} */
export default {
  key: 'memory',
  title: 'Memory',
  sections: ['memory'],
  applies: (data) => !!data.report?.sections.memory && !isEmpty(data.report.sections.memory),
  async render(element, data, place) {
    const parts = [];
    if (data.has('timeline')) {
      const timeline = await data.timeline();
      const series = counters(timeline);
      if (series.length > 0) parts.push(chartCard(series, timeline.head, place));
    }
    parts.push(await findTree(data, 'memory'));
    parts.push(makeSection('memory', data.report.sections.memory, place, {title: false}));
    const shown = parts.filter(Boolean);
    const update = (state) => shown.forEach((part) => part.update(state));
    element.append(...shown.map((part) => part.element));
    update(place.state);
    return {update};
  },
};
