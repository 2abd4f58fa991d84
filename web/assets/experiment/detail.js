// SPDX-License-Identifier: MIT
// One experiment: its state and progress, charts, results, runs and spec, updated until it has ended.

import { addressOf, choices, chosen } from '../address.js';
import { Problem, connection, follow, get, getWithText, post, remove, submission } from '../api.js';
import { pinForm } from '../compare/baselines.js';
import { confirm } from '../dialogs.js';
import { $, fill, h, patch, setText } from '../dom.js';
import { Drawings } from './drawings.js';
import { factList } from '../facts.js';
import { Findings } from './findings.js';
import { duration, plural, splitFields, time } from '../format.js';
import { etaNow, nameOf, originOf, progressWords, whole } from '../home/list.js';
import { machine, once } from '../machine.js';
import { Live } from './live.js';
import { extendForm, retriable, retry } from './more-runs.js';
import { Results } from './results.js';
import { serves } from '../routes.js';
import { block, showRun } from './run.js';
import { Runs, lasted, skippedPanel } from './runs.js';
import { columnsOf } from '../schema.js';
import { setSettings, settings, settingsLine } from '../settings.js';
import { memberText } from '../form/spec.js';
import { status } from '../status.js';
import { Ticks } from '../compare/ticks.js';
import { showError, showFailure, showMissing } from '../views.js';

const ENDED = new Set(['done', 'failed', 'cancelled']);
const RESULTS_EVERY_MS = 1000;
const SLOWER = 'slower_than_baseline:';
const NOWHERE = { nodes: [], cpus: [], caches: [] };
const SPREAD = 16; /* message sizes this far apart start on a logarithmic axis */

export class Detail {
    /**
     * `changed(experiment)` is called with every new state, `gone(id)` when it was deleted, `opened(experiment)` with
     * one that was started from here.
     */
    constructor(main, id, { changed, gone, opened }) {
        Object.assign(this, { main, id, changed, gone, opened, waiting: [], loaded: false });
        this.submit = submission();
        this.left = new AbortController();
        fill(main, h('p', { class: 'soft', text: 'Loading…' }));
        this.#open();
    }

    close() {
        this.closed = true;
        this.left.abort();
        this.stream?.close();
        clearInterval(this.clock);
        clearTimeout(this.resultsTimer);
        this.findings?.destroy();
        this.drawings?.destroy();
        this.live?.destroy();
        this.results?.destroy();
    }

