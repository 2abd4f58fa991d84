// SPDX-License-Identifier: MIT
// What stands beside a map of pairs: one of them, with the runs that its figure is of, and of one run the series, the
// latencies and where its threads and pages were.

import { choose, chosen } from '../address.js';
import { get, getAll } from '../api.js';
import { Chart } from './charts.js';
import { fill, h, setText } from '../dom.js';
import { Figure } from './figure.js';
import { plural, throughput } from '../format.js';
import { proofsOf } from '../experiment/proof.js';
import { flagLabel } from '../experiment/results.js';
import { Samples, secondWords, slotOf } from '../experiment/samples.js';

const SAMPLES_MAX = 5000;

export class Cell {
    /** `closed()` is called when the reader closes it. */
    constructor(closed) {
        this.heading = h('h3', { id: 'cell-title' });
        this.words = h('p', { class: 'caption' });
        const change = () => {
            choose({ 'cell-run': this.select.value });
            this.#load(Number(this.select.value));
        };
        this.select = h('select', { id: 'cell-run', on: { change } });
        this.body = h('div', { class: 'stack' });
        this.element = h(
            'section',
            { class: 'cell-runs', id: 'cell', 'aria-labelledby': 'cell-title', 'aria-live': 'polite', hidden: true },
            h(
                'div',
                { class: 'panel-head' },
                this.heading,
                h(
                    'div',
                    { class: 'panel-tools' },
                    h('label', { for: 'cell-run' }, 'Run ', this.select),
                    h('button', { type: 'button', class: 'quiet', on: { click: closed } }, 'Close'),
                ),
            ),
            this.words,
            this.body,
        );
    }

    destroy() {
        this.#clear();
        this.row = null;
    }

    #clear() {
        this.chart?.destroy();
        this.figure?.destroy();
        this.chart = this.figure = null;
    }

    /** `cell` {row, statistic} of the figure `what`, and which pair it is in words; null: none. */
    show(cell, what, words) {
        this.element.hidden = !cell;
        this.element.parentNode?.classList.toggle('open', Boolean(cell));
        if (!cell) {
            this.row = null;
            return;
        }
        setText(this.heading, words);
        const { row, statistic } = cell;
        setText(
            this.words,
            [
                statistic ? `${what.title} ${what.format(statistic.median)}` : 'Not measured',
                plural(row.runs, 'run'),
                row.error,
            ]
                .filter(Boolean)
                .join(' · '),
        );
        const ids = JSON.stringify([row.point, row.run_ids]);
        if (this.row === ids) return;
        this.row = ids;
        const runs = row.run_ids ?? [];
        fill(
            this.select,
            runs.map((id) => h('option', { value: id, text: id })),
        );
        this.select.disabled = !runs.length;
        const first = runs.find((id) => String(id) === chosen('cell-run')) ?? runs[0];
        if (first) this.select.value = first;
        if (first) this.#load(first);
        else fill(this.body, h('p', { class: 'soft', text: 'None of its runs is done.' }));
    }

    async #load(id) {
        const row = this.row;
        try {
            const [run, { items }] = await Promise.all([
                get(`/runs/${id}`),
                getAll(`/runs/${id}/samples?limit=${SAMPLES_MAX}`, SAMPLES_MAX),
            ]);
            const histogram = run.result?.latency_ns ? (await get(`/runs/${id}/histogram`)).latency_histogram : null;
            if (this.row !== row || (this.select.value && Number(this.select.value) !== id)) return;
            this.#draw(run, items, histogram);
        } catch (error) {
            if (this.row === row) fill(this.body, h('p', { class: 'notice', role: 'alert', text: error.message }));
        }
    }

    #draw(run, samples, histogram) {
        this.#clear();
        fill(
            this.body,
            run.flags.length > 0 && h('p', {}, run.flags.map(flagLabel)),
            this.#series(run, samples),
            this.#latencies(run, histogram),
            h('h4', { text: 'Proof of placement' }),
            proofsOf(run, 'h5'),
        );
    }

    /* Second by second: what moved, or where nothing did, how often. */
    #series(run, samples) {
        const store = new Samples(SAMPLES_MAX);
        samples.forEach((sample) => store.add(sample));
        const line = store.timeline([run.id]);
        const [title, ys, format] = [
            ['Throughput, second by second', line.throughput, throughput],
            ['Calls, second by second', line.calls, (value) => `${value}/s`],
            ['Rounds, second by second', line.rounds, (value) => `${value}/s`],
        ].find(([, series]) => series.size) ?? [null];
        if (!title) return h('p', { class: 'soft', text: 'The run left no samples.' });
        this.chart = new Chart({ title, format, formatX: secondWords, note: () => `Run ${run.id}` });
        this.chart.set(
            line.xs,
            [...ys].map(([agent, values]) => ({ label: agent, ys: values, slot: slotOf(agent) })),
            (at) => `second ${line.xs[at] + 1}`,
        );
        return this.chart.element;
    }

    /* The run's own row, drawn as the large chart draws one. */
    #latencies(run, histogram) {
        if (!histogram) return null;
        const { kind, ...values } = run.result.latency_ns;
        const one = (value) => ({ median: value, min: value, max: value, ci95: null });
        const own = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, one(value)]));
        const row = {
            point: run.point,
            runs: 1,
            flags: run.flags,
            latency_ns: { kind, ...own },
            latency_histogram: histogram,
        };
        this.figure = new Figure(() => `Run ${run.id}`, {
            id: 'cell-latency',
            fixed: { figure: 'percentiles' },
            tall: 260,
            level: 'h4',
        });
        this.figure.element.classList.remove('panel');
        this.figure.update([row]);
        return this.figure.element;
    }
}
