// SPDX-License-Identifier: MIT
// The page as a whole: which view the address asks for, the bar at the top, and what keeps them together.

import { connection, get, onUnauthorized, token } from './api.js';
import { Detail } from './detail.js';
import { askToken } from './dialogs.js';
import { $, fill, h, setText } from './dom.js';
import { Form } from './form.js';
import { once, showHost, topologyWords } from './host.js';
import { List } from './list.js';

const CONNECTION_WORDS = {
    connecting: 'Connecting…',
    live: 'Live',
    polling: 'Live updates interrupted, polling',
    gone: 'ipclabd does not answer; trying again',
};

const list = new List();
const form = new Form((experiment) => {
    list.put(experiment);
    location.hash = `#/experiments/${experiment.id}`;
});
let listed; /* resolves when the list is there: it comes before all that describes the machine */
let detail = null;

function openDetail(id) {
    detail = new Detail($('main'), id, {
        changed: (experiment) => list.put(experiment),
        gone: (which) => {
            list.drop(which);
            location.hash = '#/';
        },
    });
}

async function openForm(query) {
    const from = Number(new URLSearchParams(query).get('from'));
    const spec = from ? (await get(`/experiments/${from}`)).spec : null;
    await form.show($('main'), spec);
}

/* #/ the machine, #/new a form, #/experiments/12 an experiment. */
async function route() {
    const [path, query] = location.hash.replace(/^#/, '').split('?');
    if (path && !path.startsWith('/')) return;
    detail?.close();
    detail = null;
    const match = /^\/experiments\/(\d+)$/.exec(path);
    $('layout').dataset.view = match || path === '/new' ? 'detail' : 'list';
    list.select(match ? Number(match[1]) : 0);
    document.title = 'ipclab';
    if (match) openDetail(Number(match[1]));
    else
        await (path === '/new' ? openForm(query) : showHost($('main'), listed)).catch((error) =>
            fill($('main'), h('p', { class: 'notice', role: 'alert', text: error.message })),
        );
}

function showToken() {
    setText($('token-button'), token.get() ? 'Token set' : 'Token');
}

function start() {
    onUnauthorized(async (rejected) => {
        const given = await askToken(rejected);
        showToken();
        return given;
    });
    $('token-button').addEventListener('click', () => askToken().then(showToken));
    connection.addEventListener('change', () => {
        $('connection').dataset.state = connection.state;
        setText($('connection'), CONNECTION_WORDS[connection.state]);
    });
    addEventListener('hashchange', () => {
        route();
        $('main').focus({ preventScroll: true });
        scrollTo(0, 0);
    });
    showToken();
    listed = list.start();
    route();
    listed.then(() => Promise.all([once('/topology'), once('/environment')]))
        .then(([topology, environment]) => setText($('host-line'), hostWords(topology, environment)))
        .catch(() => {});
}

function hostWords(topology, environment) {
    const named = [environment.hostname, environment.cpu_model, topologyWords(topology)];
    return named.filter((part) => typeof part === 'string' && part).join(' · ');
}

start();
