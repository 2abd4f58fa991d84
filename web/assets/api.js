// SPDX-License-Identifier: MIT
// Talks to ipclabd: requests, the token, and event streams. The only module that knows fetch and EventSource.

const TOKEN_KEY = 'ipclab.token';
const REQUEST_DEADLINE_MS = 20000;
const POLL_MS = 3000;
const HIDDEN_MS = 5000;
const REOPEN_MS = [1000, 2000, 4000, 8000, 15000];

/** An answer that is not a success: application/problem+json, or what could be made of it. */
export class Problem extends Error {
    constructor(status, body) {
        super(body?.detail ?? body?.title ?? `The server answered ${status}.`);
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

export const token = {
    get: () => sessionStorage.getItem(TOKEN_KEY) ?? '',
    set: (value) => (value ? sessionStorage.setItem(TOKEN_KEY, value) : sessionStorage.removeItem(TOKEN_KEY)),
};

/** Tells who listens ("change") whether the server answers. */
export const connection = new (class extends EventTarget {
    state = 'connecting'; /* connecting, live, polling, gone */

    report(state) {
        if (state === this.state) return;
        this.state = state;
        this.dispatchEvent(new Event('change'));
    }
})();

let askForToken = null;
/** `ask(rejected)` shows the token dialog; resolves true once there is one to try again with. */
export function onUnauthorized(ask) {
    askForToken = ask;
}

async function send(method, path, { body, headers }) {
    const writes = method !== 'GET';
    const all = { Accept: 'application/json', ...headers };
    if (writes && token.get()) all.Authorization = `Bearer ${token.get()}`;
    if (body !== undefined) all['Content-Type'] = 'application/json';
    try {
        return await fetch(path, {
            method,
            headers: all,
            body,
            cache: 'no-store',
            signal: AbortSignal.timeout(REQUEST_DEADLINE_MS),
        });
    } catch {
        connection.report('gone');
        throw new Unreachable();
    }
}

async function decode(response) {
    const text = await response.text();
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

async function request(method, path, options = {}) {
    for (;;) {
        const response = await send(method, path, options);
        if (connection.state === 'gone' || connection.state === 'connecting') connection.report('polling');
        if (response.status !== 401 || !askForToken) return decode(response);
        if (!(await askForToken(token.get() !== ''))) return decode(response);
    }
}

export const get = (path) => request('GET', path);
export const post = (path, body, headers) => request('POST', path, { body, headers });
export const remove = (path) => request('DELETE', path);

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
 * A browser opens six connections to a server and no more, for all its tabs: a page that nobody sees lets its streams go.
 */
export function follow(path, { onEvent, onOpen, poll, reports = false }) {
    let source = null;
    let failures = 0;
    let later = 0;

    const stop = () => {
        clearTimeout(later);
        source?.close();
        source = null;
    };
    const fail = () => {
        stop();
        if (reports && connection.state !== 'gone') connection.report('polling');
        later = setTimeout(open, REOPEN_MS[Math.min(failures++, REOPEN_MS.length - 1)]);
    };
    const opened = () => {
        failures = 0;
        if (reports) connection.report('live');
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
        for (const type of ['experiment', 'run', 'sample', 'end']) source.addEventListener(type, receive);
    }
    const seen = () => {
        clearTimeout(later);
        if (document.hidden) later = setTimeout(stop, HIDDEN_MS);
        else if (source?.readyState !== EventSource.OPEN) open();
    };
    const polling = setInterval(() => {
        if (source?.readyState !== EventSource.OPEN && !document.hidden) Promise.resolve(poll()).catch(() => {});
    }, POLL_MS);

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
