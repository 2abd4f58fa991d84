// SPDX-License-Identifier: MIT
// The page as a whole: the view that the address names, the bar at the top, and the state that both share.

import { leaveTheWall, onTheWall } from './address.js';
import { connection, get, getWithText, onUnauthorized, token } from './api.js';
import { requestToken } from './dialogs.js';
import { $, fill, h, setText } from './dom.js';
import { showHost, topologyWords } from './home/host.js';
import { List } from './home/list.js';
import { machine } from './machine.js';
import { memberText } from './form/spec.js';
import { showFailure, showMissing } from './views.js';

const CONNECTION_WORDS = {
    connecting: 'Connecting…',
    live: 'Live',
    polling: 'Live updates interrupted, polling',
    gone: 'ipclabd does not answer; trying again',
};
const TOKEN_WORDS = { none: 'Token', set: 'Token set', refused: 'Token refused' };

let listed; /* resolves when the list is there: it comes before all that describes the machine */
let detail = null;
let form = null;
let views = 0;
/* A file takes its time: the experiment is shown unless another view has begun meanwhile. */
const list = new List({
    opens: () => {
        const mine = views;
        return (experiment) => (mine === views ? opened(experiment) : list.put(experiment));
    },
    changed: (experiment) => detail?.resumed(experiment),
    gone: (id) => detail?.deleted(id),
});
const opened = (experiment) => {
    list.put(experiment);
    location.hash = `#/experiments/${experiment.id}`;
};

function showExperiment({ id, later }) {
    detail = new later.Detail($('main'), id, {
        changed: (experiment) => list.put(experiment),
        gone: (which) => {
            list.drop(which);
            location.hash = '#/';
        },
        opened,
    });
}

async function showForm({ left, query, later }) {
    form ??= new later.Form(opened);
    const from = new URLSearchParams(query).get('from');
    const spec = new URLSearchParams(query).get('spec');
    if (spec !== null) return form.show($('main'), left, spec);
    if (from === null) return form.show($('main'), left);
    const { text } = await getWithText(`/experiments/${encodeURIComponent(from)}`);
    if (!left()) await form.show($('main'), left, memberText(text, 'spec'));
}

/* The views beyond the first page come with the first of them. */
const loadLater = () =>
    import('./later.js').catch(async () => {
        await get('/health'); /* no answer is a failure of its own */
        throw new Error('This page is not of the ipclabd that answers. Load it again.');
    });

const MISSING = ['There is no such experiment', 'It may have been deleted.'];
const NOWHERE = {
    view: 'detail',
    first: true,
    show: ({ path }) => showMissing($('main'), 'There is no such page', `Nothing has the address #${path}.`),
};
/*
 * Each view: its address after the #, what a narrow screen has of it, whether it is part of the first page, what shows
 * it, and the words for what is not there. `left()` is true once another view has begun, `later` has the views that are
 * not of the first page.
 */
const VIEWS = [
    { path: /^\/?$/, view: 'list', first: true, show: ({ left }) => showHost($('main'), left, listed, opened) },
    { path: /^\/compare$/, view: 'detail', show: ({ left, later }) => later.showCompare($('main'), left) },
    { path: /^\/baselines$/, view: 'detail', show: ({ left, later }) => later.showBaselines($('main'), left) },
    {
        path: /^\/baselines\/[^/]+$/,
        view: 'detail',
        missing: ['There is no such baseline', 'Its name may have been forgotten.'],
        show: ({ left, later, path }) => later.showHistory($('main'), left, decoded(path.split('/').at(-1))),
    },
    { path: /^\/new$/, view: 'detail', show: showForm },
    { path: /^\/experiments\/\d+$/, view: 'detail', show: showExperiment },
];

async function route() {
    takeToken();
    const [path, query] = location.hash.slice(1).split('?');
    const { view, show, first = false, missing = MISSING } = VIEWS.find((one) => one.path.test(path)) ?? NOWHERE;
    const id = Number(/^\/experiments\/(\d+)$/.exec(path)?.[1] ?? 0);
    const mine = ++views;
    const left = () => mine !== views;
    detail?.close();
    detail = null;
    $('layout').dataset.view = view;
    present();
    list.select(id);
    document.title = 'ipclab';
    try {
        if (!first) fill($('main'), h('p', { class: 'soft', text: 'Loading…' }));
        const later = first ? null : await loadLater();
        if (!left()) await show({ left, path, query, id, later });
    } catch (error) {
        if (left()) return;
        if (error.status === 404) showMissing($('main'), ...missing);
        else showFailure($('main'), error);
    }
}

/* The view for a wall: itself alone, larger. Esc gives the page back. */
function present() {
    document.documentElement.classList.toggle('presenting', onTheWall());
}

/* #token=… gives the page the token, and leaves neither the address nor the history with it. */
function takeToken() {
    const given = /^#token=(.*)$/.exec(location.hash);
    if (!given) return;
    history.replaceState(null, '', '#/');
    token.set(decoded(given[1]).trim());
}

function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

function showConnection() {
    document.documentElement.dataset.connection = connection.state;
    $('connection').dataset.state = connection.state;
    setText($('connection'), CONNECTION_WORDS[connection.state]);
    if (connection.state === 'gone') return;
    nameHost();
    if ($('main').querySelector('[data-unanswered=true]')) route();
}

function showToken() {
    $('token-button').dataset.state = token.state;
    setText($('token-button'), TOKEN_WORDS[token.state]);
}

let named = false;

function nameHost() {
    if (named) return;
    named = true;
    listed
        .then(machine)
        .then(({ topology, environment }) => setText($('host-line'), hostWords(topology, environment)))
        .catch(() => {
            named = false; /* until it answers again */
        });
}

function hostWords(topology, environment) {
    const named = [environment.hostname, environment.cpu_model, topologyWords(topology)];
    return named.filter((part) => typeof part === 'string' && part).join(' · ');
}

function start() {
    onUnauthorized(requestToken);
    $('token-button').addEventListener('click', () => requestToken(token.state === 'refused'));
    $('skip').addEventListener('click', (event) => {
        event.preventDefault(); /* the address stays that of the view */
        $('main').focus();
    });
    addEventListener('keydown', (event) => {
        if (event.key !== 'Escape' || !onTheWall() || document.querySelector('dialog[open]')) return;
        leaveTheWall();
        present();
    });
    token.addEventListener('change', showToken);
    connection.addEventListener('change', showConnection);
    addEventListener('hashchange', () => {
        route();
        $('main').focus({ preventScroll: true });
        scrollTo(0, 0);
    });
    showToken();
    listed = list.start();
    route();
    nameHost();
}

start();
