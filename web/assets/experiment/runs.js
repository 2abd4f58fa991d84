// SPDX-License-Identifier: MIT
// The runs of an experiment, in the order they are made.

import { get } from '../api.js';
import { fill, h, reconcile, setText } from '../dom.js';
import { absent } from '../facts.js';
import { duration, fieldTitle, fieldValue, integer, plural, reasonFor, throughput } from '../format.js';
import { capital, flagLabel } from './results.js';
import { showRun } from './run.js';
import { tableOf } from '../table.js';

const PAGE = 100;

export class Runs {
    /** `more()` is called when a further page is there. */
    constructor(experiment, more) {
        this.experiment = experiment;
        this.onMore = more;
        this.runs = new Map();
        this.next = null;
        this.head = h('tr', {});
        this.rows = h('tbody', {});
        this.count = h('span', { class: 'soft' });
        this.more = h(
            'button',
            { type: 'button', class: 'more', hidden: true, on: { click: () => this.#page() } },
            'Show more runs',
        );
        this.element = h(
            'section',
            { class: 'panel' },
            h(
                'details',
                { open: true },
                h('summary', {}, 'Runs ', this.count),
                h(
                    'div',
                    { class: 'table tall', tabindex: '0', role: 'region', 'aria-label': 'Runs' },
                    h('table', { class: 'cards' }, h('thead', {}, this.head), this.rows),
                ),
                this.more,
            ),
        );
    }

    setPoints(fields) {
        this.fields = fields;
        fill(
            this.head,
            ['Run', ...fields.map(fieldTitle), 'Repetition', 'State', 'Throughput', 'Notes', 'Details'].map((title) =>
                h(
                    'th',
                    { scope: 'col', class: ['message', 'Repetition', 'Throughput'].includes(title) ? 'number' : null },
                    capital(title),
                ),
            ),
        );
        this.rows.replaceChildren();
        this.#draw();
    }

    /** The first page, or again what is shown; gives the runs to `visit`. */
    async load(visit) {
        const list = await get(`/experiments/${this.experiment}/runs?limit=${PAGE}`);
        this.next = list.next ?? null;
        list.items.forEach((run) => {
            this.runs.set(run.id, run);
            visit(run);
        });
        this.#draw();
    }

    /** How long those that are done took, of the pages shown; null where none is. */
    meanSeconds() {
        const done = [...this.runs.values()].filter(({ state }) => state === 'done');
        const took = ({ started_at: from, finished_at: to }) => (new Date(to) - new Date(from)) / 1000;
        return done.length ? done.reduce((sum, run) => sum + took(run), 0) / done.length : null;
    }

    update(run) {
        /* Runs beyond the pages shown come with their page. */
        if (this.runs.has(run.id) || this.next === null) this.runs.set(run.id, run);
        this.#draw();
    }

    async #page() {
        const list = await get(
            `/experiments/${this.experiment}/runs?limit=${PAGE}&cursor=${encodeURIComponent(this.next)}`,
        );
        this.next = list.next ?? null;
        list.items.forEach((run) => this.runs.set(run.id, run));
        this.#draw();
        this.onMore();
    }

    #draw() {
        if (!this.fields) return;
        const runs = [...this.runs.values()];
        setText(this.count, `· ${integer(runs.length)}${this.next === null ? '' : ' shown'}`);
        this.more.hidden = this.next === null;
        reconcile(this.rows, runs, {
            key: (run) => run.id,
            create: () => h('tr', {}),
            update: (row, run) => {
                const digest = JSON.stringify([
                    run.state,
                    run.attempt,
                    run.error,
                    run.flags,
                    run.result?.throughput_bytes_per_second,
                ]);
                if (row.dataset.digest !== digest) this.#row(row, run);
                row.dataset.digest = digest;
            },
        });
    }

    #row(row, run) {
        const rate = run.result?.throughput_bytes_per_second;
        const focused = row.contains(document.activeElement);
        fill(
            row,
            h('td', { data: { title: 'Run' }, text: run.id }),
            this.fields.map((field) =>
                h(
                    'td',
                    { class: field === 'message_size' ? 'number' : null, data: { title: capital(fieldTitle(field)) } },
                    fieldValue(field, run.point[field]),
                ),
            ),
            h('td', { class: 'number', data: { title: 'Repetition' }, text: run.repetition }),
            h(
                'td',
                { data: { title: 'State' } },
                h('span', { class: 'state', data: { state: run.state }, text: run.state }),
            ),
            h(
                'td',
                { class: 'number', data: { title: 'Throughput' } },
                rate === null || rate === undefined
                    ? absent(reasonFor(run.result, 'throughput_bytes_per_second') ?? `the run is ${run.state}`)
                    : throughput(rate),
            ),
            h(
                'td',
                { class: 'wrap', data: { title: 'Notes' } },
                run.attempt > 1 && h('span', { class: 'flag', text: `attempt ${run.attempt}` }),
                run.flags.map(flagLabel),
                run.error && h('span', { class: 'field-error', text: run.error }),
            ),
            h(
                'td',
                {},
                h(
                    'button',
                    { type: 'button', 'aria-label': `Details of run ${run.id}`, on: { click: () => showRun(run.id) } },
                    'Details',
                ),
            ),
        );
        if (focused) row.querySelector('button').focus();
    }
}

/** Points left out, each with its reason. */
export function skippedPanel(skipped) {
    return h(
        'section',
        { class: 'panel' },
        h(
            'details',
            {},
            h(
                'summary',
                {},
                `Left out `,
                h('span', { class: 'soft', text: `· ${plural(skipped.length, 'point')} that cannot be measured here` }),
            ),
            tableOf(
                'Points left out',
                ['Point', 'Why'],
                skipped.map(({ point, reason }) =>
                    h(
                        'tr',
                        {},
                        h('td', {
                            text: Object.entries(point)
                                .map(([field, value]) => fieldValue(field, value))
                                .join(' · '),
                        }),
                        h('td', { class: 'wrap', text: reason }),
                    ),
                ),
                { kind: null },
            ),
        ),
    );
}

export const lasted = (from, to) => (from && to ? duration((new Date(to) - new Date(from)) / 1000) : null);
