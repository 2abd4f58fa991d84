// SPDX-License-Identifier: MIT
// The page as a whole: which view the address asks for, the bar at the top, and what keeps them together.

import { choose, chosen } from './address.js';
import { connection, getWithText, onUnauthorized, token } from './api.js';
import { Detail } from './detail.js';
import { askToken } from './dialogs.js';
import { $, setText } from './dom.js';
import { Form } from './form.js';
import { once, showHost, topologyWords } from './host.js';
import { List } from './list.js';
import { memberText } from './spec.js';
import { showFailure, showMissing } from './views.js';

const CONNECTION_WORDS = {
    connecting: 'Connecting…',
    live: 'Live',
    polling: 'Live updates interrupted, polling',
    gone: 'ipclabd does not answer; trying again',
};
const TOKEN_WORDS = { none: 'Token', set: 'Token set', refused: 'Token refused' };

const list = new List();
const opened = (experiment) => {
    list.put(experiment);
    location.hash = `#/experiments/${experiment.id}`;
};
const form = new Form(opened);
let listed; /* resolves when the list is there: it comes before all that describes the machine */
let detail = null;
let views = 0;

function showExperiment({ id }) {
    detail = new Detail($('main'), id, {
        changed: (experiment) => list.put(experiment),
        gone: (which) => {
            list.drop(which);
            location.hash = '#/';
        },
        opened,
    });
}

async function showForm({ left, query }) {
    const from = new URLSearchParams(query).get('from');
    const spec = new URLSearchParams(query).get('spec');
    if (spec !== null) return form.show($('main'), left, spec);
    if (from === null) return form.show($('main'), left);
    const { text } = await getWithText(`/experiments/${encodeURIComponent(from)}`);
    if (!left()) await form.show($('main'), left, memberText(text, 'spec'));
}

const NOWHERE = {
    view: 'detail',
    show: ({ path }) => showMissing($('main'), 'There is no such page', `Nothing has the address #${path}.`),
};
/*
 * Each view: its address after the #, what a narrow screen has of it, and what shows it. `left()` is true once another
 * view has begun.
 */
const VIEWS = [
    { path: /^\/?$/, view: 'list', show: ({ left }) => showHost($('main'), left, listed, opened) },
    {
        path: /^\/compare$/,
        view: 'detail',
        show: async ({ left }) => {
            const { showCompare } = await import('./drawings.js');
            if (!left()) await showCompare($('main'), left);
        },
    },
    { path: /^\/new$/, view: 'detail', show: showForm },
    { path: /^\/experiments\/\d+$/, view: 'detail', show: showExperiment },
];

async function route() {
    takeToken();
    const [path, query] = location.hash.slice(1).split('?');
    const { view, show } = VIEWS.find((one) => one.path.test(path)) ?? NOWHERE;
    const id = Number(/^\/experiments\/(\d+)$/.exec(path)?.[1] ?? 0);
    const mine = ++views;
    const left = () => mine !== views;
    detail?.close();
    detail = null;
    $('layout').dataset.view = view;
    present(new URLSearchParams(query).has('present'));
    list.select(id);
    document.title = 'ipclab';
    try {
        await show({ left, path, query, id });
    } catch (error) {
        if (left()) return;
        if (error.status === 404) showMissing($('main'), 'There is no such experiment', 'It may have been deleted.');
        else showFailure($('main'), error);
    }
}

/* For a wall: the view alone, larger. Esc gives the page back. */
function present(on) {
    document.documentElement.classList.toggle('presenting', on);
}

/* #token=… gives the page the token, and leaves neither the address nor the history with it. */
function takeToken() {
    const given = /^#token=(.*)$/.exec(location.hash);
    if (!given) return;
    history.replaceState(null, '', '#/');
    token.set(decodeToken(given[1]).trim());
}

function decodeToken(text) {
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
        .then(() => Promise.all([once('/topology'), once('/environment')]))
        .then(([topology, environment]) => setText($('host-line'), hostWords(topology, environment)))
        .catch(() => {
            named = false; /* until it answers again */
        });
}

function hostWords(topology, environment) {
    const named = [environment.hostname, environment.cpu_model, topologyWords(topology)];
    return named.filter((part) => typeof part === 'string' && part).join(' · ');
}

function start() {
    onUnauthorized(askToken);
    $('token-button').addEventListener('click', () => askToken(token.state === 'refused'));
    $('skip').addEventListener('click', (event) => {
        event.preventDefault(); /* the address stays that of the view */
        $('main').focus();
    });
    addEventListener('keydown', (event) => {
        if (event.key !== 'Escape' || chosen('present') === null || document.querySelector('dialog[open]')) return;
        choose({ present: null });
        present(false);
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
