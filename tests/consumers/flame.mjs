// SPDX-License-Identifier: BSD-2-Clause
// flame.mjs FILE.svg FOLDER: opens the flame graph from file:// in chromium, clicks, searches,
// resets; returns (prints) what it saw and leaves screenshots in FOLDER.
import path from 'node:path';
import {pathToFileURL} from 'node:url';
import {launch} from './browser.mjs';

const visible = () => Array.from(document.querySelectorAll('#frames g'))
  .filter((g) => g.style.display !== 'none')
  .map((g) => ({name: g.querySelector('title').textContent.split('\n')[0],
    width: +g.querySelector('rect').getAttribute('width'), depth: +g.dataset.d, total: +g.dataset.t}));

// Text that is wider than its box, in frames that are shown.
const overflowing = () => Array.from(document.querySelectorAll('#frames g'))
  .filter((g) => g.style.display !== 'none' && g.querySelector('text').textContent !== '')
  .filter((g) => g.querySelector('text').getComputedTextLength() > +g.querySelector('rect').getAttribute('width') - 3)
  .map((g) => g.querySelector('text').textContent);

export async function tryFlame(file, folder, {clickOn, searchFor}) {
  const browser = await launch();
  try {
    const page = await browser.newPage({viewport: {width: 1400, height: 900}});
    const problems = [], requests = [];
    page.on('pageerror', (e) => problems.push(e.message));
    page.on('console', (m) => { if (m.type() === 'error') problems.push(m.text()); });
    page.on('request', (r) => requests.push(r.url()));
    await page.goto(pathToFileURL(path.resolve(file)).href);
    const shot = (name) => page.screenshot({path: path.join(folder, name)});
    const result = {problems, full: await page.evaluate(visible), overflow: await page.evaluate(overflowing)};
    await shot('flame-full.png');

    const target = page.locator(`#frames g:has(title:text-is("${clickOn}"))`).first();
    const frame = clickOn ? await page.evaluateHandle((name) => Array.from(document.querySelectorAll('#frames g'))
      .find((g) => g.querySelector('title').textContent.split('\n')[0] === name), clickOn) : target;
    await frame.hover();
    result.detail = await page.locator('#detail').textContent();
    await frame.click();
    result.zoomed = await page.evaluate(visible);
    result.overflowZoomed = await page.evaluate(overflowing);
    await page.mouse.move(700, 60);
    await shot('flame-zoomed.png');
    await page.click('#reset');
    result.reset = await page.evaluate(visible);

    await page.keyboard.press('Control+f');
    await page.keyboard.type(searchFor);
    result.matched = await page.locator('#matched').textContent();
    result.matches = await page.evaluate(() => Array.from(document.querySelectorAll('#frames g.match'))
      .map((g) => g.querySelector('title').textContent.split('\n')[0]));
    await shot('flame-search.png');
    await page.keyboard.press('Escape');
    result.matchesAfterEscape = await page.locator('#frames g.match').count();

    // Tab comes to one frame behind the controls; arrow keys go on, Enter zooms, Escape goes back.
    await page.locator('#reset').focus();
    await page.evaluate(() => document.querySelector('#frames g[tabindex="0"]').focus());
    const focused = () => page.evaluate(() => ({name: document.activeElement.getAttribute('aria-label'),
      depth: +document.activeElement.dataset.d, detail: document.querySelector('#detail').textContent}));
    result.keys = [await focused()];
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp']) {
      await page.keyboard.press(key);
      result.keys.push(await focused());
    }
    result.tabbable = await page.locator('#frames g[tabindex="0"]').count();
    await page.keyboard.press('Enter');
    result.zoomedByKey = (await page.evaluate(visible)).filter((f) => f.depth >= 1).length;
    await page.keyboard.press('Escape');
    await page.emulateMedia({colorScheme: 'dark'});
    result.dark = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    await shot('flame-dark.png');
    result.foreign = requests.filter((u) => !u.startsWith('file:'));
    return result;
  } finally {
    await browser.close();
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [file, folder, clickOn = 'main', searchFor = 'mm'] = process.argv.slice(2);
  const r = await tryFlame(file, folder, {clickOn, searchFor});
  console.log(JSON.stringify({...r, full: r.full.length, zoomed: r.zoomed.length, reset: r.reset.length,
    matches: r.matches.length}, null, 1));
}
