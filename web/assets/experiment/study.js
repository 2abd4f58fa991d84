// SPDX-License-Identifier: MIT
// The plots of a study of copy modes: throughput and misses by size, latency by threads, and what a byte costs beside
// what it costs when it is copied twice. For every experiment that has copy modes to compare.

import { choose, chosen } from '../address.js';
import { fill, h } from '../dom.js';
import { figure, nanoseconds, reasonFor, size } from '../format.js';
import { Plots } from '../chart/plots.js';

const BASE = 'two-copy';
const SERIES_AT_ONCE = 8;

/* The unit of such studies: 2.5e9 bytes per second are "20 Gbit/s". */
const gigabits = (value) => `${figure((value * 8) / 1e9, 3)} Gbit/s`;

const distinct = (rows, field) =>
    [...new Set(rows.map((row) => row.point[field]).filter((value) => value !== undefined))].sort((a, b) => a - b);

/** Whether a table of results is such a study. */
export const isStudy = (rows) => new Set(rows.map((row) => row.point.copy_mode).filter(Boolean)).size > 1;

/**
 * The rows of such a table that are one study: a round trip moves data both ways and its time is another figure than a
 * stream's, so of several workloads one is taken, streams if those have copy modes to compare.
 */
export function studied(rows) {
    const workloads = [...new Set(rows.map((row) => row.point.workload))];
    if (workloads.length < 2) return rows;
    const of = (workload) => rows.filter((row) => row.point.workload === workload);
    return ['stream', ...workloads].map(of).find(isStudy) ?? rows;
}

/* The rows that are left out of a study, in words. */
function selection(rows, taken) {
    return taken.length < rows.length ? `Of workload ${taken[0].point.workload} only.` : '';
}

/* How many fields a message has follows from its mode, and distinguishes no rows, unless it varies within a mode. */
function ignored(rows) {
    const first = new Map();
    const varies = rows.some(({ point }) => {
        if (!first.has(point.copy_mode)) first.set(point.copy_mode, point.fields);
        return first.get(point.copy_mode) !== point.fields;
    });
    return varies ? [] : ['fields'];
}

/** The unit of the cost per byte: cycles where every measured row has them, else CPU time: {field, title, why}. */
export function costUnit(rows) {
    const without = rows.find((row) => row.runs > 0 && !row.cycles_per_byte_sender);
    if (!without) return { field: 'cycles_per_byte_sender', title: 'Cycles per byte', why: '' };
    const reason = reasonFor(without, 'cycles_per_byte_sender');
    return {
        field: 'cpu_ns_per_gigabyte_sender',
        title: 'CPU time per byte',
        why: `CPU time, as there are no cycles${reason ? `: ${reason}` : ''}.`,
    };
}

/** Whose counters a table's figures are, in a sentence: the copy mode is the sender's, and either end may be that. */
export function countedBy(rows) {
    const roles = [...new Set(rows.map((row) => row.counted_by).filter(Boolean))].sort();
    if (roles.length === 0) return '';
    if (roles.length === 1) return `Counted at the ${roles[0]}.`;
    return `Counted at the end that sends: ${roles.join(' or ')}.`;
}

const keyOf = ({ point }, ignore) =>
    JSON.stringify(
        Object.entries(point)
            .filter(([field]) => field !== 'copy_mode' && !ignore.includes(field))
            .sort(([a], [b]) => (a < b ? -1 : 1)),
    );

/** A function from a row to its cost over that of the same point in two-copy mode; null where there is no such. */
export function relativeCost(rows, field) {
    const ofBase = rows.filter((row) => row.point.copy_mode === BASE);
    const ignore = ignored(ofBase); /* the one base of many points, where only the other modes have fields */
    const bases = new Map(ofBase.map((row) => [keyOf(row, ignore), row[field]]));
    return (row) => {
        const base = bases.get(keyOf(row, ignore))?.median;
        const own = row[field];
        if (!(base > 0) || !own) return null;
        return { median: own.median / base, min: own.min / base, max: own.max / base };
    };
}

/**
 * The four plots over the rows; `drawn` {threads, message_size}: the one that lines are drawn of, null for all.
 */
