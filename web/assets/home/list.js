// SPDX-License-Identifier: MIT
// The list of experiments: newest first, a page at a time, updated by the daemon's event stream.

import { addressOf, chosen, choose } from '../address.js';
import { connection, follow, get, post, postFile, remove } from '../api.js';
import { confirm } from '../dialogs.js';
import { $, h, reconcile, setText } from '../dom.js';
import { duration, integer, plural, time } from '../format.js';
import { status } from '../status.js';

const PAGE = 25;
const REFRESH_SOON_MS = 1000;
const REFRESH_MS = 30000;
const TYPED_MS = 300; /* after the last letter of a search */

const STREAM_OPENS_MS = 1000; /* after which the list is read without it */

/* The actions on all listed experiments: their words, which experiments they apply to, and the request. */
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

/** An experiment's progress in words. */
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

/** Whether all of its runs are done: a bar would show nothing. */
export const whole = ({ state, progress }) => state === 'done' && progress.runs_done === progress.runs_total;

/** Seconds left by now, from the estimate as received; null where it is not known, as while the daemon is silent. */
export const etaNow = (experiment) =>
    experiment.eta_seconds === null || experiment.eta_seconds === undefined || !status.answers
        ? null
        : Math.max(0, experiment.eta_seconds - (performance.now() - experiment.received_at) / 1000);

export const nameOf = (experiment) => experiment.name || `Experiment ${experiment.id}`;

/** Where an experiment was measured that came as a bundle; empty for one of this host. */
export function originOf({ imported }) {
    if (!imported) return '';
    return imported.host ? `of host ${imported.host}` : 'of another host';
}

const BUNDLE_NAME = /-([0-9a-f]{64})\.json\.gz$/;

export class List {
    /**
     * `opens()` begins to open an experiment, and returns what shows it once it is there. `changed(experiment)` and
     * `gone(id)` are called with what the daemon's event stream brings.
     */
    constructor({ opens, changed, gone }) {
        Object.assign(this, { opens, changed, gone });
        this.items = new Map();
        this.current = 0;
        this.cursor = null;
        this.generation = 0;
        this.ticked = []; /* two experiments at most, as they were ticked */
        this.#fromAddress();
        $('list-filter').addEventListener('change', () => this.#chosen());
        $('list-search').addEventListener('input', () => {
            clearTimeout(this.typing);
            this.typing = setTimeout(() => this.#chosen(), TYPED_MS);
        });
        $('list-cancel').addEventListener('click', () => this.#many(CANCEL));
        $('list-delete').addEventListener('click', () => this.#many(DELETE));
        $('list-older').addEventListener('click', () => this.#older());
        $('list-ticks').addEventListener('toggle', () => this.#draw());
        $('list').addEventListener('change', ({ target }) => this.#tick(Number(target.value), target.checked));
        $('bundle-file').addEventListener('change', ({ target }) => this.#takeIn(target));
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
                onEvent: (type, data) => {
                    if (type === 'experiment') this.#receive(data);
                    else if (type === 'deletion') this.#lose(data.experiment_id);
                },
            });
            setTimeout(() => this.loaded || read(), STREAM_OPENS_MS);
        });
    }

    /** A view was opened, of this experiment or of none (0). What was chosen in the list stays in the address. */
    select(id) {
        this.current = id;
        if (this.#fromAddress()) this.reload();
        choose(this.#choices());
        this.#draw();
    }

    #choices() {
        return {
            state: $('list-filter').value || null,
            q: this.#words() || null,
            experiments: this.ticked.join() || null,
        };
    }

    /* When one starts or ends, the others' places in the queue change without an event of their own. */
    #receive(experiment) {
        if (this.items.get(experiment.id)?.state !== experiment.state) this.#refreshSoon();
        status.take(experiment);
        this.put(experiment);
        this.changed(experiment);
    }

    /* The daemon's counts and the others' places in the queue change, too. */
    #lose(id) {
        this.#refreshSoon();
        this.drop(id);
        this.gone(id);
    }

    #refreshSoon() {
        this.soon ??= setTimeout(() => {
            this.soon = undefined;
            this.refresh().catch(() => {});
        }, REFRESH_SOON_MS);
    }

    /* The address' choices, where it has any; true when others are listed than before. */
    #fromAddress() {
        const ticked = chosen('experiments');
        if (ticked !== null && ticked !== this.ticked.join()) {
            this.ticked = ticked.split(',').map(Number).filter((id) => Number.isInteger(id) && id > 0).slice(-2);
            $('list-ticks').open = true;
        }
        const controls = [
            ['state', $('list-filter')],
            ['q', $('list-search')],
        ];
        return (
            controls.filter(([name, control]) => {
                const value = chosen(name);
                const other = value !== null && control.value !== value;
                if (other) control.value = value;
                return other;
            }).length > 0
        );
    }

    /* The third takes the place of the first. */
    #tick(id, on) {
        this.ticked = this.ticked.filter((one) => one !== id);
        if (on) this.ticked = [...this.ticked, id].slice(-2);
        choose(this.#choices());
        this.#draw();
    }

    /* A file on this computer. Its name has the digest, by which the daemon knows the bundle. */
    async #takeIn(control) {
        const [file] = control.files;
        const digest = BUNDLE_NAME.exec(file?.name ?? '')?.[1];
        if (!file) return;
        const refused = `${file.name}: the name of a bundle ends in 64 hexadecimal digits and .json.gz.`;
        setText($('bundle-error'), digest ? '' : refused);
        if (!digest) return;
        const opened = this.opens();
        control.disabled = true;
        try {
            opened(await postFile(`/bundles?sha256=${digest}`, file, 'application/gzip'));
        } catch (failure) {
            setText($('bundle-error'), failure.message);
        }
        control.disabled = false;
        control.value = '';
    }

