// SPDX-License-Identifier: BSD-2-Clause
// page_tabs.mjs PAGE…: each tab of pages that were written of captures, in both themes, at three sizes, one of them a phone's:
// nothing fails, and nothing sticks out of the window. The folder XSPTRACE_LOOKS, if that is set, gets a picture of each.
// Prints a line "tabs PAGE: NAME, …" for each page.
import path from 'node:path';
import assert from 'node:assert/strict';
import {pathToFileURL} from 'node:url';
import {check, openIn, prepare, tabsOf, withBrowser} from './page_open.mjs';

const pages = process.argv.slice(2);
const looks = process.env.XSPTRACE_LOOKS;
const LOOKS = [['light', 1280, 800], ['dark', 800, 600], ['light', 390, 844]];
prepare(looks ?? '.');

/** What a tab draws it has drawn, or failed at, by then. */
const drawn = (page) => page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));

await withBrowser(async (open) => {
  let page;
  for (const file of pages) {
    const name = path.basename(file, '.html'), url = pathToFileURL(path.resolve(file)).href;
    for (const [scheme, width, height] of LOOKS) {
      const look = {scheme, viewport: {width, height}};
      page = page ? await openIn(page, url, look) : await open(url, look);
      const tabs = await tabsOf(page);
      console.log(`tabs ${file}: ${tabs.join(', ')}`);
      await check(`${name}, ${scheme}, ${width}x${height}: ${tabs.join(', ')}`, async () => {
        assert.ok(tabs.includes('summary') && tabs.includes('timeline'), tabs.join());
        for (const tab of tabs) {
          await page.locator(`#tab-${tab}`).click();
          await page.waitForSelector(`#panel-${tab}:not([hidden]) > *`);
          await drawn(page);
          assert.equal(await page.locator('.message.bad').count(), 0, tab);
          const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(beyond <= 0, `${tab} is ${beyond} pixels too wide`);
          const text = await page.locator(`#panel-${tab}`).innerText();
          assert.ok(!/\b(undefined|NaN)\b|\[object /.test(text), `${tab} says: ${/.*(undefined|NaN|\[object).*/.exec(text)?.[0]}`);
          const shares = await page.$$eval(`#panel-${tab} ul[aria-label="operations by self time"] .part`, (parts) => parts.map((part) => Number(part.style.getPropertyValue('--share'))));
          assert.deepEqual(shares, [...shares].sort((a, b) => b - a), 'the longest stand first');
          if (looks) await page.screenshot({path: path.join(looks, `${name}-${scheme}-${tab}.png`)});
        }
      });
    }
  }
});
process.exit(0);
