// SPDX-License-Identifier: MIT
// Plots from a results table: which figure, over which axis of the experiment, a line per combination of the others.
// A study's own plots are definitions of the same kind.

import { Chart } from './charts.js';
import { h } from './dom.js';
import { latencyKind, nanoseconds, pointLabel, reasonFor, size, splitFields, throughput } from './format.js';

const SERIES_MAX = 8;

const AXES = {
    message_size: { title: 'message size', x: 'log2', formatX: (value) => size(value) },
    threads: { title: 'threads', x: 'log2', formatX: String },
};

/*
 * A plot: `title`; `x`, a numeric field of the points; `value(row)`, a statistic {median, min, max} or null;
 * `format`; `rows(row)`, which rows take part; `ignore`, fields of a point that make no line of their own; `field`, the
 * figure whose reason is told when no row has one; `lacking`, what is told when rows have it and yet there is no line;
 * `log: false`, a linear axis; `note`, words below.
 */
const THROUGHPUT = {
    title: 'Throughput',
    format: throughput,
    value: (row) => row.throughput_bytes_per_second,
    rows: (row) => Boolean(row.throughput_bytes_per_second) && row.point.workload !== 'pingpong',
};
const BOTH_WAYS = {
    title: 'Throughput both ways',
    format: throughput,
    value: (row) => row.both_ways_bytes_per_second,
    rows: (row) => Boolean(row.both_ways_bytes_per_second),
};
/* Of each kind there is a plot: a hop's time and a round trip's are no figures to be compared. */
const latencyOf = (kind) => ({
    title: `Latency, ${latencyKind(kind)}: median`,
    format: nanoseconds,
    value: (row) => row.latency_ns.p50,
    rows: (row) => row.latency_ns?.kind === kind && Boolean(row.latency_ns.p50),
});

/** The plots that a results table calls for: each figure over each numeric axis with at least two values. */
export function plotsFor(rows) {
    const kinds = new Set(rows.map((row) => row.latency_ns?.kind).filter(Boolean));
    return [THROUGHPUT, BOTH_WAYS, ...[...kinds].map(latencyOf)].flatMap((figure) => {
        const taking = rows.filter(figure.rows);
        return Object.keys(AXES)
            .filter((axis) => new Set(taking.map((row) => row.point[axis])).size > 1)
            .map((axis) => ({ ...figure, x: axis, title: `${figure.title} by ${AXES[axis].title}` }));
    });
}

/** {xs, series: [{label, ys, lo, hi}], omitted}: the definition applied to the rows. */
export function plotData(rows, plot) {
    const taking = rows.filter(plot.rows ?? (() => true)).filter((row) => row.point[plot.x] !== undefined);
    const xs = [...new Set(taking.map((row) => row.point[plot.x]))].sort((a, b) => a - b);
    const others = splitFields(taking.map((row) => row.point)).varying.filter(
        (field) => field !== plot.x && !plot.ignore?.includes(field),
    );
    const series = new Map();
    for (const row of taking) {
        const label = pointLabel(row.point, others) || plot.title;
        if (!series.has(label))
            series.set(label, { label, ys: xs.map(() => null), lo: xs.map(() => null), hi: xs.map(() => null) });
        const figure = plot.value(row);
        const at = xs.indexOf(row.point[plot.x]);
        const one = series.get(label);
        one.ys[at] = figure?.median ?? null;
        one.lo[at] = figure?.min ?? null;
        one.hi[at] = figure?.max ?? null;
    }
    const shown = [...series.values()].filter((one) => one.ys.some((value) => value !== null));
    return { xs, series: shown.slice(0, SERIES_MAX), omitted: Math.max(0, shown.length - SERIES_MAX) };
}

/** The plots of a table as figures that are kept between updates. */
export class Plots {
    constructor() {
        this.element = h('div', { class: 'columns plots' });
        this.figures = new Map();
    }

    update(rows, plots = plotsFor(rows)) {
        const wanted = new Set(plots.map((plot) => plot.title));
        for (const [title, figure] of this.figures)
            if (!wanted.has(title)) {
                figure.chart.destroy();
                figure.element.remove();
                this.figures.delete(title);
            }
        for (const plot of plots) this.#figure(plot, rows);
        this.element.hidden = this.figures.size === 0;
    }

    destroy() {
        this.figures.forEach((figure) => figure.chart.destroy());
    }

    #figure(plot, rows) {
        const { xs, series, omitted } = plotData(rows, plot);
        if (!this.figures.has(plot.title)) {
            const axis = AXES[plot.x] ?? {};
            const chart = new Chart({
                title: plot.title,
                format: plot.format,
                splitsX: true,
                log: plot.log ?? true,
                ...pick(axis),
            });
            const note = h('p', { class: 'hint' });
            const element = h('section', { class: 'panel' }, chart.element, note);
            this.element.append(element);
            this.figures.set(plot.title, { chart, note, element });
        }
        const figure = this.figures.get(plot.title);
        figure.element.classList.toggle('no-lines', series.length === 0);
        figure.chart.set(xs, series);
        figure.note.textContent = [series.length === 0 && missing(rows, plot), plot.note, omitted && more(omitted)]
            .filter(Boolean)
            .join(' ');
    }
}

const more = (count) => `${count} more series are in the table; the plot shows the first ${SERIES_MAX}.`;

/** Why a plot has no line. */
export function missing(rows, plot) {
    const taking = rows.filter(plot.rows ?? (() => true));
    if (plot.lacking && taking.some((row) => row[plot.field])) return plot.lacking;
    const reason = taking.map((row) => reasonFor(row, plot.field)).find(Boolean);
    return `Not measured${reason ? `: ${reason}` : ''}.`;
}

const pick = ({ x = 'linear', formatX = String }) => ({ x, formatX });
