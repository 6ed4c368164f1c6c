// SPDX-License-Identifier: BSD-2-Clause
// The frame of the page: head, tabs, search, keys.
import {Data} from './blocks.js';
import {h, placeLink, printable} from './dom.js';
import {format} from './format.js';
import {openHelp} from './help.js';
import {Place} from './place.js';
import {TABS} from './tabs.js';
import {isDark, startTheme, toggleTheme} from './theme.js';

const SEARCH_MS = 120;

/** What of the recording was lost, in words, and whether it is more than names; nothing if nothing was. */
function losses(report) {
  const {values = {}, about = {}} = report?.sections.recording ?? {};
  const keys = Object.keys(values).filter((key) => key.startsWith('lost') && values[key] > 0);
  return {
    lost: keys.map((key) => `${about[key].title}: ${format(values[key], 'count')}`).join(', '),
    what: keys.some((key) => key !== 'lost_names') ? 'events' : 'names',
  };
}

function head(data, place, search, tabs) {
  const {page} = data;
  const {lost, what} = losses(data.report);
  const facts = page.captures.map((c) =>
    [page.captures.length > 1 && c.name, c.host, c.start]
      .filter(Boolean)
      .join(' · '),
  );
  const theme = h('button', {
    class: 'icon',
    title: 'light or dark',
    'aria-label': 'dark colours',
    onclick: () => toggleTheme(),
  });
  const showTheme = () => {
    theme.textContent = isDark() ? '☀' : '☾';
    theme.setAttribute('aria-pressed', String(isDark()));
  };
  document.addEventListener('themechange', showTheme);
  showTheme();
  return h(
    'header',
    {class: 'head'},
    h('h1', {}, printable(page.title)),
    h(
      'p',
      {class: 'facts', title: facts.map(printable).join('\n')},
      facts.length > 1 ? `${facts.length} captures` : printable(facts[0] ?? ''),
    ),
    page.cut &&
      h('span', {class: 'chip', title: 'the page shows a part of the recording'}, printable(page.cut)),
    lost && placeLink(place, {tab: 'figures'}, {class: 'chip bad', title: lost}, `${what} were lost`),
    h('span', {class: 'grow'}),
    search,
    theme,
    h(
      'button',
      {class: 'icon', title: 'keys and help (?)', 'aria-label': 'help', onclick: () => openHelp(tabs)},
      '?',
    ),
  );
}

/** `next`: goes to the next match (1), or the previous one (-1). */
function searchBox(place, next) {
  let timer;
  const input = h('input', {
    type: 'search',
    class: 'search',
    placeholder: 'Search   /',
    'aria-label': 'search',
    spellcheck: 'false',
    autocomplete: 'off',
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(() => place.go({q: input.value}, {replace: true}), SEARCH_MS);
    },
    onkeydown: (event) => {
      if (event.key === 'Enter') {
        clearTimeout(timer);
        place.go({q: input.value}, {replace: true});
        next(event.shiftKey ? -1 : 1);
      }
      if (event.key !== 'Escape') return;
      clearTimeout(timer);
      input.value = '';
      place.go({q: ''}, {replace: true});
      input.blur();
    },
  });
  input.value = place.state.q;
  place.listen((state) => {
    if (document.activeElement !== input) input.value = state.q;
  });
  return input;
}

/** The tabs' row, and a panel for each, which is filled when it is first shown. */
function tabbed(tabs, data, place) {
  const shown = new Map(); // key → promise of what render() gave back
  const links = new Map(
    tabs.map((tab, i) => [
      tab.key,
      placeLink(
        place,
        {tab: tab.key},
        {
          role: 'tab',
          id: `tab-${tab.key}`,
          'aria-controls': `panel-${tab.key}`,
          title: `${tab.title} (${(i + 1) % 10})`,
        },
        tab.title,
      ),
    ]),
  );
  const panels = new Map(
    tabs.map((tab) => [
      tab.key,
      h('section', {
        role: 'tabpanel',
        id: `panel-${tab.key}`,
        class: tab.wide ? 'panel wide' : 'panel',
        'aria-labelledby': `tab-${tab.key}`,
        tabindex: '-1',
        hidden: true,
      }),
    ]),
  );
  const row = h(
    'nav',
    {class: 'tabs', 'aria-label': 'views'},
    h('div', {role: 'tablist', 'aria-label': 'views'}, ...links.values()),
  );
  row.addEventListener('keydown', (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return; // the browser's own
    event.preventDefault();
    const keys = [...links.keys()];
    const next = keys[(keys.indexOf(current().key) + step + keys.length) % keys.length];
    place.go({tab: next});
    links.get(next).focus();
  });
  const current = () => tabs.find((tab) => tab.key === place.state.tab) ?? tabs[0];

  async function show() {
    const tab = current();
    const panel = panels.get(tab.key);
    for (const [key, link] of links) {
      const here = key === tab.key;
      link.setAttribute('aria-selected', String(here));
      link.tabIndex = here ? 0 : -1;
      link.href = place.link({tab: key});
      panels.get(key).hidden = !here;
    }
    document.body.classList.toggle('wide', !!tab.wide);
    try {
      if (shown.has(tab.key)) {
        (await shown.get(tab.key))?.update?.(place.state);
      } else {
        shown.set(tab.key, tab.render(panel, data, place, tabs));
        await shown.get(tab.key);
      }
    } catch (error) {
      shown.set(tab.key, undefined);
      panel.replaceChildren(
        h('p', {class: 'message bad'}, `This part of the page cannot be read: ${error.message}`),
      );
      console.error(error);
    }
  }
  /** Of the tab that is shown, if it has matches to go to. */
  const nextMatch = async (direction) => (await shown.get(current().key))?.nextMatch?.(direction);
  // the keys of what a click brings are its own
  for (const [key, link] of links) link.addEventListener('click', (event) => event.detail > 0 && panels.get(key).focus({preventScroll: true}));
  place.listen(show);
  return {row, panels: [...panels.values()], show, nextMatch};
}

/** Keys that work everywhere but where text is written. */
function listenForKeys(tabs, place, search) {
  document.addEventListener('keydown', (event) => {
    const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || writing || document.querySelector('dialog[open]'))
      return;
    if (event.key === '/') {
      search.focus();
      search.select();
    } else if (event.key === '?') {
      openHelp(tabs);
    } else if (/^[0-9]$/.test(event.key) && tabs[(Number(event.key) + 9) % 10]) {
      place.go({tab: tabs[(Number(event.key) + 9) % 10].key});
    } else if (event.key === 'Escape' && (place.state.q || place.state.sel)) {
      place.go({q: '', sel: ''});
    } else {
      return;
    }
    event.preventDefault();
  });
}

async function start() {
  const app = document.getElementById('app');
  startTheme();
  try {
    const data = await Data.open((key) =>
      document.querySelector(`script[type="application/x-xsptrace"]#${key}`),
    );
    if (!data.page) throw new Error('it has no data');
    if (data.page.version !== 1)
      throw new Error(`its data have version ${data.page.version}, which is not known here`);
    const place = new Place(window);
    const tabs = TABS.filter((tab) => tab.applies(data));
    const views = tabbed(tabs, data, place);
    const search = searchBox(place, views.nextMatch);
    document.title = `${printable(data.page.title)} - xsptrace`;
    app.replaceChildren(head(data, place, search, tabs), views.row, h('main', {}, ...views.panels));
    listenForKeys(tabs, place, search);
    await views.show();
  } catch (error) {
    app.replaceChildren(
      h('p', {class: 'message bad', role: 'alert'}, `This page cannot be shown: ${error.message}`),
    );
    console.error(error);
  }
}

start();
