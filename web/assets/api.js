// SPDX-License-Identifier: MIT
// The client of ipclabd: requests, the token, and event streams. The only module that uses fetch and EventSource.

import { sentence } from './format.js';

const TOKEN_KEY = 'ipclab.token';
const REQUEST_DEADLINE_MS = 20000;
const FILE_DEADLINE_MS = 600000; /* the daemon reads and stores all of it before it answers */
const JSON_BODY = { 'Content-Type': 'application/json' };
const POLL_MS = 3000;
const HIDDEN_MS = 5000;
const REOPEN_MS = [1000, 2000, 4000, 8000, 15000];

/** An answer that is not a success: application/problem+json, or what could be made of it. */
export class Problem extends Error {
    constructor(status, body) {
        super(sentence(body?.detail ?? body?.title ?? `The server answered ${status}.`));
        this.status = status;
        this.body = body ?? {};
        this.pointer = body?.pointer ?? '';
    }
}

/** Nobody answered. */
export class Unreachable extends Error {
    constructor() {
        super('ipclabd does not answer. Is it still running?');
    }
}

/** The token of this tab. It dispatches "change" when it is another one or was refused. */
export const token = new (class extends EventTarget {
    #refused = false;

    get() {
        return sessionStorage.getItem(TOKEN_KEY) ?? '';
    }

    /** none, set (and as far as is known good) or refused */
    get state() {
        if (this.get()) return 'set';
        return this.#refused ? 'refused' : 'none';
    }

    set(value) {
        this.#store(value, false);
    }

    /** The server refused this token: it is forgotten, unless there is a newer one. */
    refuse(value) {
        if (this.get() === value) this.#store('', true);
    }

    #store(value, refused) {
        if (value) sessionStorage.setItem(TOKEN_KEY, value);
        else sessionStorage.removeItem(TOKEN_KEY);
        this.#refused = refused;
        this.dispatchEvent(new Event('change'));
    }
})();

/**
 * Whether the server responds: one state, which follows from the last request and from the event stream. It dispatches
 * "change".
 */
export const connection = new (class extends EventTarget {
    #answers = null; /* null: nothing is known yet */
    #streams = null;

    /** connecting, live, polling (it answers, but there is no stream), gone */
    get state() {
        if (this.#answers === false) return 'gone';
        if (this.#answers === null || this.#streams === null) return 'connecting';
        return this.#streams ? 'live' : 'polling';
    }

    /** A request was answered, in whichever way, or it was not. */
    answered(yes) {
        this.#change(() => (this.#answers = yes));
    }

    /** The event stream was opened, which is an answer too, or it was lost, after which there may be one. */
    streams(yes) {
        this.#change(() => {
            this.#streams = yes;
            if (yes) this.#answers = true;
        });
    }

    #change(set) {
        const before = this.state;
        set();
        if (this.state !== before) this.dispatchEvent(new Event('change'));
    }
})();

let requestToken = null;
/** `request(rejected)` shows the token dialog; resolves true once there is a token to retry with. */
export function onUnauthorized(request) {
    requestToken = request;
}

async function send(method, path, { body, headers, token: bearer, deadline = REQUEST_DEADLINE_MS }) {
    const all = { Accept: 'application/json', ...(body !== undefined && JSON_BODY), ...headers };
    if (bearer) all.Authorization = `Bearer ${bearer}`;
    try {
        const response = await fetch(path, {
            method,
            headers: all,
            body,
            cache: 'no-store',
            signal: AbortSignal.timeout(deadline),
        });
        const text = await response.text();
        connection.answered(true);
        return { response, text };
    } catch {
        connection.answered(false);
        throw new Unreachable();
    }
}

function decode(response, text) {
    let value = null;
    try {
        value = text ? JSON.parse(text) : null;
    } catch {
        value = { detail: `The server answered ${response.status} with something that is not JSON.` };
        if (response.ok) throw new Problem(response.status, value);
    }
    if (!response.ok) throw new Problem(response.status, value);
    return value;
}

/* {text, value}: the response's text, and the value that it encodes. */
async function request(method, path, options = {}) {
    for (;;) {
        const used = method === 'GET' ? '' : token.get();
        const { response, text } = await send(method, path, { ...options, token: used });
        const answer = () => ({ text, value: decode(response, text) });
        if (response.status !== 401) return answer();
        if (used) token.refuse(used);
        if (!requestToken || !(await requestToken(used !== ''))) return answer();
    }
}

