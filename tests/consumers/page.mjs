// SPDX-License-Identifier: BSD-2-Clause
// page.mjs PART MAKE_CAPTURE FOLDER [XSPTRACE]: the HTML page in chromium: no error, no request, and, by PART:
//   behaviour      with made-up data (user/page/web/test/fake.mjs) every tab, search, sorting, keys, links, both themes,
//                  hostile names
//   light, dark    axe-core on every tab
//   capture        the page that XSPTRACE writes of a capture: its figures are those of `analyze`, as JSON and as text
//   timeline, trees, frames   see page_canvas.mjs
import fs from 'node:fs';
import path from 'node:path';
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {frames, place, timeline, trees} from './page_canvas.mjs';
import {check, prepare, skip, tabsOf, withBrowser} from './page_open.mjs';
import {HOSTILE, fakeBlocks, fakeReport, fillPage} from '../../user/page/web/test/fake.mjs';
import {format} from '../../user/page/web/src/format.js';

const web = fileURLToPath(new URL('../../user/page/web', import.meta.url));
const [part, makeCapture, folder, xsptrace] = process.argv.slice(2);
const at = (name) => path.join(folder, name);
prepare(folder);

/** The page that the tool writes of a capture; undefined where it was built without. */
function realPage() {
  if (!xsptrace) return undefined;
  execFileSync(makeCapture, [at('page.xspt'), at('page.expected.json')], {stdio: 'inherit'});
  fs.rmSync(at('real.html'), {force: true});
  const made = spawnSync(xsptrace, ['export', at('page.xspt'), '-o', at('real.html')], {encoding: 'utf8'});
  return made.status === 0 ? fs.readFileSync(at('real.html'), 'utf8') : undefined;
}

/** The page without data: that of the tool, or a fresh one. */
function emptyPage(real) {
  const blocks = /(?:<script type="application\/x-xsptrace"[^>]*>[^<]*<\/script>\s*)+/;
  if (real) return real.replace(blocks, '<!--xsptrace-blocks-->\n');
  if (!fs.existsSync(path.join(web, 'node_modules'))) skip('this build is without the page, and "npm ci" was not done in user/page/web');
  execFileSync(process.execPath, [path.join(web, 'build.mjs'), at('empty.html')], {stdio: 'ignore'});
  return fs.readFileSync(at('empty.html'), 'utf8');
}

