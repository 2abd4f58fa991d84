// SPDX-License-Identifier: MIT
// Plots of a study from its results table: a figure over an axis of the experiment, a line per combination of the
// others.

import { Chart } from './charts.js';
import { h } from '../dom.js';
import { barWords, pointLabel, reasonFor, size, splitFields } from '../format.js';

const SERIES_MAX = 8;

const AXES = {
    message_size: { title: 'message size', x: 'log2', formatX: (value) => size(value) },
    threads: { title: 'threads', x: 'log2', formatX: String },
};

/*
 * A plot: `title`; `x`, a numeric field of the points; `value(row)`, a statistic {median, min, max, ci95, level} or null;
 * `format` and `unit` (charts.js); `rows(row)`, which rows take part, measured or not; `ignore`, fields of a point
 * that make no line of their own; `field`, the figure whose reason is shown when no row has one; `lacking`, what is
 * shown when rows have it and yet there is no line; `log: false`, a linear axis; `note`, words below.
 */
const taking = (rows, plot) => rows.filter(plot.rows ?? (() => true));

/* A bar is the interval of the median where there is one, else the range of the runs. */
function barOf(row, figure) {
    if (figure?.ci95) return { range: figure.ci95, level: figure.level };
    return figure && row.runs > 1 ? { range: [figure.min, figure.max], runs: row.runs } : { range: [null, null] };
}

/**
 * {xs, series: [{label, slot, ys, lo, hi}], omitted, bars}: the definition applied to the rows; rows that are
 * not measured yet already have their places. A series' slot follows from its place in the whole table: it is the same
 * in every plot with lines of that kind, and stays the same while others are added. `bars` describes lo and hi.
 */
export function plotData(rows, plot) {
    const among = taking(rows, plot).filter((row) => row.point[plot.x] !== undefined);
    const xs = [...new Set(among.map((row) => row.point[plot.x]))].sort((a, b) => a - b);
    const others = splitFields(among.map((row) => row.point)).varying.filter(
        (field) => field !== plot.x && !plot.ignore?.includes(field),
    );
    const labelOf = (row) => pointLabel(row.point, others) || plot.title;
    const slots = [...new Set(rows.map(labelOf))];
    const series = new Map();
    const bars = { levels: [], runs: [] };
    for (const row of among) {
        const label = labelOf(row);
        if (!series.has(label)) {
            const empty = () => xs.map(() => null);
            series.set(label, { label, slot: slots.indexOf(label), ys: empty(), lo: empty(), hi: empty() });
        }
        const figure = plot.value(row);
        const at = xs.indexOf(row.point[plot.x]);
        const one = series.get(label);
        one.ys[at] = figure?.median ?? null;
        const { range, level, runs } = barOf(row, figure);
        [one.lo[at], one.hi[at]] = range;
        if (runs) bars.runs.push(runs);
        if (level) bars.levels.push(level);
    }
    const shown = [...series.values()].filter((one) => one.ys.some((value) => value !== null));
    return {
        xs,
        series: shown.slice(0, SERIES_MAX),
        omitted: Math.max(0, shown.length - SERIES_MAX),
        bars: barWords(bars.levels, bars.runs),
    };
}

/** The plots of a table as figures that are reused between updates. */
export class Plots {
    constructor() {
        this.element = h('div', { class: 'columns plots' });
        this.figures = new Map();
    }

    update(rows, plots) {
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
        const { xs, series, omitted, bars } = plotData(rows, plot);
        if (!this.figures.has(plot.title)) {
            const axis = AXES[plot.x] ?? {};
            const note = h('p', { class: 'hint' });
            const chart = new Chart({
                title: plot.title,
                note: () => note.textContent,
                format: plot.format,
                splitsX: true,
                log: plot.log ?? true,
                unit: plot.unit,
                ...pick(axis),
            });
            const element = h('section', { class: 'panel' }, chart.element, note);
            this.element.append(element);
            this.figures.set(plot.title, { chart, note, element });
        }
        const figure = this.figures.get(plot.title);
        figure.element.classList.toggle('no-lines', series.length === 0);
        figure.chart.set(xs, series);
        figure.note.textContent = [series.length === 0 && missing(rows, plot), bars, plot.note, omitted && more(omitted)]
            .filter(Boolean)
            .join(' ');
    }
}

const more = (count) => `${count} more series are in the table; the plot shows the first ${SERIES_MAX}.`;

/** Why a plot has no line. */
export function missing(rows, plot) {
    const among = taking(rows, plot);
    if (plot.lacking && among.some((row) => row[plot.field])) return plot.lacking;
    const reason = among.map((row) => reasonFor(row, plot.field)).find(Boolean);
    return `Not measured${reason ? `: ${reason}` : ''}.`;
}

const pick = ({ x = 'linear', formatX = String }) => ({ x, formatX });