const valueOf = async (answer) => (await answer).value;

export const get = (path) => valueOf(request('GET', path));
export const post = (path, body, headers) => valueOf(request('POST', path, { body, headers }));
export const postFile = (path, file, type) =>
    valueOf(request('POST', path, { body: file, headers: { 'Content-Type': type }, deadline: FILE_DEADLINE_MS }));
export const put = (path, body) => valueOf(request('PUT', path, { body }));
export const remove = (path) => valueOf(request('DELETE', path));
/** Also the text of the document, for what must be passed on as it was written: {text, value}. */
export const getWithText = (path) => request('GET', path);

/**
 * A function that posts a text, by default an experiment's spec, and gives the experiment. The same text is posted with
 * the same key until it was answered: a retry after a lost answer starts nothing twice.
 */
export function submission(path = '/experiments') {
    let sent = null;
    return async (body) => {
        if (sent?.body !== body) sent = { body, key: newKey() };
        const experiment = await post(path, body, { 'Idempotency-Key': sent.key });
        sent = null;
        return experiment;
    };
}

/* randomUUID needs a secure context, which a host name on a lab network is not. */
const newKey = () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** Follows `next` until the list ends or `limit` items are there; {items, complete}. */
export async function getAll(path, limit) {
    const items = [];
    let cursor = null;
    do {
        const page = new URL(path, location.origin);
        if (cursor !== null) page.searchParams.set('cursor', cursor);
        const list = await get(page.pathname + page.search);
        items.push(...list.items);
        cursor = list.next ?? null;
    } while (cursor !== null && items.length < limit);
    return { items, complete: cursor === null };
}

/**
 * Follows an event stream. `onEvent(type, data)` gets each event; `onOpen()` runs at each (re-)opening, to read what
 * may have been missed; `poll()` runs every few seconds while there is no stream. `reports`: this stream stands for the
 * connection as a whole. Returns {close}.
 *
 * A browser opens at most six connections to a server, for all its tabs, so a hidden page closes its streams.
 */
export function follow(path, { onEvent, onOpen, poll, reports = false }) {
    let source = null;
    let failures = 0;
    let later = 0;
    let pending = null;

    const stop = () => {
        clearTimeout(later);
        source?.close();
        source = null;
    };
    const pollNow = () => {
        pending ??= Promise.resolve(poll())
            .catch(() => {})
            .finally(() => {
                pending = null;
            });
    };
    const fail = () => {
        stop();
        later = setTimeout(open, REOPEN_MS[Math.min(failures++, REOPEN_MS.length - 1)]);
        if (!reports) return;
        connection.streams(false);
        pollNow(); /* which updates the connection's state at once */
    };
    const opened = () => {
        failures = 0;
        if (reports) connection.streams(true);
        Promise.resolve(onOpen()).catch(() => {});
    };
    const receive = (event) => {
        try {
            onEvent(event.type, JSON.parse(event.data || 'null'));
        } catch (error) {
            console.warn('event ignored', error);
        }
    };
    function open() {
        stop();
        source = new EventSource(path);
        source.onopen = opened;
        source.onerror = fail;
        for (const type of ['experiment', 'run', 'sample', 'deletion', 'end']) source.addEventListener(type, receive);
    }
    const seen = () => {
        clearTimeout(later);
        if (document.hidden) later = setTimeout(stop, HIDDEN_MS);
        else if (source?.readyState !== EventSource.OPEN) open();
    };
    /* A stream may be open to a server that is stuck. */
    const silent = () => source?.readyState !== EventSource.OPEN || (reports && connection.state === 'gone');
    const polling = setInterval(() => silent() && !document.hidden && pollNow(), POLL_MS);

    const listening = new AbortController();
    document.addEventListener('visibilitychange', seen, { signal: listening.signal });
    addEventListener('pagehide', stop, { signal: listening.signal });
    addEventListener('pageshow', (event) => event.persisted && open(), { signal: listening.signal });
    open();
    return {
        close() {
            listening.abort();
            clearInterval(polling);
            stop();
        },
    };
}
