// SPDX-License-Identifier: MIT
// The data of an experiment's large chart: figures of a results table over a numeric axis, ranked at one point of it,
// or a latency by percentile; with the runs that they are made of.

import {
    barWords,
    fieldTitle,
    fieldValue,
    figure,
    latencyKind,
    nanoseconds,
    pointLabel,
    splitFields,
    throughput,
} from '../format.js';

const NUMERIC = ['message_size', 'threads', 'rate', 'working_set', 'processes', 'fields', 'queue_depth'];
const PERCENTILES = [
    ['p50', 0.5],
    ['p90', 0.9],
    ['p99', 0.99],
    ['p99_9', 0.999],
];
const cycles = (value) => `${figure(value, 3)}`;

/*
 * A figure: its `key` in the address, `title`, `format`, what it is `of` a row and of a run's result, whether `more` of
 * it is better, and which rows may have it.
 */
const FIGURES = [
    {
        key: 'throughput',
        title: 'Throughput',
        format: throughput,
        of: (row) => row.throughput_bytes_per_second,
        more: true,
        rows: (row) => 'transport' in row.point, /* another workload moves no bytes */
    },
    {
        key: 'both-ways',
        title: 'Throughput both ways',
        format: throughput,
        of: (row) => row.both_ways_bytes_per_second,
        more: true,
    },
    { key: 'cost', title: 'Cost of an operation', format: nanoseconds, of: (row) => row.cost_ns },
    { key: 'cpu', title: 'CPU time per message', format: nanoseconds, of: (row) => row.cpu_ns_per_message },
    { key: 'cycles', title: 'Cycles per byte', format: cycles, of: (row) => row.cycles_per_byte },
];
/* A hop's time and a round trip's are no figures to be compared: there is one of each kind. */
const latenciesOf = (kind, several) => {
    const has = (row) => row.latency_ns?.kind === kind;
    const of = (percentile) => (row) => (has(row) ? row.latency_ns[percentile] : null);
    const key = (name) => (several ? `${name}-${kind}` : name);
    const words = latencyKind(kind);
    return [
        { key: key('latency'), title: `Latency, ${words}: p50`, format: nanoseconds, of: of('p50'), rows: has },
        { key: key('p99'), title: `Latency, ${words}: p99`, format: nanoseconds, of: of('p99'), rows: has },
        {
            key: key('percentiles'),
            title: `Latency by percentile, ${words}`,
            format: nanoseconds,
            of: of('p50'),
            rows: has,
            curve: true,
        },
    ];
};

/** The figures that a table has. */
export function figuresOf(rows) {
    const kinds = [...new Set(rows.map((row) => row.latency_ns?.kind).filter(Boolean))];
    const trips = rows.every((row) => row.point.workload === 'pingpong');
    const all = [...FIGURES, ...kinds.flatMap((kind) => latenciesOf(kind, kinds.length > 1))];
    const some = all.filter((one) => rows.some((row) => (one.rows?.(row) ?? true) && one.of(row)));
    return trips ? some.sort((a, b) => b.key.startsWith('latency') - a.key.startsWith('latency')) : some;
}

const valuesOf = (rows, field) =>
    [...new Set(rows.map((row) => row.point[field]).filter(Number.isFinite))].sort((a, b) => a - b);

/** The numeric fields of the points that have several values: [{field, values}]. */
export const axesOf = (rows) =>
    NUMERIC.map((field) => ({ field, values: valuesOf(rows, field) })).filter(({ values }) => values.length > 1);

/** Where an axis is held when nothing else was chosen: 4 KiB of the sizes, else the middle value. */
export const usual = ({ field, values }) =>
    field === 'message_size' && values.includes(4096) ? 4096 : values[Math.floor((values.length - 1) / 2)];

const keyOf = (point) => JSON.stringify(Object.entries(point).sort(([a], [b]) => (a < b ? -1 : 1)));

/** The results of done runs by their point. */
export function runsByPoint(runs) {
    const map = new Map();
    for (const { point, result } of runs) if (result) map.set(keyOf(point), [...(map.get(keyOf(point)) ?? []), result]);
    return map;
}

/* A run's result has the figures of a row by the same names, as single numbers. */
const ofRun = (what, result, row) => {
    const value = what.of({ ...result, point: row.point, latency_ns: result.latency_ns ?? null });
    return typeof value === 'number' ? value : null;
};

