// SPDX-License-Identifier: BSD-2-Clause
// page_open.mjs: what page*.mjs begin and end with: a browser whose faults and requests are kept, and checks that tell how long
// they took.
import fs from 'node:fs';
import path from 'node:path';
import assert from 'node:assert/strict';
import {chromiumPath, launch} from './browser.mjs';
import {cache} from './cache.mjs';

export const skip = (why) => {
  console.log(`skipped: ${why}`);
  process.exit(77);
};

let checks = 0;
export async function check(what, fn) {
  const start = Date.now();
  await fn();
  checks++;
  console.log(`ok   ${what} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
}

/** A folder for what is made; skipped where there is no browser. */
export function prepare(folder) {
  if (!chromiumPath()) skip('chromium is not installed');
  fs.mkdirSync(folder, {recursive: true});
}

/** What holds after a while: on a busy machine, a long one. Gives back what `fn` does. */
export async function eventually(fn) {
  for (const end = Date.now() + 30000; ; ) {
    try {
      return await fn();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((done) => { setTimeout(done, 100); });
    }
  }
}

async function loaded(page, url) {
  await page.goto(url);
  await page.waitForSelector('[role=tabpanel]:not([hidden]) > *');
}

/** Loads a page in a window that is there, which takes half of what a new window does. */
export async function openIn(page, url, {scheme, viewport}) {
  await page.goto('about:blank');
  await page.setViewportSize(viewport);
  await page.emulateMedia({colorScheme: scheme});
  await loaded(page, url);
  return page;
}

/**
 * Runs `fn` with a way to open windows, and the list of faults so far: behind it there was no error, and no request to
 * anybody but those that `allowed` matches.
 */
export async function withBrowser(fn, allowed = /^(file:|data:|http:\/\/127\.0\.0\.1:)/) {
  const browser = await launch();
  const problems = [];
  const requests = [];
  async function open(url, {scheme = 'light', axe = false, viewport = {width: 1280, height: 800}} = {}) {
    const context = await browser.newContext({viewport, colorScheme: scheme});
    if (axe) await context.addInitScript({path: path.join(cache(), 'axe-core-4.14.1/package/axe.min.js')});
    const page = await context.newPage();
    page.on('pageerror', (e) => problems.push(e.message));
    page.on('console', (m) => ['error', 'warning'].includes(m.type()) && problems.push(m.text()));
    page.on('request', (r) => requests.push(r.url()));
    await loaded(page, url);
    return page;
  }
  try {
    await fn(open, problems);
    assert.deepEqual(problems, []);
    assert.deepEqual(requests.filter((url) => !allowed.test(url)), []);
    console.log(`${checks} checks passed; no error, no request to others`);
  } finally {
    await browser.close();
  }
}

export const tabsOf = (page) => page.$$eval('[role=tab]', (tabs) => tabs.map((tab) => tab.id.replace('tab-', '')));