    async #open() {
        try {
            const [experiment, openapi] = await Promise.all([get(`/experiments/${this.id}`), once('/openapi.json')]);
            if (this.closed) return;
            setSettings(() => settingsLine(this.experiment, this.provenance));
            this.#build(columnsOf(openapi));
            this.#take(experiment);
            if (/^[1-9]\d*$/.test(chosen('run'))) showRun(Number(chosen('run')));
            if (!this.stream) await this.#load(true);
        } catch (error) {
            if (!this.closed) this.#fails(error);
        }
    }

    #follow() {
        this.stream = follow(`/experiments/${this.id}/events`, {
            onOpen: () => this.#load(false),
            poll: () => this.#load(true),
            onEvent: (type, data) => (this.loaded ? this.#event(type, data) : this.waiting.push([type, data])),
        });
    }

    /*
     * Reads what there is (samples only where no stream brings them, from the first on), then takes what came in the
     * meantime: an older answer never stands over a newer event.
     */
    async #load(samples) {
        this.loaded = false;
        const [experiment] = await Promise.all([
            get(`/experiments/${this.id}`),
            this.#loadResults(),
            this.runs.load((run) => this.live.updateRun(run)),
            samples && this.live.load(),
        ]);
        if (this.closed) return;
        this.#take(experiment);
        this.loaded = true;
        this.#tellRuns();
        if (ENDED.has(experiment.state)) this.#conclude().catch((error) => this.#notice('findings', error.message));
        this.waiting.splice(0).forEach(([type, data]) => this.#event(type, data));
    }

    #event(type, data) {
        if (type === 'experiment') this.#take(data);
        else if (type === 'run') this.#takeRun(data);
        else if (type === 'sample') this.live.addSample(data);
        else if (type === 'deletion') this.deleted(data.experiment_id);
        else if (type === 'end') this.#end();
    }

    #takeRun(run) {
        this.runs.update(run);
        this.live.updateRun(run);
        if (!['queued', 'running'].includes(run.state)) this.#resultsSoon();
    }

    #resultsSoon() {
        this.resultsTimer ??= setTimeout(() => {
            this.resultsTimer = undefined;
            this.#loadResults().catch(() => {});
        }, RESULTS_EVERY_MS);
    }

    async #loadResults() {
        const { items, provenance } = await get(`/experiments/${this.id}/results`);
        if (this.closed) return;
        this.provenance = provenance;
        const points = items.map((row) => row.point);
        this.points = points.length;
        this.#draw(); /* more runs can be offered */
        const { varying } = splitFields(points);
        const sizes = points.map((point) => point.message_size ?? 1);
        if (JSON.stringify(varying) !== this.fields) {
            this.fields = JSON.stringify(varying);
            this.runs.setPoints(varying);
            this.live.setPoints(varying, Math.max(...sizes) / Math.min(...sizes) >= SPREAD);
        }
        this.results.update(items, this.experiment.state);
        await this.#drawFigure(items);
    }

    /* The latencies' whole curves are read once the runs are over. */
    async #drawFigure(rows) {
        if (!rows.some((row) => row.runs > 0)) return;
        const { topology } = await machine();
        if (this.closed) return;
        if (!this.drawings) {
            /* What another host looks like is not known. */
            this.drawings = new Drawings(this.experiment.imported ? NOWHERE : topology, settings);
            this.findings.element.after(this.drawings.element);
            this.runs.element.before(this.drawings.timeLine.element);
        }
        this.drawings.update(rows);
        this.#tellRuns();
    }

    #tellRuns() {
        this.drawings?.setRuns([...this.runs.runs.values()], this.experiment.progress.runs_total);
    }

    async #conclude() {
        await Promise.all([this.findings.load(), this.#offerComparisons()]);
        if (!(await serves('/experiments/{id}/results', 'histogram'))) return;
        const { items } = await get(`/experiments/${this.id}/results?histogram=1`);
        if (!this.closed && items.some((row) => row.latency_histogram)) await this.#drawFigure(items);
    }

    async #offerComparisons() {
        const [{ items: rows }, { items: pinned }] = await Promise.all([
            get(`/experiments/${this.id}/results`),
            get('/baselines'),
        ]);
        const others = pinned.filter((one) => one.experiment_id !== this.id);
        if (!this.closed)
            this.ticks.update(
                rows.map(({ point }) => point),
                others.map(({ name }) => name),
            );
    }

    #chosen(finding) {
        this.drawings?.light(finding?.rows ?? null);
    }

    #build(columns) {
        const button = (label, properties) => h('button', { type: 'button', ...properties }, label);
        this.heading = h('h1', {});
        this.state = h('span', { class: 'state' });
        this.meta = h('p', { class: 'meta' });
        this.againButton = button('Run again', { id: 'again', on: { click: () => this.#again() } });
        this.moreButton = button('More runs…', { id: 'extend', on: { click: () => this.#extend() } });
        this.retryButton = button('Retry', { id: 'retry', on: { click: () => this.#act(() => retry(this.id)) } });
        this.pinButton = button('Pin…', { id: 'pin', on: { click: () => this.#pin() } });
        this.asked = h('div', {}); /* the form that a button has opened */
        this.bundleLink = h('a', {
            class: 'button',
            id: 'bundle',
            href: `/experiments/${this.id}/bundle`,
            download: true,
            text: 'Bundle',
        });
        this.cancelButton = button('Cancel', { id: 'cancel', on: { click: () => this.#cancel() } });
        this.deleteButton = button('Delete', { id: 'delete', class: 'danger', on: { click: () => this.#delete() } });
        this.bar = h('progress', { 'aria-label': 'Runs finished' });
        this.words = h('span', {});
        this.timing = h('span', { class: 'soft' });
        this.notices = h('div', { class: 'stack' });
        this.progressBox = h(
            'div',
            { class: 'progress-box' },
            h('div', { class: 'words' }, this.words, this.timing),
            this.bar,
        );
        this.progress = h('section', { class: 'panel', 'aria-label': 'Progress' }, this.progressBox, this.notices);
        this.live = new Live(this.id);
        this.results = new Results(this.id, columns);
        this.runs = new Runs(this.id, () => this.#tellRuns());
        this.findings = new Findings(this.id, (finding) => this.#chosen(finding));
        this.ticks = new Ticks(this.id);
        this.skipped = h('div', {});
        this.spec = h('section', { class: 'panel', id: 'provenance', 'aria-labelledby': 'provenance-title' });
        fill(
            this.main,
            h('a', { class: 'back', href: '#/', text: '← All experiments' }),
            h(
                'div',
                { class: 'title' },
                h('div', {}, this.heading, this.meta),
                (this.buttons = h(
                    'div',
                    { class: 'buttons' },
                    this.againButton,
                    this.moreButton,
                    this.retryButton,
                    h('a', {
                        class: 'button',
                        id: 'present',
                        href: `#/experiments/${this.id}?present`,
                        on: { click: (event) => this.#present(event) },
                        text: 'Present',
                    }),
                    h('a', {
                        class: 'button',
                        id: 'report',
                        href: `/experiments/${this.id}/report`,
                        text: 'Report',
                    }),
                    this.bundleLink,
                    h('a', {
                        class: 'button',
                        id: 'compare',
                        href: `#/compare?candidate=${this.id}`,
                        text: 'Compare…',
                    }),
                    this.pinButton,
                    h('a', { class: 'button', id: 'change', href: `#/new?from=${this.id}`, text: 'Change…' }),
                    this.cancelButton,
                    this.deleteButton,
                )),
            ),
            this.asked,
            this.progress,
            this.findings.element,
            this.results.element,
            this.ticks.element,
            this.results.study.element,
            this.live.element,
            this.runs.element,
            this.skipped,
            this.spec,
        );
        this.clock = setInterval(() => this.#timing(), 1000);
        connection.addEventListener('change', () => this.#timing(), { signal: this.left.signal });
    }

    #take(experiment) {
        if (this.closed) return;
        const before = this.experiment?.state;
        this.experiment = { ...experiment, received_at: performance.now() };
        this.#draw();
        if (!ENDED.has(experiment.state) && !this.stream) this.#follow();
        this.changed(experiment);
        if (before === experiment.state) return;
        this.live.setState(experiment.state);
        if (before !== undefined)
            setText(
                $('announcer'),
                `${nameOf(experiment)} is ${experiment.state}${experiment.error ? `: ${experiment.error}` : ''}`,
            );
        if (before !== undefined && ENDED.has(experiment.state)) this.#end();
    }

    /* The last word is read once more, then there is nothing to listen to. */
    #end() {
        if (!this.stream) return;
        this.stream.close();
        this.stream = null;
        this.waiting = []; /* older than the end */
        this.#load(true).catch((error) => this.#fails(error));
    }

    #draw() {
        const { experiment } = this;
        const { runs_total: total, runs_done: done, runs_failed: failed } = experiment.progress;
        document.title = `${nameOf(experiment)} · ipclab`;
        setText(this.heading, nameOf(experiment));
        this.state.dataset.state = experiment.state;
        setText(this.state, experiment.state);
        patch(
            this.meta,
            this.state,
            h('span', { text: `Experiment ${experiment.id}` }),
            h('span', { text: `created ${time(experiment.created_at)}` }),
            experiment.imported && h('span', { id: 'origin', text: `${originOf(experiment)}, taken in as a bundle` }),
            experiment.finished_at &&
                h('span', { text: `took ${lasted(experiment.started_at, experiment.finished_at) ?? duration(0)}` }),
            whole(experiment) && h('span', { text: progressWords(experiment) }),
            (experiment.flags ?? [])
                .filter((flag) => flag.startsWith(SLOWER))
                .map((flag) => flag.slice(SLOWER.length))
                .map((name) =>
                    h('a', { class: 'flag', href: `#/baselines/${name}`, text: `slower than the baseline ${name}` }),
                ),
        );
        this.bar.max = Math.max(total, 1);
        this.bar.value = done + failed;
        this.bar.dataset.state = experiment.state;
        this.progressBox.hidden = whole(experiment);
        this.cancelButton.hidden = ENDED.has(experiment.state);
        this.deleteButton.hidden = experiment.state === 'running';
        this.bundleLink.hidden = !ENDED.has(experiment.state);
        this.pinButton.hidden = !ENDED.has(experiment.state) || done === 0;
        this.moreButton.hidden =
            experiment.imported || experiment.search || experiment.state === 'cancelled' || !this.points;
        this.retryButton.hidden =
            experiment.imported || !ENDED.has(experiment.state) || retriable(experiment) === 0;
        setText(this.retryButton, `Retry ${plural(retriable(experiment), 'run')}`);
        this.#notice('error', experiment.error);
        if (this.skippedCount !== (experiment.skipped?.length ?? 0)) {
            this.skippedCount = experiment.skipped?.length ?? 0;
            fill(this.skipped, this.skippedCount > 0 && skippedPanel(experiment.skipped));
        }
        this.#drawOrigin();
        this.#timing();
    }

    /* Where the figures come from; host and kernel are known with the first runs. */
    #drawOrigin() {
        const { spec, effective_spec: effective, seed, version, imported, created_at: created } = this.experiment;
        this.specs ??= h(
            'div',
            {},
            block('Spec, as posted', spec),
            block('Spec in effect, with preset and defaults', effective),
        );
        const { host, kernel, date } = this.provenance ?? {};
        patch(
            this.spec,
            h('h2', { id: 'provenance-title', text: 'Where the figures come from' }),
            factList([
                ['host', host ?? (imported && 'another host')],
                ['kernel', kernel],
                ['date', time(date ?? created, new Date(0))],
                ['accepted by', version && `ipclab ${version}`],
                ['order of the runs', `seed ${seed}`],
            ]),
            this.specs,
        );
    }

    #timing() {
        const { experiment } = this;
        const eta = etaNow(experiment);
        setText(
            this.words,
            progressWords(experiment, null).replace(/^./, (letter) => letter.toUpperCase()),
        );
        setText(this.timing, ENDED.has(experiment.state) ? '' : this.#timingWords(eta));
    }

    #timingWords(eta) {
        if (!status.answers) return 'as last known: ipclabd does not answer';
        return eta === null ? '' : `about ${duration(eta)} left`;
    }

    /* `error`: what the person waits for, and is brought into view. */
    #notice(key, text, error = null) {
        let notice = this.notices.querySelector(`[data-notice=${key}]`);
        if (!notice && text)
            this.notices.append((notice = h('p', { class: 'notice', role: 'alert', data: { notice: key } })));
        if (notice && !text) notice.remove();
        else if (notice) setText(notice, text);
        this.notices.hidden = !this.notices.hasChildNodes();
        this.progress.hidden = this.progressBox.hidden && this.notices.hidden;
        if (notice && error) showError(notice, error);
    }

    /* Presents the view with all that was chosen in it. */
    #present(event) {
        event.preventDefault();
        location.hash = addressOf(`/experiments/${this.id}`, [...choices(), ['present', '']]);
    }

    /* The spec as it was written, to the letter. */
    async #again() {
        this.againButton.disabled = true;
        await this.#act(async () => {
            const { text } = await getWithText(`/experiments/${this.id}`);
            const experiment = await this.submit(memberText(text, 'spec'));
            if (!this.closed) this.opened(experiment);
        });
        this.againButton.disabled = false;
    }

    /* Opens a form below the buttons, `make(close)`, with the focus in its first field. */
    async #ask(asking, make) {
        const close = () => {
            fill(this.asked);
            asking.focus();
        };
        await this.#act(async () => {
            fill(this.asked, await make(close));
            this.asked.querySelector('input').focus();
        });
    }

    #pin() {
        return this.#ask(this.pinButton, (closed) => pinForm(this.experiment, closed));
    }

    #extend() {
        const { experiment } = this;
        return this.#ask(this.moreButton, (closed) =>
            extendForm({
                experiment,
                points: this.points,
                has: Math.round(experiment.progress.runs_total / this.points),
                seconds: this.runs.meanSeconds(),
                needed: this.findings.needed,
                closed,
                done: (extended) => {
                    closed();
                    this.#take(extended);
                },
            }),
        );
    }

    /** What the list's events bring of an experiment that was extended or retried elsewhere: it is followed again. */
    resumed(experiment) {
        if (experiment.id === this.experiment?.id && !this.stream && !ENDED.has(experiment.state)) this.#take(experiment);
    }

    /** It was deleted elsewhere: what is shown stays, with that said. */
    deleted(id) {
        if (id !== this.experiment?.id || this.closed || this.deleting) return;
        this.close();
        this.buttons.hidden = true;
        this.#notice('action', 'This experiment was deleted. What is shown here is no longer stored.');
    }

    async #cancel() {
        const agreed = await confirm({
            title: 'Cancel this experiment?',
            text:
                this.experiment.state === 'running'
                    ? `“${nameOf(this.experiment)}” is stopped. Finished runs keep their results; no others are made.`
                    : `“${nameOf(this.experiment)}” is taken from the queue, and its runs are not made.`,
            action: 'Cancel the experiment',
            keep: 'Let it run',
        });
        if (agreed && !ENDED.has(this.experiment.state)) await this.#act(() => post(`/experiments/${this.id}/cancel`));
    }

    async #delete() {
        const agreed = await confirm({
            title: 'Delete this experiment?',
            text: `“${nameOf(this.experiment)}”, its results and its samples will be gone for good.`,
            action: 'Delete',
            keep: 'Keep it',
        });
        if (!agreed) return;
        await this.#act(async () => {
            this.deleting = true;
            await remove(`/experiments/${this.id}`).finally(() => (this.deleting = false));
            this.close();
            this.gone(this.id);
        });
    }

    async #act(action) {
        this.#notice('action', '');
        try {
            await action();
            if (!this.closed) await this.#load(!this.stream);
        } catch (error) {
            if (!this.closed) this.#notice('action', error.message, error);
        }
    }

    #fails(error) {
        if (this.closed) return;
        if (error instanceof Problem && error.status === 404)
            showMissing(this.main, `There is no experiment ${this.id}`, 'It may have been deleted.');
        else if (this.experiment) this.#notice('action', error.message, error);
        else showFailure(this.main, error);
    }
}