function markOf(rows, at, what, byPoint) {
    const row = rows[at];
    const statistic = what.of(row);
    if (!statistic) return null;
    const [lo, hi] = statistic.ci95 ?? (row.runs > 1 ? [statistic.min, statistic.max] : [null, null]);
    const dots = (byPoint.get(keyOf(row.point)) ?? []).map((result) => ofRun(what, result, row));
    return {
        row: at,
        y: statistic.median,
        lo,
        hi,
        level: statistic.ci95 ? statistic.level : null,
        runs: row.runs,
        noisy: row.flags.some((flag) => flag.startsWith('noisy:')),
        dots: dots.filter((value) => value > 0),
    };
}

const scaled = (mark, base) =>
    base && {
        ...mark,
        y: mark.y / base,
        lo: mark.lo === null ? null : mark.lo / base,
        hi: mark.hi === null ? null : mark.hi / base,
        dots: mark.dots.map((value) => value / base),
    };

/* A field may divide the figure into panels, one for each value: no more than can be looked at side by side. */
const PANELS_MAX = 12;

const pointsOf = (rows, some) => some.map((at) => rows[at].point);
const keyIn = (point, field) => JSON.stringify(point[field]);

/* The values of a field among the points, numbers ascending, others as they come: [{key, title}]. */
function panelsOf(points, field) {
    const values = new Map(points.map((point) => [keyIn(point, field), point[field]]));
    const sorted = [...values].sort(([, a], [, b]) => (Number.isFinite(a) && Number.isFinite(b) ? a - b : 0));
    return sorted.map(([key, value]) => ({ key, title: `${fieldTitle(field)} ${fieldValue(field, value)}` }));
}

/* The fields that may: those that differ between the points and are not the axis. */
const facetsOf = (points, axis) =>
    splitFields(points).varying.filter((field) => {
        const count = panelsOf(points, field).length;
        return field !== axis?.field && count > 1 && count <= PANELS_MAX;
    });

/**
 * {shape: "lines" | "ranking" | "curves", what, axis, series: [{label, slot, panel, marks: [{x, y, lo, hi, level, row,
 * runs, noisy, dots}]}], panels: [{title, series}], labels, facets}: what is to be drawn by `choice` {figure, over, at:
 * {field: value}, facet, relative}. `labels` are all that something may be relative to, `facets` the fields that may
 * divide it into panels; undivided it is one panel without a title. A series' slot follows from its place in the whole
 * table, and is the same in all panels.
 */
export function figureData(rows, choice, byPoint = new Map()) {
    const figures = figuresOf(rows);
    const what = figures.find((one) => one.key === choice.figure) ?? figures[0];
    if (!what) return null;
    const axes = axesOf(rows.filter((row) => what.rows?.(row) ?? true));
    const axis =
        what.curve || choice.over === 'ranking'
            ? null
            : (axes.find((one) => one.field === choice.over) ?? axes[0] ?? null);
    const measured = rows.map((row, at) => at).filter((at) => (what.rows?.(rows[at]) ?? true) && what.of(rows[at]));
    const facets = facetsOf(pointsOf(rows, measured), axis);
    const facet = facets.includes(choice.facet) ? choice.facet : null;
    const pinned = axes
        .filter((one) => one !== axis && one.field !== facet)
        .map((one) => [one, pinOf(one, choice, axis)]);
    const taken = measured.filter((at) =>
        pinned.every(([{ field }, value]) => value === null || (rows[at].point[field] ?? value) === value),
    );
    const held = new Set([
        axis?.field,
        facet,
        ...pinned.filter(([, value]) => value !== null).map(([{ field }]) => field),
    ]);
    const fields = splitFields(rows.map((row) => row.point)).varying.filter((field) => !held.has(field));
    const labelOf = (at) => pointLabel(rows[at].point, fields) || what.title;
    const slots = [...new Set(rows.map((row, at) => labelOf(at)))];
    const labels = [...new Set(taken.map(labelOf))];
    const relative = labels.includes(choice.relative) ? choice.relative : null;
    const marksOf = (at) =>
        (what.curve ? curveOf(rows[at], at) : [markOf(rows, at, what, byPoint)]).map((mark) => ({
            ...mark,
            x: mark.x ?? rows[at].point[axis?.field] ?? 0,
        }));
    const panels = (facet ? panelsOf(pointsOf(rows, taken), facet) : [{ title: null }])
        .map(({ key, title: panel }) => {
            const inside = taken.filter((at) => !facet || keyIn(rows[at].point, facet) === key);
            const series = seriesOf(
                inside,
                labelOf,
                (label) => ({ label, slot: slots.indexOf(label), panel }),
                marksOf,
            );
            return { title: panel, series: relatively(series, relative, what, axis) };
        })
        .filter(({ series }) => series.some(({ marks }) => marks.length));
    return {
        shape: what.curve ? 'curves' : axis ? 'lines' : 'ranking',
        what,
        figures,
        axes,
        axis,
        pinned: pinned.map(([one, value]) => ({ ...one, value })),
        labels,
        relative,
        facet,
        facets,
        panels,
        series: panels.flatMap(({ series }) => series),
    };
}

