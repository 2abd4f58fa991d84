// SPDX-License-Identifier: MIT
// The charts of an experiment's samples, growing as they arrive: throughput of every agent, or calls and switches where
// nothing is moved, and latency where a workload has one. Shows all runs one after another, or one of them.

import { choose, chosen } from '../address.js';
import { getAll } from '../api.js';
import { Chart } from '../chart/charts.js';
import { h, reconcile, setText } from '../dom.js';
import { latencyKind, nanoseconds, perSecond, plural, pointLabel, throughput } from '../format.js';
import { Samples, secondWords, slotOf } from './samples.js';

const SAMPLES_MAX = 20000;
const PAGE = 5000;

export class Live {
    constructor(experiment) {
        this.experiment = experiment;
        this.samples = new Samples(SAMPLES_MAX);
        this.runs = new Map(); /* id → run, as far as known */
        this.fields = undefined;
        this.frame = 0;
        const note = () => this.select.selectedOptions[0]?.textContent ?? '';
        const chart = (title, format) => new Chart({ title, format, formatX: secondWords, note });
        this.charts = {
            throughput: chart('Throughput', throughput),
            calls: chart('Calls per second', perSecond),
            rounds: chart('Rounds of context switches per second', perSecond),
            latency: chart('Latency', nanoseconds),
        };
        this.#build();
    }

    #build() {
        const choosing = (values) => ({
            change: () => {
                choose(values());
                this.#schedule();
            },
        });
        const run = () => ({ 'live-run': Number(this.select.value) || null });
        const scale = () => ({ 'live-scale': this.log.checked ? 'log' : 'linear' });
        this.select = h('select', { id: 'live-run', on: choosing(run) });
        this.log = h('input', { type: 'checkbox', id: 'live-log', on: choosing(scale) });
        this.note = h('p', { class: 'hint' });
        this.empty = h('p', { class: 'soft' });
        this.body = h('div', { class: 'charts' });
        this.element = h(
            'section',
            { class: 'panel', 'aria-labelledby': 'live-title' },
            h(
                'div',
                { class: 'panel-head' },
                h('h2', { id: 'live-title', text: 'Samples, second by second' }),
                h(
                    'div',
                    { class: 'panel-tools' },
                    h('label', { for: 'live-run' }, 'Show ', this.select),
                    h('label', { for: 'live-log' }, this.log, ' Log scale'),
                ),
            ),
            this.empty,
            this.body,
            this.note,
        );
        this.#draw();
    }

    /** Sets the fields that distinguish this experiment's points. A wide spread of sizes has a logarithmic axis. */
    setPoints(fields, spread) {
        const first = this.fields === undefined;
        this.fields = fields;
        if (first) this.log.checked = (chosen('live-scale') ?? (spread ? 'log' : 'linear')) === 'log';
        this.#schedule();
    }

    async load() {
        const { items, complete } = await getAll(`/experiments/${this.experiment}/samples?limit=${PAGE}`, SAMPLES_MAX);
        items.forEach((sample) => this.samples.add(sample));
        this.samples.truncated ||= !complete;
        this.#schedule();
    }

    addSample(sample) {
        this.samples.add(sample);
        this.#schedule();
    }

    updateRun(run) {
        const before = this.runs.get(run.id);
        if (before && beganAgain(before, run)) this.samples.forget(run.id);
        this.runs.set(run.id, run);
        this.#schedule();
    }

    setState(state) {
        this.state = state;
        this.#schedule();
    }

    destroy() {
        cancelAnimationFrame(this.frame);
        Object.values(this.charts).forEach((chart) => chart.destroy());
    }

    #schedule() {
        this.frame ||= requestAnimationFrame(() => {
            this.frame = 0;
            this.#draw();
        });
    }

    #label(id) {
        const run = this.runs.get(id);
        const point = run?.point ? ` · ${pointLabel(run.point, this.fields?.length ? this.fields : undefined)}` : '';
        return `Run ${id}${point}${run?.repetition > 1 ? ` · repetition ${run.repetition}` : ''}`;
    }

    #draw() {
        const known = [...this.samples.runs.keys()];
        reconcile(this.select, [0, ...known], {
            key: (id) => id,
            create: (id) => h('option', { value: id }),
            update: (option, id) => setText(option, id ? this.#label(id) : `All runs (${known.length})`),
        });
        const one = known.find((id) => String(id) === chosen('live-run'));
        this.select.value = one ?? 0;
        const line = this.samples.timeline(one ? [one] : known);
        const describe = (index) =>
            line.at[index] ? `${this.#label(line.at[index].run)} · second ${line.at[index].second + 1}` : '';
        for (const rate of ['throughput', 'calls', 'rounds'])
            this.#show(
                this.charts[rate],
                line,
                describe,
                [...line[rate]].map(([agent, ys]) => ({ label: agent, ys, slot: slotOf(agent) })),
            );
        this.charts.latency.setTitle(latencyTitle(line.kinds));
        this.#show(this.charts.latency, line, describe, latencySeries(line));
        this.#words(known.length);
    }

    #show(chart, line, describe, series) {
        const visible = series.length > 0;
        if (visible && !chart.element.parentNode) this.#place(chart);
        else if (!visible) chart.element.remove();
        chart.setLog(this.log.checked);
        if (visible) chart.set(line.xs, series, describe);
    }

    /* Charts stand in the order of the list, whichever figure came first. */
    #place(chart) {
        const charts = Object.values(this.charts);
        const next = charts.slice(charts.indexOf(chart) + 1).find((later) => later.element.parentNode);
        this.body.insertBefore(chart.element, next?.element ?? null);
    }

    #words(runs) {
        const waiting = {
            queued: 'Waiting in the queue: the charts start with the first run.',
            running: 'The first sample comes after the warm-up and a second of measuring.',
        };
        setText(this.empty, runs ? '' : (waiting[this.state] ?? (this.state ? 'No samples were recorded.' : 'Loading…')));
        this.empty.hidden = runs > 0;
        setText(
            this.note,
            this.samples.truncated
                ? `${plural(SAMPLES_MAX, 'sample')} are drawn, not all there are; the download has them all.`
                : '',
        );
    }
}

/* The same attempt may begin again: one that a stop of the daemon interrupted does not count. */
const beganAgain = (before, run) =>
    before.attempt !== run.attempt || (Boolean(before.started_at) && before.started_at !== run.started_at);

/* A kind stands in the title where it is that of all lines. */
function latencyTitle(kinds) {
    const [first, ...others] = kinds;
    return first && !others.length ? `Latency, ${latencyKind(first)}` : 'Latency';
}

/* p50 and p99 of the agents that time their messages; the agent is named when there is more than one. */
function latencySeries(line) {
    const several = line.p50.size > 1;
    return [...line.p50].flatMap(([agent, ys]) => {
        const of = (several ? ` ${agent}` : '') + (line.timing.get(agent) > 1 ? ', slowest thread' : '');
        return [
            { label: `p50${of}`, ys, slot: slotOf(agent) },
            { label: `p99${of}`, ys: line.p99.get(agent), slot: slotOf(agent), variant: 1 },
        ];
    });
}