const real = realPage();
if (part === 'capture' && !real) skip('this build is without the page');
const empty = emptyPage(real);
const write = (name, blocks) => {
  fs.writeFileSync(at(name), fillPage(empty, blocks));
  return pathToFileURL(path.resolve(at(name))).href;
};
let open, problems; // of withBrowser()
const json = (value) => Buffer.from(JSON.stringify(value));
const current = (page) => page.$eval('[role=tab][aria-selected=true]', (tab) => tab.id.replace('tab-', ''));
const settled = (page, tab) => page.waitForSelector(`#panel-${tab}:not([hidden]) > *`);
/** Rows of a table as they are shown: texts by cell. */
const rowsOf = (page, id) => page.$$eval(`[id="table-${id}"] tbody tr:not(.space)`, (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
const OPERATIONS = 'operations.operations';
const ROWS = 10000;

async function behaviour() {
  const fake = write('fake.html', fakeBlocks({spans: 2000, lost: 7}));
  const many = fakeReport({rows: ROWS});
  const large = write('large.html', {page: fakeBlocks({spans: 0}).page, report: json(many)});
  const page = await open(fake);
  const tabs = await tabsOf(page);
  await check(`each tab opens by its key: ${tabs.join(', ')}`, async () => {
    for (const key of ['summary', 'operations', 'modules', 'memory', 'streams', 'figures', 'compare']) assert.ok(tabs.includes(key), key);
    for (const [i, tab] of tabs.entries()) {
      await page.keyboard.press(String((i + 1) % 10));
      await settled(page, tab);
      assert.equal(await current(page), tab);
      assert.equal(await page.locator('.message.bad').count(), 0, tab);
    }
    await page.locator('[role=tab][aria-selected=true]').focus();
    await page.keyboard.press('ArrowRight');
    assert.equal(await current(page), tabs[0], 'arrows go round');
  });

  await check('figures and tables are those of the report, a section that no tab knows too', async () => {
    const {sections, findings} = fakeReport({lost: 7}); // the tabs are all drawn by now
    const shown = (text) => text.replace(/[\u0000-\u001f\u202e]/g, '\ufffd');
    const figures = await page.$$eval('section.report dd[data-key]', (list) => list.map((dd) => [dd.closest('section').id, dd.dataset.key, dd.textContent].join(' ')));
    for (const [key, section] of Object.entries(sections)) {
      const known = Object.entries(section.values).filter(([, value]) => value !== null);
      const want = known.map(([name, value]) => `section-${key} ${name} ${format(value, section.about[name].unit)}`);
      assert.deepEqual(figures.filter((figure) => figure.startsWith(`section-${key} `)), want);
      for (const [name, table] of Object.entries(section.tables)) {
        if (name === 'use') continue; // drawn, no table
        const known = table.columns.filter((c) => table.rows.some((row) => row[c.key] !== null));
        const want = table.rows.slice(0, 20).map((row) => known.map((c) => shown(format(row[c.key], c.unit))));
        assert.deepEqual((await rowsOf(page, `${key}.${name}`)).slice(0, 20), want, `${key}.${name}`);
      }
    }
    const cards = await page.$$eval('#panel-summary article', (list) => list.map((card) => [card.querySelector('h3').textContent, card.querySelector('.share').textContent]));
    assert.deepEqual(cards, findings.map((f) => [shown(f.title), format(f.share, 'share')]));
    assert.match(await page.locator('header .chip.bad').getAttribute('title'), /lost entries: 7/);
    assert.equal(await page.locator('header .chip.bad').textContent(), 'events were lost');
    assert.equal(tabs[0], 'compare', 'a comparison opens on what it compares');
  });

  await check('the first tab has the account as one bar and its table, the busy thread as a strip, and what was recorded once', async () => {
    await page.goto(`${fake}#tab=summary`);
    const {tables} = fakeReport().sections.account;
    const heads = tables.places.rows.filter((row) => row.part === null);
    const large = heads.filter((row) => row.share >= 0.01);
    const shares = await page.$$eval('.account-bar i', (list) => list.map((i) => Number(i.style.getPropertyValue('--share'))));
    assert.deepEqual(shares, [...large.map((row) => row.share), 0.004]); // the small ones are one
    assert.ok(Math.abs(shares.reduce((a, b) => a + b, 0) - 1) < 1e-9);
    const rows = await page.$$eval('.account tbody tr', (list) => list.map((tr) => [...tr.cells].slice(1, 3).map((td) => td.textContent)));
    const shown = [...tables.places.rows.filter((row) => row.share >= 0.01), {each_ns: 0.004 * 97e6, share: 0.004}];
    assert.deepEqual(rows, shown.map((row) => [format(row.each_ns, 'ns'), format(row.share, 'share')]));
    const waits = await page.$$eval('.account-bar i', (list) => list.map((i) => i.classList.contains('waits')));
    assert.deepEqual(waits, [false, true, false, false, false, false]);
    const text = await page.textContent('#panel-summary');
    assert.match(text, /python3 train.py \(4711\)10\.0 s recorded · 2 busy threads of 12 · on a CPU 53\.0 %, ready 12\.0 %, waiting 35\.0 % · 100 steps of 97\.0 ms/);
    assert.equal(text.split('10.0 s').length, 3, 'the time of the recording once, and the end of the strip');
    await page.locator('.account a', {hasText: 'train.py:41'}).click();
    assert.equal(place(page).get('q'), 'train.py:41 backward');
    await page.goBack();
    const strip = page.locator('.strip-canvas');
    await strip.click({position: {x: (await strip.boundingBox()).width / 2, y: 10}});
    assert.equal(await current(page), 'timeline');
    assert.ok(Math.abs(Number(place(page).get('from')) - 4.5e9) < 5e7 && Math.abs(Number(place(page).get('to')) - 5.5e9) < 5e7, page.url());
  });

  await check('hostile names are texts, and run nothing', async () => {
    await page.goto(`${fake}#tab=operations`);
    const scripts = await page.$$eval('script', (list) => list.filter((s) => s.type !== 'application/x-xsptrace').length);
    assert.equal(scripts, 1);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator('main img, main svg[onload], main script').count(), 0);
    const text = await page.evaluate(() => document.body.innerText);
    assert.ok(text.includes(HOSTILE[0]) && !text.includes('\u202e'));
  });

  await check('sorting: by click, in the address, after a reload; the back button', async () => {
    await page.goto(`${fake}#tab=operations`);
    const head = (title) => page.locator(`[id="table-${OPERATIONS}"] th`, {hasText: title}).first();
    assert.equal(await head('self').getAttribute('aria-sort'), 'descending', 'as the report has it');
    await head('calls').locator('button').click();
    assert.equal(await head('calls').getAttribute('aria-sort'), 'descending');
    await page.waitForFunction(() => location.hash.includes('sort='));
    const want = fakeReport().sections.operations.tables.operations.rows.map((row) => row.calls).sort((a, b) => b - a).slice(0, 20);
    const calls = async () => (await rowsOf(page, OPERATIONS)).slice(0, 20).map((row) => Number(row[1].replace(',', '')));
    assert.deepEqual(await calls(), want);
    await page.reload();
    await settled(page, 'operations');
    assert.deepEqual(await calls(), want);
    await page.locator('#panel-operations .bars a').nth(2).click();
    assert.ok(place(page).get('sel'));
    await page.goBack();
    assert.equal(place(page).get('sel'), null);
  });

  await check('search: "/" goes there, tables and trees show what matches, Esc ends it', async () => {
    await page.goto(`${fake}#tab=operations`);
    await page.keyboard.press('/');
    await page.keyboard.type('CUDA');
    await page.waitForFunction(() => location.hash.includes('q=CUDA'));
    assert.deepEqual((await rowsOf(page, OPERATIONS)).map((row) => row[0]).sort(), ['cudaLaunchKernel', 'cudaStreamSynchronize']);
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !location.hash.includes('q='));
    assert.ok((await rowsOf(page, OPERATIONS)).length > 20);
    await page.goto(`${fake}#tab=memory&q=embedding`);
    await settled(page, 'memory');
    await page.waitForSelector('#panel-memory [role=treegrid] tbody tr[aria-level]');
    const leaves = await page.$$eval('#panel-memory [role=treegrid] tr[aria-level]', (rows) => rows.filter((row, i) => !(rows[i + 1]?.ariaLevel > row.ariaLevel)).map((row) => row.cells[0].title));
    assert.ok(leaves.length > 0 && leaves.every((name) => name.includes('embedding')), leaves.join());
  });

  await check('a tree opens and closes by keys', async () => {
    await page.goto(`${fake}#tab=memory`);
    const rows = page.locator('#panel-memory [role=treegrid] tr[aria-level]');
    await page.waitForFunction(() => document.querySelectorAll('#panel-memory [role=treegrid] tr[aria-level]').length > 5);
    await rows.first().focus();
    await page.keyboard.press('ArrowLeft');
    assert.equal(await rows.first().getAttribute('aria-expanded'), 'false');
    const closed = await rows.count();
    await page.keyboard.press('Enter');
    assert.ok((await rows.count()) > closed);
    await page.keyboard.press('ArrowDown');
    assert.equal(await page.evaluate(() => document.activeElement.ariaLevel), '2');
  });

  await check('a finding leads to its place in the timeline and among the operations, and has a link of its own', async () => {
    await page.goto(`${fake}#tab=summary`);
    assert.match(await page.locator('article h3').first().textContent(), /DataLoader/);
    const link = new URLSearchParams((await page.locator('article a', {hasText: 'show in timeline'}).first().getAttribute('href')).slice(1));
    const [finding] = fakeReport().findings;
    assert.equal(link.get('tab'), 'timeline');
    assert.ok(Number(link.get('from')) < finding.from_ns && Number(link.get('to')) > finding.to_ns);
    // the lock is waited for at a place that has the text of an operation, too: only the DataLoader is one
    const among = page.locator('article a', {hasText: 'show in operations'});
    assert.equal(await among.count(), 1);
    await among.click();
    await settled(page, 'operations');
    assert.deepEqual((await rowsOf(page, OPERATIONS)).map((row) => row[0]), [finding.subject]);
  });

  await check('the tree of the GPU has its rows as soon as the tab opens', async () => {
    const fresh = await open(`${fake}#tab=streams`);
    assert.ok(await fresh.locator('#panel-streams [role=treegrid] tbody tr:not(.space)').count() > 0);
    await fresh.context().close();
  });

  await check('on paper a table stands with all its rows, uncut, and all is light; behind it all is as it was', async () => {
    const fresh = await open(`${fake}#tab=operations`, {scheme: 'dark'});
    const fire = (type) => fresh.evaluate((name) => { window.dispatchEvent(new Event(name)); }, type);
    const looks = () => fresh.evaluate((id) => {
      const box = document.getElementById(id).querySelector('.table-box');
      return {
        rows: box.querySelectorAll('tbody tr:not(.space)').length,
        cut: box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1,
        name: box.querySelector('tbody tr:not(.space) td.text').clientWidth >= 80,
        background: getComputedStyle(document.documentElement).backgroundColor,
      };
    }, `table-${OPERATIONS}`);
    const before = await looks();
    assert.ok(before.cut, 'it scrolls');
    await fire('beforeprint');
    await fresh.emulateMedia({media: 'print'});
    await fresh.setViewportSize({width: 718, height: 1000}); // A4 less its margins
    assert.deepEqual(await looks(), {rows: 60, cut: false, name: true, background: 'rgb(255, 255, 255)'});
    await fresh.emulateMedia({media: 'screen'});
    await fresh.setViewportSize({width: 1280, height: 800});
    await fire('afterprint');
    assert.deepEqual(await looks(), before);
    await fresh.context().close();
  });

  await check('light and dark: as the system has it, or as chosen, which stays', async () => {
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    assert.equal(await background(), 'rgb(255, 255, 255)');
    await page.emulateMedia({colorScheme: 'dark'});
    assert.equal(await background(), 'rgb(13, 17, 23)');
    await page.getByRole('button', {name: 'dark colours'}).click();
    assert.equal(await background(), 'rgb(255, 255, 255)');
    await page.reload();
    assert.equal(await background(), 'rgb(255, 255, 255)');
    await page.evaluate(() => localStorage.clear());
    await page.emulateMedia({colorScheme: 'light'});
  });

  await check('"?" says the keys; Esc closes it', async () => {
    await page.keyboard.press('?');
    assert.ok((await page.locator('dialog kbd').count()) > 3);
    await page.keyboard.press('1');
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog', {state: 'detached'});
    assert.equal(await current(page), 'operations', 'keys of the page sleep meanwhile');
  });

  await check(`${ROWS} rows: sorted at once, and only those in sight are made`, async () => {
    await page.goto(`${large}#tab=operations`);
    await settled(page, 'operations');
    const made = () => page.locator(`[id="table-${OPERATIONS}"] tbody tr`).count();
    assert.ok((await made()) < 200);
    const ms = await page.evaluate(() => {
      const start = performance.now();
      [...document.querySelectorAll('th button')].find((b) => b.textContent === 'name').click();
      document.body.offsetHeight;
      return performance.now() - start;
    });
    assert.ok(ms < 2000, `${ms} ms`);
    await page.evaluate((id) => document.getElementById(`table-${id}`).querySelector('.table-box').scrollTo(0, 1e9), OPERATIONS);
    await page.waitForFunction((n) => document.querySelector(`tr[aria-rowindex="${n + 1}"]`), ROWS);
    assert.ok((await made()) < 200);
    assert.equal((await rowsOf(page, OPERATIONS)).at(-1)[0], many.sections.operations.tables.operations.rows.map((row) => row.name).sort(new Intl.Collator('en', {numeric: true}).compare).at(-1));
  });

  await check('a block that is damaged is said to be, and the rest is shown', async () => {
    const {trees, ...others} = fakeBlocks({spans: 100});
    await page.goto(write('damaged.html', {...others, trees: trees.subarray(0, 100)}));
    await page.goto(`${page.url()}#tab=memory`);
    await page.waitForSelector('#panel-memory .message.bad');
    await page.keyboard.press(String(tabs.indexOf('operations') + 1));
    await page.waitForSelector(`[id="table-${OPERATIONS}"]`);
    assert.equal(problems.splice(0).length, 1, 'told on the console, too');
  });

  await check('a capture with nothing in it, and one without its report, have a page', async () => {
    const nothing = {format: 'xsptrace report', version: 1, findings: [], sections: {}};
    for (const blocks of [{report: json(nothing)}, {}]) {
      const bare = write('bare.html', {page: fakeBlocks({spans: 0}).page, ...blocks});
      await page.goto('about:blank');
      await page.goto(bare);
      for (const tab of await tabsOf(page)) {
        await page.goto(`${bare}#tab=${tab}`);
        await settled(page, tab);
        assert.equal(await page.locator('.message.bad').count(), 0);
      }
    }
  });
}

