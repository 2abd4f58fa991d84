// SPDX-License-Identifier: MIT
// The list of experiments: newest first, a page at a time, kept up to date by the daemon's event stream.

import { chosen, choose } from './address.js';
import { connection, follow, get, post, remove } from './api.js';
import { confirm } from './dialogs.js';
import { $, h, reconcile, setText } from './dom.js';
import { duration, integer, plural, time } from './format.js';
import { status } from './status.js';

const PAGE = 25;
const REFRESH_SOON_MS = 1000;
const REFRESH_MS = 30000;
const TYPED_MS = 300; /* after the last letter of a search */

const STREAM_OPENS_MS = 1000; /* after which the list is read without it */

/* What is done to all that are listed: its words, whom it is for, how. */
const CANCEL = {
    action: 'Cancel',
    of: 'waiting or running',
    applies: ({ state }) => state === 'queued' || state === 'running',
    run: ({ id }) => post(`/experiments/${id}/cancel`),
    words: 'They are stopped or taken from the queue. Finished runs keep their results.',
};
const DELETE = {
    action: 'Delete',
    of: 'not running',
    applies: ({ state }) => state !== 'running',
    run: ({ id }) => remove(`/experiments/${id}`),
    words: 'Their results and samples will be gone for good.',
};

/** What an experiment's progress is, in words. */
export function progressWords(experiment, eta = experiment.eta_seconds) {
    const { runs_total: total, runs_done: done, runs_failed: failed } = experiment.progress;
    if (experiment.state === 'queued')
        return experiment.queue_position ? `number ${experiment.queue_position} in the queue` : 'waiting';
    const lost = failed ? `, ${integer(failed)} failed` : '';
    if (experiment.state === 'running')
        return (
            `${integer(done + failed)} of ${plural(total, 'run')}${lost}` +
            (eta === null ? '' : ` · ${duration(eta)} left`)
        );
    if (failed) return `${integer(failed)} of ${plural(total, 'run')} failed`;
    return done === total ? plural(total, 'run') : `${integer(done)} of ${plural(total, 'run')} done`;
}

/** Seconds left by now, given when the experiment was told; null where it is not known, as while nobody answers. */
export const etaNow = (experiment) =>
    experiment.eta_seconds === null || experiment.eta_seconds === undefined || !status.answers
        ? null
        : Math.max(0, experiment.eta_seconds - (performance.now() - experiment.heard_at) / 1000);

export const nameOf = (experiment) => experiment.name || `Experiment ${experiment.id}`;

