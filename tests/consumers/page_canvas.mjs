// SPDX-License-Identifier: BSD-2-Clause
// page_canvas.mjs: parts of page.mjs: what the page draws itself. The timeline, the trees' flame graph and sunburst: zoom,
// pan, jump, search, selection, keys, both themes, finer spans of a server; and frame times with 1,000,000 spans.
import http from 'node:http';
import zlib from 'node:zlib';
import assert from 'node:assert/strict';
import {eventually} from './page_open.mjs';
import {HOSTILE, fakeBlocks, fillPage} from '../../user/page/web/test/fake.mjs';

const near = (value, wanted, by) => assert.ok(Math.abs(value - wanted) <= by, `${value}, wanted ${wanted}`);
/** The part of the time that the address comes to say: from, to (all of it where it says none). */
const range = (page, from, to, by = 3) => eventually(() => {
  near(Number(place(page).get('from') ?? 0), from, by);
  near(Number(place(page).get('to') ?? 10e9), to, by);
});
const text = (page, selector) => page.locator(selector).first().textContent();
const inView = (page, length) => eventually(async () => assert.ok((await text(page, '.tl-status')).startsWith(`${length} in view`)));
/** What is shown comes to be so: a key or a click is there at once, what the page draws of it a moment later. */
const shows = (fn, wanted) => eventually(async () => {
  const value = await fn();
  if (wanted instanceof RegExp) assert.match(value, wanted);
  else assert.equal(value, wanted);
  return value;
});
/** Another address of the same page, once it is what the page shows. */
const visit = async (page, url, length) => {
  await page.goto(url);
  await inView(page, length);
};
const rows = (page) => page.locator('.tl-rows');
const box = (page, selector) => page.locator(selector).first().boundingBox();
/** How many colours there are: a canvas on which nothing was drawn has one. */
const colours = (page, selector) => page.$eval(selector, (canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
});
/** What the address says. */
export const place = (page) => new URLSearchParams(new URL(page.url()).hash.slice(1));
/** Nothing is moved softly: what a key does is there at once. */
const still = (page) => page.emulateMedia({reducedMotion: 'reduce'});