async function capture() {
  await check('a page of a capture has the figures of analyze, as JSON and as text', async () => {
    const analyze = (...args) => execFileSync(xsptrace, ['analyze', at('page.xspt'), ...args], {encoding: 'utf8'});
    const {rows, columns} = JSON.parse(analyze('--format', 'json', '--rows', 'all')).sections.operations.tables.operations;
    rows.sort((a, b) => b.self_ns - a.self_ns);
    const text = analyze('--full', '--rows', 'all');
    const url = pathToFileURL(path.resolve(at('real.html'))).href;
    const page = await open(`${url}#tab=operations`);
    await settled(page, 'operations');
    const shown = (await rowsOf(page, OPERATIONS)).slice(0, 20);
    assert.ok(shown.length > 0);
    const known = columns.filter((c) => rows.some((row) => row[c.key] !== null));
    assert.deepEqual(shown.map((row) => row.slice(1)), rows.slice(0, shown.length).map((row) => known.slice(1).map((c) => format(row[c.key], c.unit))));
    for (const cell of shown.flatMap((row) => row.slice(1))) assert.ok(text.includes(cell), cell);
    for (const tab of await tabsOf(page)) {
      await page.goto(`${url}#tab=${tab}`);
      await settled(page, tab);
      assert.equal(await page.locator('.message.bad').count(), 0, tab);
    }
  });
}

