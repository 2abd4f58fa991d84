// SPDX-License-Identifier: MIT
// The results of an experiment: a row per point, and once above them the fields that all points share.

import { $, fill, h, patch } from '../dom.js';
import { absent } from '../facts.js';
import { DASH, fieldTitle, fieldValue, figure, latencyKind, levelWords, plural, reasonFor, splitFields } from '../format.js';
import { Study } from './study.js';
import { columnChoice, copyButtons, equip, sorted } from '../table.js';

const ROWS_AT_ONCE = 100;
const SOON = 'A row for each point appears when its first run is done.';
/* What stands in place of the rows, by the experiment's state. */
const NOTHING = { unknown: 'Loading…', queued: SOON, running: SOON };
const TOO_FEW = 'no interval is claimed for fewer than 6 repetitions';

export class Results {
    /** `columns` of figures, as schema.js makes them. */
    constructor(experiment, columns) {
        this.columns = columns;
        this.shown = ROWS_AT_ONCE;
        this.study = new Study();
        this.body = h('div', { id: 'results' });
        const file = (what, type) => ({ href: `/experiments/${experiment}/${what}`, accept: type });
        this.element = h(
            'section',
            { class: 'panel', 'aria-labelledby': 'results-title' },
            h(
                'div',
                { class: 'panel-head' },
                h('h2', { id: 'results-title', text: 'Results' }),
                h(
                    'div',
                    { class: 'panel-tools' },
                    'Download',
                    download('results, CSV', file('results', 'text/csv'), `ipclab-${experiment}-results.csv`),
                    download('all columns', file('results?columns=all', 'text/csv'), `ipclab-${experiment}-all.csv`),
                    download('results, JSON', file('results', 'application/json'), `ipclab-${experiment}-results.json`),
                    download('runs, CSV', file('runs', 'text/csv'), `ipclab-${experiment}-runs.csv`),
                    download('samples, CSV', file('samples', 'text/csv'), `ipclab-${experiment}-samples.csv`),
                ),
            ),
            this.body,
        );
        this.update([], 'unknown');
    }

    update(rows, state) {
        this.rows = rows;
        this.state = state;
        const measured = rows.filter((row) => row.runs > 0);
        const drawn = measured.length ? rows : [];
        this.study.update(drawn);
        this.#draw();
    }

    destroy() {
        this.study.destroy();
    }

    #draw() {
        const { rows } = this;
        if (!rows.some((row) => row.runs > 0 || row.error)) {
            fill(
                this.body,
                h('p', {
                    class: 'soft',
                    text: NOTHING[this.state] ?? 'No run was completed.',
                }),
            );
            return;
        }
        const { varying, common } = splitFields(rows.map((row) => row.point));
        const figures = columnsFor(this.columns, rows);
        const shared = sharedFlags(rows);
        patch(
            this.body,
            h('p', { class: 'caption', id: 'results-caption', text: caption(rows, common) }),
            shared.length > 0 && h('p', { class: 'caption' }, 'All of them: ', shared.map(flagLabel)),
            h(
                'div',
                { class: 'reader-tools' },
                columnChoice(titlesOf(varying, figures), () => this.#draw()),
                copyButtons(() => this.#table(varying, figures, shared, Infinity)),
            ),
            h(
                'div',
                { class: 'table pinned', tabindex: '0', role: 'region', 'aria-label': 'Table of results' },
                this.#table(varying, figures, shared, this.shown),
            ),
            this.#more(),
        );
    }

    #table(varying, figures, shared, shown) {
        const values = sortValues(varying, figures);
        const rows = sorted(this.rows, values).slice(0, shown);
        const table = h(
            'table',
            { class: 'cards', 'aria-describedby': 'results-caption' },
            h('thead', {}, h('tr', {}, heads(varying, figures))),
            h(
                'tbody',
                {},
                rows.map((row) => tableRow(row, varying, figures, shared)),
            ),
        );
        return equip(table, values, () => this.#draw());
    }

    #more() {
        const rest = this.rows.length - this.shown;
        const more = () => {
            this.shown += ROWS_AT_ONCE;
            this.#draw();
        };
        return (
            rest > 0 &&
            h(
                'button',
                { type: 'button', class: 'more', on: { click: more } },
                `Show more (${plural(rest, 'row')} left)`,
            )
        );
    }
}