export class List {
    constructor() {
        this.items = new Map();
        this.current = 0;
        this.cursor = null;
        this.generation = 0;
        this.listeners = new Set();
        this.#fromAddress();
        $('list-filter').addEventListener('change', () => this.#chosen());
        $('list-search').addEventListener('input', () => {
            clearTimeout(this.typing);
            this.typing = setTimeout(() => this.#chosen(), TYPED_MS);
        });
        $('list-cancel').addEventListener('click', () => this.#many(CANCEL));
        $('list-delete').addEventListener('click', () => this.#many(DELETE));
        $('list-older').addEventListener('click', () => this.#older());
        connection.addEventListener('change', () => this.#draw());
        setInterval(() => this.#draw(), 1000);
    }

    /** Resolves when the list was read first: once the stream is open, so that nothing is missed between. */
    start() {
        setInterval(() => !document.hidden && this.#refreshSoon(), REFRESH_MS);
        return new Promise((resolve) => {
            const read = () => (this.loaded ? this.refresh() : this.reload().then(resolve));
            this.stream = follow('/events', {
                reports: true,
                onOpen: read,
                poll: read,
                onEvent: (type, data) => type === 'experiment' && this.#told(data),
            });
            setTimeout(() => this.loaded || read(), STREAM_OPENS_MS);
        });
    }

    select(id) {
        this.current = id;
        if (this.#fromAddress()) this.reload();
        this.#draw();
    }

    /* When one starts or ends, the others' places in the queue change without an event of their own. */
    #told(experiment) {
        if (this.items.get(experiment.id)?.state !== experiment.state) this.#refreshSoon();
        status.take(experiment);
        this.put(experiment);
    }

    #refreshSoon() {
        this.soon ??= setTimeout(() => {
            this.soon = undefined;
            this.refresh().catch(() => {});
        }, REFRESH_SOON_MS);
    }

    /* The address' choices, where it has any; true when they are others than before. */
    #fromAddress() {
        const controls = [
            ['state', $('list-filter')],
            ['q', $('list-search')],
        ];
        return (
            controls.filter(([name, control]) => {
                const asked = chosen(name);
                const other = asked !== null && control.value !== asked;
                if (other) control.value = asked;
                return other;
            }).length > 0
        );
    }

    #chosen() {
        choose({ state: $('list-filter').value || null, q: this.#words() || null });
        this.reload();
    }

    #words() {
        return $('list-search').value.trim();
    }

    /* One after the other; the first that is refused ends it, and says why. */
    async #many({ action, of, applies, run, words }) {
        const some = [...this.items.values()].filter(applies);
        const error = $('list-many-error');
        setText(error, some.length ? '' : `None that is listed is ${of}.`);
        if (!some.length) return;
        const agreed = await confirm({
            title: `${action} ${plural(some.length, 'experiment')}?`,
            text: `All that are listed and ${of}. ${words}`,
            action: `${action} ${some.length}`,
            keep: 'Keep them',
        });
        if (!agreed) return;
        try {
            for (const one of some.sort((a, b) => b.id - a.id)) await run(one);
        } catch (failure) {
            setText(error, failure.message);
        }
        await this.reload();
    }

    /* Whether it is one of those that are looked for, as the server would see it. */
    #isWanted({ name, state, spec }) {
        const words = this.#words().toLowerCase();
        const wanted = $('list-filter').value;
        if (wanted && state !== wanted) return false;
        return !words || [name ?? '', JSON.stringify(spec)].some((text) => text.toLowerCase().includes(words));
    }

    /** Takes an experiment as the server told it. */
    put(experiment, listed = false) {
        if (!listed && !this.#isWanted(experiment)) this.items.delete(experiment.id);
        else this.items.set(experiment.id, { ...experiment, heard_at: performance.now() });
        this.#draw();
    }

    drop(id) {
        this.items.delete(id);
        this.#draw();
    }

    async reload() {
        this.items.clear();
        this.loaded = false;
        this.generation++;
        await this.#attempt(() => this.#page(null));
    }

    #older() {
        return this.#attempt(() => this.#page(this.cursor));
    }

    /* A failure stands below the list until something is read again. */
    async #attempt(read) {
        try {
            await read();
        } catch (error) {
            this.error = error.message;
            this.#draw();
            $('list-empty').scrollIntoView({ block: 'nearest' });
        }
    }

    /* The newest page again: what changed while nobody listened. Queue positions of others change silently too. */
    async refresh() {
        if (!this.loaded) return this.reload();
        const [{ items }] = await Promise.all([get(this.#path(null)), status.refresh()]);
        this.error = null;
        const oldest = items.at(-1)?.id ?? 0;
        for (const id of this.items.keys())
            if (id >= oldest && !items.some((item) => item.id === id)) this.items.delete(id);
        items.forEach((item) => this.put(item, true));
        this.#draw();
    }

    #path(cursor) {
        const query = new URLSearchParams({ limit: PAGE });
        if ($('list-filter').value) query.set('state', $('list-filter').value);
        if (this.#words()) query.set('q', this.#words());
        if (cursor !== null) query.set('cursor', cursor);
        return `/experiments?${query}`;
    }

    async #page(cursor) {
        const generation = this.generation;
        const { items, next } = await get(this.#path(cursor));
        if (generation !== this.generation) return;
        this.error = null;
        this.cursor = next ?? null;
        items.forEach((item) => this.put(item, true));
        this.loaded = true;
        this.#draw();
    }

    #draw() {
        const sorted = [...this.items.values()].sort((a, b) => b.id - a.id);
        reconcile($('list'), sorted, {
            key: (item) => item.id,
            create: createItem,
            update: (element, item) => updateItem(element, item, item.id === this.current),
        });
        $('list-older').hidden = this.cursor === null;
        const words = this.#nothing(sorted.length);
        $('list-many').hidden = sorted.length === 0;
        $('list-empty').hidden = !words;
        setText($('list-empty'), words);
    }

    #nothing(shown) {
        if (this.error) return this.error;
        if (shown || !this.loaded) return '';
        if (this.#words()) return 'No experiment has these words in its name or spec.';
        return $('list-filter').value ? 'No experiment is in this state.' : 'No experiment yet.';
    }
}

function createItem(item) {
    return h(
        'li',
        {},
        h(
            'a',
            { href: `#/experiments/${item.id}` },
            h('span', { class: 'name' }),
            h('span', { class: 'state' }),
            h('span', { class: 'when' }),
            h(
                'span',
                { class: 'progress-line' },
                h('progress', { 'aria-hidden': 'true' }),
                h('span', { class: 'words' }),
            ),
        ),
    );
}

function updateItem(element, item, current) {
    const part = (name) => element.querySelector(name);
    const { runs_total: total, runs_done: done, runs_failed: failed } = item.progress;
    setText(part('.name'), nameOf(item));
    part('.name').title = nameOf(item);
    part('.state').dataset.state = item.state;
    setText(part('.state'), item.state);
    setText(part('.when'), time(item.created_at));
    part('progress').max = Math.max(total, 1);
    part('progress').value = done + failed;
    part('progress').dataset.state = item.state;
    setText(part('.words'), progressWords(item, etaNow(item)));
    const link = part('a');
    if (current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
}