/** @param {any} run what page.mjs has: {check, open, write, at, empty} */
export async function timeline({check, open, write, at, empty}) {
  const fake = write('timeline.html', fakeBlocks({spans: 20000}));
  const page = await open(`${fake}#tab=timeline`);
  await still(page);
  await check('the timeline zooms by keys, wheel, buttons and double click, and goes back to all of it', async () => {
    await rows(page).focus();
    await page.keyboard.press('w');
    const third = 10e9 / 3;
    await range(page, third / 2, 10e9 - third / 2);
    const {x, y, width} = await box(page, '.tl-rows');
    await page.mouse.move(x + width / 4, y + 60);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -150);
    await page.keyboard.up('Control');
    const [under, span] = [third, 2 * third * Math.exp(-0.5)]; // what is under the pointer stays there
    await range(page, under - span / 4, under + span * 0.75, span / 200);
    await page.getByRole('button', {name: 'closer'}).hover();
    const middle = under + span / 4;
    await page.getByRole('button', {name: 'closer'}).click();
    await range(page, middle - span / 4, middle + span / 4, span / 200);
    await rows(page).press('Home');
    await range(page, 0, 10e9);
    assert.equal(place(page).get('from'), null);
  });

  await check('it pans by keys, drag and wheel, and stops at the ends', async () => {
    await visit(page, `${fake}#tab=timeline&from=4000000000&to=5000000000`, '1.00 s');
    await rows(page).press('d');
    await range(page, 4.15e9, 5.15e9);
    await rows(page).press('ArrowLeft');
    await range(page, 4e9, 5e9);
    const {x, y, width} = await box(page, '.tl-rows');
    await page.mouse.move(x + width / 2, y + 50);
    await page.mouse.down();
    await page.mouse.move(x + width / 4, y + 50, {steps: 4});
    await page.mouse.up();
    await range(page, 4.25e9, 5.25e9, 3e6);
    await page.keyboard.down('Shift');
    await page.mouse.wheel(0, width / 2);
    await page.keyboard.up('Shift');
    await range(page, 4.75e9, 5.75e9, 3e6);
    await page.goto(`${fake}#tab=timeline&from=100000000&to=1100000000`);
    await range(page, 1e8, 1.1e9);
    await rows(page).press('a');
    await range(page, 0, 1e9);
  });

  await check('a place that another tab leads to is shown, and the back button comes back', async () => {
    await visit(page, `${fake}#tab=timeline`, '10.0 s');
    await page.evaluate(() => { location.hash = '#tab=timeline&from=1000000000&to=1400000000'; });
    await eventually(async () => assert.match(await text(page, '.tl-status'), /^400 ms in view/));
    await page.goBack();
    await eventually(async () => assert.match(await text(page, '.tl-status'), /^10.0 s in view/));
  });

  await check('Enter selects a span, arrows go on, the panel and the live region tell of it, a link keeps it', async () => {
    await visit(page, `${fake}#tab=timeline&from=1000000000&to=1200000000`, '200 ms');
    await rows(page).focus();
    await page.keyboard.press('Enter');
    const details = () => text(page, '.tl-details');
    const first = await shows(details, /Duration.*Start.*Thread/s);
    await page.keyboard.press('ArrowRight');
    await eventually(async () => assert.notEqual(await details(), first));
    await page.keyboard.press('ArrowLeft');
    await shows(details, first);
    await page.keyboard.press('ArrowDown');
    const below = await shows(details, /Depth2/);
    assert.ok((await text(page, '.tl-name')).length > 0);
    await eventually(async () => assert.ok((await text(page, '.hidden-text')).includes(await text(page, '.tl-name'))));
    await eventually(() => assert.match(place(page).get('sel'), /^span:\d+\.1@\d+$/));
    const other = await open(page.url());
    await eventually(async () => assert.equal(await text(other, '.tl-details'), below));
    await other.close();
    await page.keyboard.press('f');
    await eventually(() => assert.ok(Number(place(page).get('to')) - Number(place(page).get('from')) < 1e8));
    await page.keyboard.press('Escape');
    await shows(details, /Click a span/);
  });

  await check('a click selects what is there, and a tooltip tells of it before', async () => {
    await visit(page, `${fake}#tab=timeline&from=1000000000&to=1050000000`, '50.0 ms');
    const {x, y} = await box(page, '.tl-rows');
    const label = await box(page, '.tl-block');
    const lane = label.y - y + 4 + 9; // the margin, and half of the outermost spans
    await page.mouse.move(x + 300, y + lane);
    await shows(() => text(page, '.tip'), /(ns|us|ms|s)step/);
    await page.mouse.click(x + 300, y + lane);
    await shows(() => text(page, '.tl-name'), 'step');
    const args = () => page.$$eval('.tl-argument', (list) => list.map((e) => e.textContent));
    await eventually(async () => assert.deepEqual(await args(), ['Input Dims', '[[3,4],[],[4,5]]', 'Call stack', `train.py(12): main\n${HOSTILE[0]}`]));
    await page.locator('.tl-facts dt', {hasText: 'Launches'}).locator('+ dd button').first().click();
    await shows(() => text(page, '.tl-facts'), /Stream.*Launched bypython3 · step/);
    await page.locator('.tl-facts dt', {hasText: 'Launched by'}).locator('+ dd button').first().click();
    await shows(() => text(page, '.tl-facts'), /Thread.*Launches/);
    await page.keyboard.press('Escape');
  });

  await check('an area tells what lies in it; its parts add up to no more than there is', async () => {
    await visit(page, `${fake}#tab=timeline&from=0&to=1000000000`, '1.00 s');
    const {x, y, width} = await box(page, '.tl-rows');
    await page.keyboard.down('Shift');
    await page.mouse.move(x + width / 4, y + 30);
    await page.mouse.down();
    await page.mouse.move(x + width / 2, y + 90, {steps: 3});
    await page.mouse.up();
    await page.keyboard.up('Shift');
    await shows(() => text(page, '.tl-times caption'), /selected area: 250 ms, 4 rows/);
    await eventually(async () => {
      const shares = await page.$$eval('.tl-times tbody tr', (list) => list.map((tr) => parseFloat(tr.cells[1].textContent)));
      assert.ok(shares.length > 2 && Math.abs(shares.reduce((a, b) => a + b, 0) - 100) < 1, `${shares}`);
    });
    await page.keyboard.press('Escape');
    await shows(() => text(page, '.tl-times caption'), /in view/);
  });

  await check('two fingers zoom: what is below each of them stays there', async () => {
    await visit(page, `${fake}#tab=timeline&from=0&to=1000000000`, '1.00 s');
    const {x, y, width} = await box(page, '.tl-rows');
    const cdp = await page.context().newCDPSession(page);
    const fingers = (type, ...shares) => cdp.send('Input.dispatchTouchEvent', {type, touchPoints: shares.map((share, id) => ({x: x + share * width, y: y + 40, id}))});
    await fingers('touchStart', 3 / 8);
    await fingers('touchStart', 3 / 8, 5 / 8);
    await fingers('touchMove', 1 / 4, 3 / 4);
    await fingers('touchEnd');
    await inView(page, '500 ms');
    await range(page, 25e7, 75e7, 5e6);
  });

  await check('search finds all of a name, next and previous go round them', async () => {
    await page.goto(`${fake}#tab=timeline&q=cudaStreamSynchronize`);
    const all = () => text(page, '.tl-matches span');
    await page.waitForFunction(() => /^[\d,]+$/.test(document.querySelector('.tl-matches span').textContent));
    const count = await all();
    await rows(page).focus();
    await page.keyboard.press('n');
    await shows(all, `1/${count}`);
    await shows(() => text(page, '.tl-name'), 'cudaStreamSynchronize');
    await page.keyboard.press('n');
    await shows(all, `2/${count}`);
    await page.keyboard.press('N');
    await page.keyboard.press('N');
    await shows(all, `${count}/${count}`);
    await page.keyboard.press('Enter');
    await shows(all, `1/${count}`);
    await page.keyboard.press('/');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('train.py(12)'); // in the arguments of spans
    await page.keyboard.press('Enter');
    await shows(all, /^1\/[\d,]+$/);
    await shows(() => text(page, '.tl-facts'), /train\.py\(12\): main/);
    await page.keyboard.press('/');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('no such name');
    await page.waitForFunction(() => document.querySelector('.tl-matches').textContent.includes('no match'));
    await page.keyboard.press('Escape');
  });

  await check('a click on the tab gives the timeline its keys; a pinned thread stays at the top; states have a legend', async () => {
    await page.goto(`${fake}#tab=summary`);
    await page.locator('#tab-timeline').click();
    await inView(page, '10.0 s');
    await page.keyboard.press('w');
    await inView(page, '6.67 s');
    await page.keyboard.press('Home');
    await inView(page, '10.0 s');
    const pinned = () => page.$$eval('.tl-pinned .tl-title', (list) => list.map((e) => e.textContent));
    await page.getByRole('button', {name: 'pin autograd', exact: true}).click();
    await eventually(async () => assert.deepEqual(await pinned(), ['autograd · python3']));
    await page.getByRole('button', {name: 'unpin autograd · python3', exact: true}).click();
    await eventually(async () => assert.deepEqual(await pinned(), []));
    assert.deepEqual(await page.$$eval('.toolbar .legend > span', (list) => list.map((e) => e.textContent)), ['running', 'ready', 'lock']);
  });

  await check('processes and threads fold, by keys too', async () => {
    await visit(page, `${fake}#tab=timeline`, '10.0 s');
    const height = () => page.$eval('.tl-content', (e) => e.clientHeight);
    const open_ = await height();
    await page.locator('button.tl-block').first().focus();
    await page.keyboard.press('Enter');
    await eventually(async () => assert.ok((await height()) < open_));
    await shows(() => page.evaluate(() => document.activeElement.getAttribute('aria-expanded')), 'false'); // the focus stays
    await page.getByRole('button', {name: 'fold all processes', exact: true}).click();
    await shows(() => page.locator('.tl-label').count(), 1);
    await page.getByRole('button', {name: 'unfold everything'}).click();
    await shows(height, open_);
  });

  await check('a page that is served gets finer spans of what is shown', async () => {
    const blocks = fakeBlocks({spans: 20000});
    const fromServer = {...JSON.parse(blocks.page), server: true};
    const asked = [];
    const html = fillPage(empty, {...blocks, page: Buffer.from(JSON.stringify(fromServer)), timeline: withoutFinest(blocks.timeline)});
    const server = http.createServer((request, response) => {
      if (!request.url.includes('/timeline?')) return response.writeHead(200, {'content-type': 'text/html'}).end(html);
      asked.push(new URL(request.url, 'http://x').searchParams);
      return response.writeHead(200, {'content-encoding': 'gzip'}).end(zlib.gzipSync(blocks.timeline));
    });
    await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
    const served = await open(`http://127.0.0.1:${server.address().port}/token/#tab=timeline`);
    await served.waitForSelector('.tl-times tbody tr'); // it rests
    assert.equal(asked.length, 0, 'what a pixel hides is not asked for');
    await served.goto(`${served.url().split('#')[0]}#tab=timeline&from=1000000000&to=1000100000`);
    await inView(served, '100 us');
    await served.waitForFunction(() => !document.querySelector('.tl-status').textContent.includes('merged'));
    await eventually(() => assert.ok(asked.length >= 1));
    assert.ok(asked.every((p) => Number(p.get('from')) <= 1000000000 && Number(p.get('to')) >= 1000100000));
    await served.close();
    server.close();
  });
  await themes({check, open, at}, 'timeline', `${fake}#tab=timeline&from=1000000000&to=1300000000`, '.tl-rows');
}