/** Colours differ between the themes, and nothing else does: dark is looked at for these alone. */
async function accessible(scheme) {
  const some = write('some.html', fakeBlocks({rows: 12, spans: 2000, lost: 7}));
  const page = await open(some, {scheme, axe: true});
  const how = {resultTypes: ['violations'], ...(scheme === 'dark' && {runOnly: ['color-contrast', 'link-in-text-block']})};
  for (const tab of await tabsOf(page)) {
    await check(`axe-core finds no fault but minor ones: ${tab}, ${scheme}`, async () => {
      await page.goto(`${some}#tab=${tab}`);
      await settled(page, tab);
      await page.screenshot({path: at(`page-${tab}-${scheme}.png`)});
      const faults = await page.evaluate(async (options) => {
        // rows of a table are all alike
        const {violations} = await window.axe.run({include: [document], exclude: ['tbody tr:nth-child(n + 6)']}, options);
        return violations.filter((v) => v.impact !== 'minor')
          .map((v) => `${v.id}: ${v.nodes.length} × ${v.nodes[0].html.slice(0, 160)} ${v.nodes[0].failureSummary}`);
      }, how);
      assert.deepEqual(faults, []);
    });
  }
}

const parts = {behaviour, capture, light: () => accessible('light'), dark: () => accessible('dark'), timeline, trees, frames};

await withBrowser((opener, faults) => {
  [open, problems] = [opener, faults];
  return parts[part]({check, open, write, at, empty});
});
process.exit(0);