/* The series of some rows by their labels, each `made(label)` with its marks in order. */
function seriesOf(some, labelOf, made, marksOf) {
    const series = new Map();
    for (const at of some) {
        const label = labelOf(at);
        if (!series.has(label)) series.set(label, { ...made(label), marks: [] });
        series.get(label).marks.push(...marksOf(at));
    }
    series.forEach(({ marks }) => marks.sort((a, b) => a.x - b.x));
    return series;
}

/* A ranking and a curve are of one point of each axis; lines are too once they would be too many. */
function pinOf(one, choice, axis) {
    const wanted = choice.at?.[one.field];
    if (wanted === 'all' && axis) return null;
    if (one.values.includes(Number(wanted))) return Number(wanted);
    return axis ? null : usual(one);
}

/* Each mark over the base's at the same place of its panel, and a ranking in its order, the best first. */
function relatively(series, to, what, axis) {
    const base = to === null ? null : new Map(series.get(to)?.marks.map(({ x, y }) => [x, y]));
    const over = (marks) => marks.map((mark) => scaled(mark, base.get(mark.x))).filter(Boolean);
    const list = [...series.values()].map((one) => (base ? { ...one, marks: over(one.marks) } : one));
    if (what.curve || axis) return list;
    const better = what.more ? -1 : 1;
    return list.filter((one) => one.marks.length).sort((a, b) => better * (a.marks[0].y - b.marks[0].y));
}

/* The whole latency curve of a row with its histogram, with the runs' own percentiles as a band. */
function curveOf(row, at) {
    const noisy = row.flags.some((flag) => flag.startsWith('noisy:'));
    const bands = PERCENTILES.map(([name, quantile]) => ({
        x: -Math.log10(1 - quantile),
        own: row.latency_ns[name],
    })).filter(({ own }) => own);
    const marks = bands.map(({ x, own }) => ({
        ...{ row: at, x, y: own.median, runs: row.runs, noisy, dots: [], level: null },
        lo: row.runs > 1 ? own.min : null,
        hi: row.runs > 1 ? own.max : null,
    }));
    const whole = row.latency_histogram?.percentiles.filter(({ nines }) => nines !== null) ?? [];
    if (!whole.length) return marks;
    const curve = whole.map(({ nines, value_ns: y }) => ({
        row: at,
        x: nines,
        y,
        runs: row.runs,
        noisy,
        dots: [],
        lo: null,
        hi: null,
        level: null,
        bare: true,
    }));
    return [...curve, ...marks.map((mark) => ({ ...mark, band: true }))];
}

/** The words at the axis, of an axis' value and of a percentile. */
export const ninesWords = (nines) => {
    if (nines === 0) return 'min';
    const digits = Math.max(0, Math.ceil(nines) - 2);
    return `p${(100 * (1 - 10 ** -nines)).toFixed(digits)}`;
};
export const axisWords = ({ field }, value) => (field === 'message_size' ? fieldValue(field, value) : String(value));
export const axisTitle = ({ field }) =>
    field === 'message_size' ? 'Message size' : fieldTitle(field).replace(/^./, (letter) => letter.toUpperCase());

/** A sentence that describes the bars. */
export function barsOfMarks(series, curve) {
    const marks = series.flatMap((one) => one.marks).filter((mark) => mark.lo !== null);
    const runs = marks.filter((mark) => !mark.level).map((mark) => mark.runs);
    if (curve) return barWords([], runs).replace('Bars', 'Band');
    return barWords(marks.map((mark) => mark.level).filter(Boolean), runs);
}