export async function trees({check, open, write, at}) {
  const fake = write('trees.html', fakeBlocks({spans: 100}));
  const page = await open(`${fake}#tab=flame`);
  await still(page);
  await check('the flame graph zooms by click and by keys, with a path back, and its root is at the other side as an icicle', async () => {
    await page.goto(`${fake}#tab=flame`);
    await page.waitForSelector('#panel-flame .tree-path button');
    const canvas = page.locator('#panel-flame canvas');
    await canvas.focus();
    const path_ = () => page.locator('#panel-flame .tree-path button').count();
    const line = () => text(page, '#panel-flame .tree-line');
    await shows(line, /^[\d.]+ (ms|s).*100.0 %all/);
    let reached = await line();
    for (const key of ['ArrowUp', 'ArrowUp', 'ArrowUp']) {
      const before = reached;
      await page.keyboard.press(key);
      reached = await eventually(async () => {
        const now = await line();
        assert.notEqual(now, before);
        return now;
      });
    }
    await page.keyboard.press('Enter');
    await shows(path_, 4);
    await shows(() => place(page).get('sel') ?? '', /^wall:\d+$/);
    await shows(line, reached);
    await page.keyboard.press('Escape');
    await shows(path_, 3);
    await page.goBack();
    await shows(path_, 4);
    await page.locator('#panel-flame .tree-path button').first().click();
    await shows(path_, 1);
    const {x, y, width, height} = await canvas.boundingBox();
    await page.mouse.click(x + width / 3, y + height - 30);
    await shows(path_, 2);
    await page.getByRole('button', {name: 'Icicle'}).click();
    await page.keyboard.press('Home');
    await page.locator('#panel-flame .tree-path button').first().click();
    await shows(path_, 1);
    await page.mouse.click(x + width / 3, y + 28);
    await shows(path_, 2);
    await page.goto(`${fake}#tab=flame&sel=samples:0`);
    await page.waitForFunction(() => document.querySelector('#panel-flame select').value === 'samples');
  });

  await check('a sandwich has the callers of a frame above and its callees below; Esc leaves it', async () => {
    const {names, trees: [{key, name, self}]} = JSON.parse(fakeBlocks({spans: 100}).trees);
    const wanted = name.findIndex((number, i) => i > 2 && self[i] > 0 && names[number].startsWith('aten::'));
    await page.goto(`${fake}#tab=flame&sel=${key}:${wanted}`);
    await shows(() => text(page, '#panel-flame .tree-line'), new RegExp(`${names[name[wanted]]} `));
    const canvas = page.locator('#panel-flame canvas');
    await canvas.focus();
    await canvas.press('s');
    await shows(() => place(page).get('sel') ?? '', `${key}~${names[name[wanted]]}`);
    await shows(() => text(page, '#panel-flame .tree-line'), new RegExp(`100.0 %${names[name[wanted]]}`));
    assert.equal(await page.getByRole('button', {name: 'Sandwich'}).getAttribute('aria-pressed'), 'true');
    await eventually(async () => assert.ok((await colours(page, '#panel-flame canvas')) > 5));
    await canvas.press('Escape');
    await shows(() => place(page).get('sel') ?? '', '');
  });

  await check('search in a tree tells its share', async () => {
    await page.goto(`${fake}#tab=flame&q=aten`);
    await page.waitForFunction(() => /^[\d.]+ %( to [\d.]+ %)? in [\d,]+ nodes$/.test(document.querySelector('#panel-flame .tree-matched').textContent));
    await page.goto(`${fake}#tab=flame`);
  });

  await check('the sunburst zooms by click, keys and its table', async () => {
    await page.goto(`${fake}#tab=sunburst`);
    await page.waitForSelector('#panel-sunburst .tree-path button');
    const path_ = () => page.locator('#panel-sunburst .tree-path button').count();
    const canvas = page.locator('#panel-sunburst canvas');
    await shows(path_, 6); // it begins where the tree branches
    await page.locator('#panel-sunburst .toolbar button', {hasText: 'All'}).first().click();
    await shows(path_, 1);
    const {x, y, width, height} = await canvas.boundingBox();
    const ring = (Math.min(width, height) / 2 - 8) / 7.25;
    await page.mouse.click(x + width / 2 + ring * 1.7, y + height / 2);
    await shows(path_, 2);
    await page.mouse.click(x + width / 2, y + height / 2); // the middle leads back
    await shows(path_, 1);
    await canvas.focus();
    await page.keyboard.press('Home');
    await page.locator('#panel-sunburst .tree-side button').first().click();
    await shows(path_, 2);
    await canvas.press('Escape');
    await shows(path_, 1);
  });
  for (const tab of ['flame', 'sunburst']) await themes({check, open, at}, tab, `${fake}#tab=${tab}`, `#panel-${tab} canvas`);
}