/* What of a row each column is sorted by, by its title: numbers as such, all else as it is written. */
function sortValues(varying, figures) {
    const ofField = (field) => (row) =>
        typeof row.point[field] === 'number' ? row.point[field] : fieldValue(field, row.point[field]);
    return new Map([
        ...varying.map((field) => [capital(fieldTitle(field)), ofField(field)]),
        ['Runs', (row) => row.runs],
        ...figures.map((column) => [column.title, (row) => column.of(row)?.median]),
    ]);
}

const titlesOf = (varying, figures) => [
    ...new Set(
        heads(varying, figures)
            .flat(Infinity)
            .filter(Boolean)
            .map((head) => head.firstChild.textContent),
    ),
];

/* Of few runs the interval is their whole range, which is not shown twice. */
const differs = (one) => one && !(one.ci95?.[0] === one.min && one.ci95?.[1] === one.max);

/* "96.9 % interval": the true levels of the column's intervals; false where it has none. */
function intervalTitle(statistics) {
    const levels = statistics.filter((one) => one?.ci95).map(({ level }) => level);
    return levels.length > 0 && `${levelWords(levels)} interval`;
}

/* The columns that the rows call for, with `range` and `interval` where any row has these, the latter as its title. */
function columnsFor(columns, rows) {
    return columns
        .filter((column) => column.always || rows.some(column.of))
        .map((column) => ({
            ...column,
            range: column.spread && rows.some((row) => row.runs > 1 && differs(column.of(row))),
            interval: column.spread && intervalTitle(rows.map(column.of)),
        }));
}

function caption(rows, common) {
    const shared = common.map((field) => sharedWords(rows, field)).join(', ');
    const alike = rows.length === 1 ? 'Measured:' : 'The same for all:';
    const figures = 'Medians over the runs; 1 MB is 10⁶ bytes.';
    const words = [messageWords(rows), costWords(rows), latencyWords(rows), roundTripWords(rows)];
    return [shared && `${alike} ${shared}.`, figures, ...words].filter(Boolean).join(' ');
}

/* "transport pipe"; of a field that not every point has, the value where there is one. */
function sharedWords(rows, field) {
    const having = rows.filter((row) => row.point[field] !== undefined && row.point[field] !== null);
    const words = `${fieldTitle(field)} ${fieldValue(field, having[0]?.point[field])}`;
    return having.length > 0 && having.length < rows.length ? `${words} where it applies` : words;
}

/* The words for the column of messages, which counts calls or switches where a workload moves no data. */
function messageWords(rows) {
    const measured = new Set(rows.map((row) => row.point.workload));
    const words = [
        measured.has('syscall') && 'a call (syscall)',
        measured.has('context-switch') && 'a round of context switches (context-switch)',
    ].filter(Boolean);
    return words.length ? `A message is ${words.join(', ')}.` : '';
}

/* A switch has a CPU also where its placement names none. */
function costWords(rows) {
    const costs = rows.filter((row) => row.cost_ns);
    const measured = new Set(costs.map((row) => row.point.workload));
    const cpus = [...new Set(costs.flatMap((row) => row.effective?.cpu ?? []))].sort((a, b) => a - b);
    const where = cpus.length ? ` on CPU ${cpus.join(' or ')}` : '';
    const words = [
        measured.has('syscall') && 'of a call',
        measured.has('context-switch') && `of a context switch${where}, without the pipe's part`,
    ].filter(Boolean);
    const hop = rows.some((row) => row.hop_ns) ? ' Hop: the same with it.' : '';
    return words.length ? `Cost: ${words.join('; ')}.${hop}` : '';
}

/* A kind goes with a workload, which is named where there is more than one. */
function latencyWords(rows) {
    const timed = rows.filter((row) => row.latency_ns);
    const kinds = new Map(timed.map((row) => [row.latency_ns.kind, row.point.workload]));
    const words = [...kinds].map(([kind, workload]) => latencyKind(kind) + (kinds.size > 1 ? ` (${workload})` : ''));
    return words.length ? `Latency: ${words.join('; ')}.` : '';
}

/* The words for a round trip's figures beside its time and one end's bytes; an open loop has no half of it. */
function roundTripWords(rows) {
    const words = [
        rows.some((row) => row.both_ways_bytes_per_second) && 'both ways is what went there and back',
        rows.some((row) => row.latency_one_way_ns) && 'p50 one way is half of its p50',
    ].filter(Boolean);
    return words.length ? `Of a round trip, ${words.join(', and ')}.` : '';
}