export function studyPlots(rows, drawn = {}) {
    const taken = studied(rows);
    const among = new Set(taken);
    const only = (field) => (row) => among.has(row) && (drawn[field] ?? row.point[field]) === row.point[field];
    const ignore = ignored(taken);
    const left = selection(rows, taken);
    const note = (...sentences) => sentences.filter(Boolean).join(' ');
    const bySize = { x: 'message_size', rows: only('threads'), ignore, note: left };
    const byThreads = { x: 'threads', rows: only('message_size'), ignore, note: left };
    const cost = costUnit(taken);
    const unmeasured = taken.filter(bySize.rows).some((row) => row.point.copy_mode === BASE && !row[cost.field]);
    return [
        {
            ...bySize,
            title: 'Throughput by size',
            format: gigabits,
            unit: 8,
            value: (row) => row.throughput_bytes_per_second,
            field: 'throughput_bytes_per_second',
        },
        {
            ...byThreads,
            title: 'Latency by threads, median',
            format: nanoseconds,
            value: (row) => row.latency_ns?.p50,
            field: 'latency_ns',
        },
        {
            ...bySize,
            title: 'LLC misses per message by size',
            format: (value) => figure(value, 3),
            value: (row) => row.llc_misses_per_message_sender,
            field: 'llc_misses_per_message_sender',
            note: note(left, countedBy(taken)),
        },
        {
            ...bySize,
            title: `${cost.title} by size, two-copy = 1`,
            format: (value) => figure(value, 3),
            value: relativeCost(taken, cost.field),
            field: cost.field,
            lacking: unmeasured ? null : `No ${BASE} point to compare with.`,
            log: false,
            note: note(left, cost.why, countedBy(taken)),
        },
    ];
}

/** The plots with the choice of what they are drawn for, which persists between updates. */
export class Study {
    constructor() {
        this.plots = new Plots();
        this.selects = { threads: this.#select('threads'), message_size: this.#select('message_size') };
        this.element = h(
            'section',
            { class: 'study', 'aria-labelledby': 'study-title' },
            h(
                'div',
                { class: 'panel-head' },
                h('h2', { id: 'study-title', text: 'Copy modes compared' }),
                h(
                    'div',
                    { class: 'panel-tools' },
                    h('label', { for: 'study-threads' }, 'By size, with ', this.selects.threads),
                    h('label', { for: 'study-message_size' }, 'By threads, with ', this.selects.message_size),
                ),
            ),
            this.plots.element,
        );
        this.update([]);
    }

    update(rows) {
        this.rows = rows;
        const study = isStudy(rows);
        this.element.hidden = !study;
        if (study) {
            const taken = studied(rows);
            this.#fill('threads', distinct(taken, 'threads'), (n) => `${n} ${n === 1 ? 'thread' : 'threads'}`);
            this.#fill('message_size', distinct(taken, 'message_size'), (bytes) => size(bytes));
        }
        this.#draw();
    }

    destroy() {
        this.plots.destroy();
    }

    #select(field) {
        const id = `study-${field}`;
        const change = () => {
            choose({ [id]: this.selects[field].value });
            this.#draw();
        };
        return h('select', { id, data: { values: '' }, on: { change } });
    }

    /* The largest is chosen at first: there the modes differ most. */
    #fill(field, values, label) {
        const select = this.selects[field];
        select.parentElement.hidden = values.length < 2;
        if (select.dataset.values === values.join()) return;
        const before = chosen(select.id) ?? (select.value || 'last');
        select.dataset.values = values.join();
        fill(
            select,
            values.map((value) => h('option', { value, text: label(value) })),
            values.length * new Set(this.rows.map((row) => row.point.copy_mode)).size <= SERIES_AT_ONCE &&
                h('option', { value: 'all', text: 'all' }),
        );
        select.value = [...select.options].some((option) => option.value === before) ? before : values.at(-1);
    }

    #chosen(field) {
        const { value } = this.selects[field];
        return value === '' || value === 'all' ? null : Number(value);
    }

    #draw() {
        const drawn = { threads: this.#chosen('threads'), message_size: this.#chosen('message_size') };
        this.plots.update(this.rows, isStudy(this.rows) ? studyPlots(this.rows, drawn) : []);
    }
}