async function themes({check, open, at}, name, url, canvas) {
  for (const scheme of ['light', 'dark']) {
    await check(`${name}: drawn in ${scheme} colours, and again when they change`, async () => {
      const page = await open(url, {scheme});
      const drawn = () => eventually(async () => assert.ok((await colours(page, canvas)) > 20));
      await drawn();
      await page.screenshot({path: at(`${name}-${scheme}.png`)});
      await page.getByRole('button', {name: 'dark colours'}).click();
      await drawn();
      await page.context().close();
    });
  }
}

/** So many frames, in each of which the wheel is turned a little: what they take, shortest first. */
const turn = (page, count) => page.$eval('.tl-rows', (canvas, wanted) => new Promise((done) => {
  const out = [];
  const panned = location.hash.includes('from='); // all of the time cannot be: it is zoomed to and fro
  let last;
  const step = (now) => {
    if (last !== undefined) out.push(now - last);
    last = now;
    if (out.length === wanted) return done(out.sort((a, b) => a - b));
    const how = panned ? {deltaX: 7} : {ctrlKey: true, deltaY: out.length % 2 ? 2 : -2};
    canvas.dispatchEvent(new WheelEvent('wheel', {clientX: 700, clientY: 400, bubbles: true, cancelable: true, ...how}));
    return requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}), count);

export async function frames({check, open, write}) {
  const url = write('large.html', fakeBlocks({spans: 1e6, threads: 66}));
  const page = await open(`${url}#tab=timeline`);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable', {timeDomain: 'threadTicks'});
  /** ms of its own that the page's thread has had: what others on the machine take is not in it */
  const cpu = async () => {
    const {metrics} = await cdp.send('Performance.getMetrics');
    return 1000 * metrics.find(({name}) => name === 'TaskDuration').value;
  };
  for (const [what, hash] of [['10.0 s', ''], ['100 ms', '&from=1000000000&to=1100000000'], ['1.00 ms', '&from=1002000000&to=1003000000']]) {
    await check(`1,000,000 spans in 200 lanes: frames while ${what} are moved`, async () => {
      await page.goto(`${url}#tab=timeline${hash}`);
      await inView(page, what);
      const [count, before] = [60, await cpu()];
      const each = await turn(page, count);
      const own = ((await cpu()) - before) / count;
      const of = (share) => each[Math.floor(each.length * share)].toFixed(1);
      console.log(`     frames of ${of(0.5)} ms (median), ${of(0.95)} ms (95 %), ${of(0.99)} ms (longest); ${own.toFixed(1)} ms of CPU each`);
      assert.ok(own < 200, 'far beyond what it should take');
    });
  }
}

/** The block as it is where there were too many spans: the finest level is left out. */
function withoutFinest(bytes) {
  const length = bytes.readUInt32LE(4);
  const head = JSON.parse(bytes.subarray(8, 8 + length));
  for (const track of head.tracks) if (track.kind !== 'counter') for (const lane of track.lanes) if (lane.levels[1]?.resolution_ns < 100000) lane.levels.shift();
  const json = Buffer.alloc(length, ' ');
  json.write(JSON.stringify(head)); // shorter than it was
  return Buffer.concat([bytes.subarray(0, 8), json, bytes.subarray(8 + length)]);
}