/* Flags that every row with figures has are shown once. */
function sharedFlags(rows) {
    const measured = rows.filter((row) => row.runs > 0);
    return measured.length < 2
        ? []
        : measured[0].flags.filter((flag) => measured.every((row) => row.flags.includes(flag)));
}

export const flagLabel = (flag) => h('span', { class: 'flag', text: flag });

function heads(varying, figures) {
    const number = (title, unit) =>
        h('th', { scope: 'col', class: 'number' }, title, h('span', { class: 'unit', text: unit }));
    return [
        (varying.length ? varying : ['point']).map((field) =>
            h('th', { scope: 'col', class: field === 'message_size' ? 'number' : null }, capital(fieldTitle(field))),
        ),
        h('th', { scope: 'col', class: 'number', text: 'Runs' }),
        figures.flatMap((column) => [
            number(column.title, column.unit),
            column.range && number('min – max', column.unit),
            column.interval && number(column.interval, column.unit),
        ]),
        h('th', { scope: 'col', text: 'Notes' }),
    ];
}

function tableRow(row, varying, figures, shared) {
    const planned = row.runs_planned ?? row.runs;
    return h(
        'tr',
        {},
        (varying.length ? varying : [null]).map((field) =>
            h(
                'td',
                {
                    class: field === 'message_size' ? 'number' : null,
                    data: { title: capital(fieldTitle(field ?? 'point')) },
                },
                field ? fieldValue(field, row.point[field]) : 'all runs',
            ),
        ),
        h('td', {
            class: 'number',
            data: { title: 'Runs' },
            text: planned === row.runs ? String(row.runs) : `${row.runs} of ${planned}`,
        }),
        figures.flatMap((column) => figureCells(row, column)),
        h(
            'td',
            { class: 'wrap notes', data: { title: 'Notes' } },
            row.flags.filter((flag) => !shared.includes(flag)).map(flagLabel),
            row.error && h('span', { class: 'field-error', text: row.error }),
        ),
    );
}

/* An interval, with how much wider it is as the runs behind it depend on each other, or that this is not known. */
function interval(row, { n, widening }, text) {
    const why = reasonFor(row, 'autocorrelation') ?? (n < 12 ? 'fewer than 12 runs have the figure' : 'all are equal');
    if (widening === 1) return text;
    const title = widening
        ? `Neighbouring runs are alike: it is ${figure(widening)} times as wide as that of independent runs.`
        : `Whether neighbouring runs are alike could not be judged (${why}): it may cover the moment only.`;
    return h('abbr', { title, text });
}

function figureCells(row, column) {
    const statistic = column.of(row);
    const scale = (value) => figure(value === null || value === undefined ? null : value / column.by);
    const missing =
        reasonFor(row, column.field) ?? (row.runs ? 'not measured for this workload' : 'no run is done yet');
    const cell = (title, text, why) =>
        h(
            'td',
            { class: 'number', data: { title: `${title}, ${column.unit}` } },
            text === DASH ? absent(why) : title === column.interval ? interval(row, statistic, text) : text,
        );
    return [
        cell(column.title, scale(statistic?.median), missing),
        column.range &&
            cell(
                'min – max',
                statistic && row.runs > 1 ? `${scale(statistic.min)} – ${scale(statistic.max)}` : DASH,
                statistic ? 'one run has no spread' : missing,
            ),
        column.interval &&
            cell(
                column.interval,
                statistic?.ci95 ? `${scale(statistic.ci95[0])} – ${scale(statistic.ci95[1])}` : DASH,
                statistic ? (statistic.ci95_reason ?? TOO_FEW) : missing,
            ),
    ];
}

export const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

/* The server picks the format by Accept, which a plain link cannot set: fetched, then saved. */
function download(label, { href, accept }, name) {
    const save = async (event) => {
        event.preventDefault();
        try {
            const response = await fetch(href, { headers: { Accept: accept }, cache: 'no-store' });
            if (!response.ok) throw new Error(`The server answered ${response.status}.`);
            const url = URL.createObjectURL(await response.blob());
            h('a', { href: url, download: name }).click();
            setTimeout(() => URL.revokeObjectURL(url), 10000);
        } catch (error) {
            $('announcer').textContent = `Download failed: ${error.message}`;
        }
    };
    return h('a', { href, download: name, class: 'nowrap', on: { click: save } }, label);
}