    #chosen() {
        choose(this.#choices());
        this.reload();
    }

    #words() {
        return $('list-search').value.trim();
    }

    /* Runs the action for one after the other; the first refusal ends it and is shown. */
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

    /* Whether the experiment matches the list's filter and search words, as the server would decide. */
    #isWanted({ name, state, spec }) {
        const words = this.#words().toLowerCase();
        const wanted = $('list-filter').value;
        if (wanted && state !== wanted) return false;
        return !words || [name ?? '', JSON.stringify(spec)].some((text) => text.toLowerCase().includes(words));
    }

    /** Adds or updates an experiment as the server sent it. */
    put(experiment, listed = false) {
        if (!listed && !this.#isWanted(experiment)) this.items.delete(experiment.id);
        else this.items.set(experiment.id, { ...experiment, received_at: performance.now() });
        this.#draw();
    }

    drop(id) {
        this.items.delete(id);
        if (this.ticked.includes(id)) this.#tick(id, false);
        this.#draw();
    }

    /* Until the answer has come, those that are listed and match stay in sight: what is done to all of them is done to
       those that a reader sees. */
    async reload() {
        for (const [id, item] of this.items) if (!this.#isWanted(item)) this.items.delete(id);
        this.#draw();
        this.loaded = false;
        this.generation++;
        await this.#attempt(async () => {
            const asked = performance.now();
            const answer = await this.#page(null);
            if (answer) this.#keepOnly(answer.items, asked);
        });
    }

    #older() {
        return this.#attempt(() => this.#page(this.cursor));
    }

    /* Of those that an answer would name, the ones that it names; an event that came after the request knows better. */
    #keepOnly(items, asked, oldest = 0) {
        const named = new Set(items.map(({ id }) => id));
        for (const [id, item] of this.items)
            if (id >= oldest && !named.has(id) && item.received_at < asked) this.items.delete(id);
        this.#draw();
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

    /* Reads the newest page again, for changes while no stream was open; queue positions change without an event. */
    async refresh() {
        if (!this.loaded) return this.reload();
        const generation = this.generation;
        const asked = performance.now();
        const [{ items }] = await Promise.all([get(this.#path(null)), status.refresh()]);
        if (generation !== this.generation) return; /* others were searched for meanwhile */
        this.error = null;
        items.forEach((item) => this.put(item, true));
        this.#keepOnly(items, asked, items.at(-1)?.id);
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
        const answer = await get(this.#path(cursor));
        if (generation !== this.generation) return null;
        this.error = null;
        this.cursor = answer.next ?? null;
        answer.items.forEach((item) => this.put(item, true));
        this.loaded = true;
        this.#draw();
        return answer;
    }

    #draw() {
        const sorted = [...this.items.values()].sort((a, b) => b.id - a.id);
        const query = Object.entries(this.#choices()).filter(([, value]) => value !== null);
        reconcile($('list'), sorted, {
            key: (item) => item.id,
            create: createItem,
            update: (element, item) => {
                element.querySelector('a').href = addressOf(`/experiments/${item.id}`, query);
                updateItem(element, item, item.id === this.current, this.ticked.includes(item.id));
            },
        });
        this.#drawTicked();
        $('list-older').hidden = this.cursor === null;
        const words = this.#nothing(sorted.length);
        $('list-many').hidden = sorted.length === 0;
        $('list-empty').hidden = !words;
        setText($('list-empty'), words);
    }

    /* The newer one is compared with the older one. */
    #drawTicked() {
        const link = $('list-compare');
        const [baseline, candidate] = [...this.ticked].sort((a, b) => a - b);
        $('list').dataset.ticks = $('list-ticks').open;
        $('list-ticks-hint').hidden = candidate !== undefined;
        link.hidden = candidate === undefined;
        if (link.hidden) return;
        link.href = addressOf('/compare', { baseline, candidate });
        setText(link, `Compare ${baseline} and ${candidate}`);
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
        h('input', { type: 'checkbox', value: item.id, title: 'Compare: tick two' }),
        h(
            'a',
            {},
            h('span', { class: 'name' }),
            h('span', { class: 'state' }),
            h('span', { class: 'when' }),
            h('span', { class: 'origin' }),
            h(
                'span',
                { class: 'progress-line' },
                h('span', { class: 'words' }),
                h('progress', { 'aria-hidden': 'true' }),
            ),
        ),
    );
}

function updateItem(element, item, current, ticked) {
    const part = (name) => element.querySelector(name);
    const { runs_total: total, runs_done: done, runs_failed: failed } = item.progress;
    setText(part('.name'), nameOf(item));
    part('.name').title = nameOf(item);
    part('.state').dataset.state = item.state;
    setText(part('.state'), item.state);
    setText(part('.when'), time(item.created_at));
    setText(part('.origin'), originOf(item));
    part('input').checked = ticked;
    part('input').setAttribute('aria-label', `Compare ${nameOf(item)}`);
    part('progress').max = Math.max(total, 1);
    part('progress').value = done + failed;
    part('progress').dataset.state = item.state;
    part('progress').hidden = whole(item);
    setText(part('.words'), progressWords(item, etaNow(item)));
    const link = part('a');
    if (current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
}
