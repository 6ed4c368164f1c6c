// SPDX-License-Identifier: BSD-2-Clause
// speedscope.mjs FILE...: what speedscope 1.25.0 (npm, as shipped) makes of a file. Loads it in
// chromium the way its command line does, then saves with Ctrl+S: the saved profile is what
// it understood.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {pathToFileURL} from 'node:url';
import {cache} from './cache.mjs';
import {launch} from './browser.mjs';

async function loadOne(browser, file) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'xsptrace-speedscope-'));
  const page = await browser.newPage({acceptDownloads: true});
  const messages = [];
  page.on('console', (m) => messages.push(m.text()));
  page.on('pageerror', (e) => messages.push(`Error: ${e.message}`));
  try {
    const script = path.join(folder, 'profile.js');
    const name = JSON.stringify(path.basename(file));
    fs.writeFileSync(script, `speedscope.loadFileFromBase64(${name}, "${fs.readFileSync(file).toString('base64')}")`);
    const index = path.join(cache(), 'speedscope-1.25.0/package/dist/release/index.html');
    await page.goto(`${pathToFileURL(index)}#localProfilePath=${script}`);
    const deadline = Date.now() + 60000;
    // the name of the loaded profile stands in the title
    while (!(await page.title()).includes(path.basename(file))) {
      if (Date.now() > deadline || messages.some((m) => /Error|Failed|error/.test(m))) {
        throw new Error(`speedscope did not load ${file}: ${messages.join(' | ')}`);
      }
      await page.waitForTimeout(50);
    }
    // a key that comes before all is there does nothing
    let download;
    page.once('download', (made) => { download = made; });
    for (const end = Date.now() + 30000; !download; ) {
      if (Date.now() > end) throw new Error(`speedscope did not save ${file}`);
      await page.keyboard.press('Control+s');
      for (let i = 0; i < 10 && !download; i++) await page.waitForTimeout(50);
    }
    const saved = path.join(folder, 'saved.json');
    await download.saveAs(saved);
    return {messages, profile: JSON.parse(fs.readFileSync(saved, 'utf8'))};
  } finally {
    await page.close();
    fs.rmSync(folder, {recursive: true, force: true});
  }
}

/** Returns [{messages, profile}] in the order of the files. */
export async function loadAll(files) {
  const browser = await launch({webgl: true});
  try {
    const results = [];
    for (const file of files) results.push(await loadOne(browser, file));
    return results;
  } finally {
    await browser.close();
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const files = process.argv.slice(2);
  const results = await loadAll(files);
  results.forEach(({messages, profile}, i) => {
    console.log(files[i]);
    for (const m of messages) console.log('  ', m);
    console.log('  ', profile.shared.frames.length, 'frames');
    for (const p of profile.profiles) {
      const {type, name, unit, startValue, endValue} = p;
      console.log(JSON.stringify({type, name, unit, events: (p.events || p.samples).length, length: endValue - startValue}));
    }
  });
}
