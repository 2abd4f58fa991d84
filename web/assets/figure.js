// SPDX-License-Identifier: MIT
// The large chart of an experiment, drawn as SVG: lines over an axis, a ranking where there is one point of it, or
// latency by percentile. What it shows is chosen in the address. Loaded with the first experiment that is opened.

import { choices, chosen, choose } from './address.js';
import { $, fill, h, patch, setText, svg } from './dom.js';
import { exportButtons } from './export.js';
import { axisTitle, axisWords, barWords, figureData, ninesWords, runsByPoint } from './figure-data.js';
import { fieldTitle, figure, plural, round, size } from './format.js';
import { looks, markPath } from './marks.js';
import { extent, linearMarks, logMarks, spaced } from './scales.js';

const SERIES_MAX = 24;
const NARROW = 560; /* pixels below which labels stand in the margin no more */
const HEIGHT = 440;
const ON_WALL = 0.66; /* of the window's height, when it is presented */
const ROW = 34;
const LETTER = 7.4; /* of the labels' 12 px, on average */
const BANDS_MAX = 4; /* more would hide one another */
const ASIDE = 4; /* pixels between the bars of two series at one place */
const LABEL_GAP = 15;
const DOTS_MAX = 2000;
const WIDE_SPREAD = 4; /* figures this far apart start on a logarithmic axis */

/* So that the bars of series at one place lie beside one another. */
const aside = (at, count) => (at - (count - 1) / 2) * Math.min(ASIDE, 16 / count);

const OVER = { ranking: 'a ranking' };
const AT = 'at.';

export class Figure {
    /** `settings()`: the line of settings that an exported picture carries. */
    constructor(settings) {
        this.settings = settings;
        this.rows = [];
        this.runs = new Map();
        this.limits = [];
        this.lit = null;
        this.heading = h('h2', { id: 'figure-title' });
        this.controls = h('div', { class: 'panel-tools' });
        this.readout = h('p', { class: 'readout', text: '\u00a0' });
        this.canvas = h('div', {
            class: 'drawing',
            role: 'img',
            tabindex: '0',
            on: { keydown: (event) => this.#key(event) },
        });
        this.legend = h('ul', { class: 'keys' });
        this.note = h('p', { class: 'hint' });
        this.element = h(
            'section',
            { class: 'panel figure', id: 'figure', 'aria-labelledby': 'figure-title' },
            h('div', { class: 'panel-head' }, this.heading, this.controls),
            this.readout,
            this.canvas,
            this.legend,
            this.note,
        );
        this.frame = 0;
        this.observer = new ResizeObserver(() => this.canvas.clientWidth !== this.width && this.#soon());
        this.observer.observe(this.canvas);
    }

    destroy() {
        cancelAnimationFrame(this.frame);
        this.observer.disconnect();
    }

    /** The rows of the results table. */
    update(rows) {
        this.rows = rows;
        this.#soon();
    }

    /** All runs that are known, of which each done one is a dot. */
    setRuns(runs) {
        this.runs = runsByPoint(runs);
        this.#soon();
    }

    /** Sizes at which something ends: [{bytes, words}], drawn as hairlines across an axis of message sizes. */
    setLimits(limits) {
        this.limits = limits;
        this.#soon();
    }

    /** Lets the marks of these rows stand out; null: of none. */
    light(rows) {
        this.lit = rows;
        this.#soon();
    }

    #choice() {
        const at = choices().filter(([name]) => name.startsWith(AT));
        return {
            figure: chosen('figure'),
            over: chosen('over'),
            relative: chosen('relative'),
            at: Object.fromEntries(at.map(([name, value]) => [name.slice(AT.length), value])),
        };
    }

    #soon() {
        this.frame ||= requestAnimationFrame(() => {
            this.frame = 0;
            this.#draw();
        });
    }

    #draw() {
        const data = figureData(this.rows, this.#choice(), this.runs);
        this.element.hidden = !data || !data.series.length;
        if (this.element.hidden) return;
        this.data = data;
        this.height = chosen('present') === null ? HEIGHT : Math.max(HEIGHT, innerHeight * ON_WALL);
        this.shown = data.series.slice(0, SERIES_MAX);
        const values = this.shown
            .flatMap(({ marks }) => marks.flatMap(({ y, lo, hi }) => [y, lo, hi]))
            .filter((value) => value > 0);
        const [least, most] = extent(values) ?? [1, 1];
        this.log =
            (chosen('scale') ?? (data.shape === 'ranking' || most / least < WIDE_SPREAD ? 'linear' : 'log')) === 'log';
        this.format = data.relative === null ? data.what.format : (value) => `${figure(value, 3)} ×`;
        setText(this.heading, this.#title());
        this.#drawControls();
        this.width = this.canvas.clientWidth;
        const width = Math.max(this.width, 240);
        const drawing =
            data.shape === 'ranking' ? this.#ranking(width, [least, most]) : this.#lines(width, [least, most]);
        patch(this.canvas, drawing);
        this.canvas.setAttribute(
            'aria-label',
            `${this.#title()}: ${plural(this.#places().length, 'point')}. Left and right arrow keys read them out.`,
        );
        this.element.dataset.points = this.#places().length;
        this.#drawLegend(width);
        setText(this.note, this.#words());
    }

    #title() {
        const { what, axis, pinned, relative } = this.data;
        const at = pinned
            .filter(({ value }) => value !== null)
            .map((one) => `${fieldTitle(one.field)} ${axisWords(one, one.value)}`);
        return [
            what.title,
            axis && ` by ${axisTitle(axis).toLowerCase()}`,
            relative !== null && `, relative to ${relative}`,
            at.length > 0 && ` at ${at.join(', ')}`,
        ]
            .filter(Boolean)
            .join('');
    }

    #words() {
        const { series, shape } = this.data;
        const marks = this.shown.flatMap((one) => one.marks);
        const dots = marks.reduce((sum, mark) => sum + mark.dots.length, 0);
        return [
            barWords(this.shown, shape === 'curves'),
            dots > 0 && dots <= DOTS_MAX && 'Dots: the runs.',
            marks.some((mark) => mark.noisy) && 'Hollow: other programs disturbed a run.',
            this.data.relative !== null &&
                'Each figure over that of the series chosen at the same point, whose own uncertainty is not in the bars.',
            series.length > SERIES_MAX && `${series.length - SERIES_MAX} more series are in the table.`,
        ]
            .filter(Boolean)
            .join(' ');
    }

    /* The switches. Each writes the address, from which the drawing follows. */
    #drawControls() {
        const { what, figures, axes, axis, pinned, labels, relative, shape } = this.data;
        const switches = [
            ['figure', 'Show', figures.map(({ key, title }) => [key, title]), what.key],
            axes.length > 0 &&
                !what.curve && [
                    'over',
                    'Over',
                    [...axes.map(({ field }) => [field, fieldTitle(field)]), ['ranking', OVER.ranking]],
                    axis?.field ?? 'ranking',
                ],
            ...pinned.map((one) => [
                AT + one.field,
                `At ${fieldTitle(one.field)}`,
                [
                    ...(shape === 'lines' ? [['all', 'all']] : []),
                    ...one.values.map((value) => [value, axisWords(one, value)]),
                ],
                one.value ?? 'all',
            ]),
            [
                'scale',
                'Scale',
                [
                    ['log', 'logarithmic'],
                    ['linear', 'linear'],
                ],
                this.log ? 'log' : 'linear',
            ],
            labels.length > 1 && [
                'relative',
                'Relative to',
                [['', 'nothing'], ...labels.map((label) => [label, label])],
                relative ?? '',
            ],
        ].filter(Boolean);
        patch(
            this.controls,
            switches.map(([name, title, options]) => this.#switch(name, title, options)),
            exportButtons({
                title: () => this.#title(),
                drawing: () => this.canvas.firstChild,
                words: () => [this.settings(), this.note.textContent],
            }),
        );
        for (const [name, , , value] of switches) $(`figure-${name}`).value = value;
    }

    #switch(name, title, options) {
        const change = (event) => {
            choose({ [name]: event.target.value || null });
            this.#draw();
        };
        return h(
            'label',
            { for: `figure-${name}`, data: { key: name } },
            `${title} `,
            h(
                'select',
                { id: `figure-${name}`, on: { change } },
                options.map(([value, words]) => h('option', { value, text: words })),
            ),
        );
    }

    #scale([least, most], [from, to], log) {
        const [min, max] = log ? [least * 0.8, most * 1.25] : [Math.min(0, least), (most || 1) * 1.06];
        const f = log ? Math.log : Number;
        const place = (value) => from + ((f(value) - f(min)) / (f(max) - f(min))) * (to - from);
        return {
            min,
            max,
            place,
            marks: (room) => (log ? logMarks : linearMarks)(min, max, { most: Math.max(3, Math.floor(room)) }),
        };
    }

    /* Lines over an axis, and curves of percentiles: names at the lines' ends where there is room, else below. */
    #lines(width, range) {
        const { axis, shape } = this.data;
        const names = this.shown.map(({ label }) => label.length * LETTER);
        const named = width >= NARROW && this.shown.length > 1;
        const right = named ? Math.min(Math.max(...names) + 22, width * 0.32) : 14;
        const box = { left: 78, top: 22, right: width - right, bottom: this.height - 46 };
        const y = this.#scale(range, [box.bottom, box.top], this.log);
        const xs = [...new Set(this.shown.flatMap(({ marks }) => marks.map(({ x }) => x)))].sort((a, b) => a - b);
        const x = this.#axisX(xs, box, shape === 'lines' && xs[0] > 0);
        this.box = box;
        return svg(
            'svg',
            {
                viewBox: `0 0 ${width} ${this.height}`,
                width,
                height: this.height,
                class: 'plot',
                'aria-hidden': 'true',
            },
            this.#frame(box, y),
            this.#ticksX(
                shape === 'curves' ? this.#nines(xs) : xs,
                x,
                box,
                shape === 'curves' ? ninesWords : (value) => axisWords(axis, value),
            ),
            svg('text', {
                x: (box.left + box.right) / 2,
                y: this.height - 6,
                class: 'axis',
                'text-anchor': 'middle',
                text: shape === 'curves' ? 'Percentile, in nines' : axisTitle(axis),
            }),
            axis?.field === 'message_size' && this.#hairlines(xs, x, box),
            this.shown.map((one, at) => this.#series(one, x, y, shape === 'lines' ? aside(at, this.shown.length) : 0)),
            named && this.#endLabels(x, y, box, width),
        );
    }

    #axisX(xs, box, log) {
        const f = log ? Math.log2 : Number;
        const [from, to] = [f(xs[0]), f(xs.at(-1))];
        return (value) =>
            to === from
                ? (box.left + box.right) / 2
                : box.left + 14 + ((f(value) - from) / (to - from)) * (box.right - box.left - 28);
    }

    #nines(xs) {
        return [...Array(Math.floor(xs.at(-1) + 1e-9) + 1).keys(), Math.log10(2)]
            .filter((nines) => nines >= xs[0] - 1e-9)
            .sort((a, b) => a - b);
    }

    #frame(box, y) {
        return y.marks((box.bottom - box.top) / 40).map((mark) => [
            svg('line', { x1: box.left, x2: box.right, y1: y.place(mark), y2: y.place(mark), class: 'grid' }),
            svg('text', {
                x: box.left - 8,
                y: y.place(mark) + 4,
                'text-anchor': 'end',
                class: 'tick',
                text: round(this.format(mark)),
            }),
        ]);
    }

    #ticksX(xs, x, box, words) {
        const least = Math.max(...xs.map((value) => words(value).length)) * LETTER + 8;
        return spaced(xs.map(x), least).map((at) => [
            svg('line', { x1: x(xs[at]), x2: x(xs[at]), y1: box.bottom, y2: box.bottom + 5, class: 'grid' }),
            svg('text', {
                x: x(xs[at]),
                y: box.bottom + 19,
                'text-anchor': 'middle',
                class: 'tick',
                text: words(xs[at]),
            }),
        ]);
    }

    #hairlines(xs, x, box) {
        const within = this.limits.filter(({ bytes }) => bytes >= xs[0] && bytes <= xs.at(-1));
        let free = -Infinity;
        return within.map(({ bytes, words }) => {
            const width = words.length * 6.2 + 8;
            const fits = x(bytes) - width / 2 > free;
            if (fits) free = x(bytes) + width / 2;
            return [
                svg(
                    'line',
                    { x1: x(bytes), x2: x(bytes), y1: box.top, y2: box.bottom, class: 'hairline' },
                    svg('title', { text: `${words}: ${size(bytes, true)}` }),
                ),
                fits &&
                    svg('text', { x: x(bytes), y: box.top - 7, 'text-anchor': 'middle', class: 'tick', text: words }),
            ];
        });
    }

    #series({ label, slot, marks }, placeX, y, shift) {
        const x = (value) => placeX(value) + shift;
        const style = looks(slot);
        const line = marks.filter(({ band }) => !band);
        const path = line
            .map((mark, at) => `${at ? 'L' : 'M'}${x(mark.x).toFixed(1)} ${y.place(mark.y).toFixed(1)}`)
            .join('');
        const places = marks.filter((mark) => !mark.bare);
        return svg(
            'g',
            { class: `series c${style.colour}`, data: { label } },
            this.data.shape === 'curves' && this.shown.length <= BANDS_MAX && this.#band(places, x, y),
            svg('path', { d: path, class: 'line', 'stroke-dasharray': style.dash.join(' ') || null }),
            places.map((mark) => this.#mark(mark, style, x(mark.x), (value) => ({ y: y.place(value) }))),
        );
    }

    #band(places, x, y) {
        const ranged = places.filter((mark) => mark.lo > 0);
        if (ranged.length < 2) return null;
        const edge = (list, side) => list.map((mark) => `${x(mark.x).toFixed(1)} ${y.place(mark[side]).toFixed(1)}`);
        return svg('path', {
            d: `M${[...edge(ranged, 'hi'), ...edge([...ranged].reverse(), 'lo')].join('L')}Z`,
            class: 'band',
        });
    }

    /* A mark with its interval and its runs; `at(value)` gives {x} or {y}, whichever the figure's axis is. */
    #mark(mark, style, cross, at) {
        const curve = this.data.shape === 'curves';
        const along = (value) => {
            const place = at(value);
            return place.x === undefined ? [cross, place.y] : [place.x, cross];
        };
        const [cx, cy] = along(mark.y);
        const upright = at(mark.y).x === undefined;
        const ends = mark.lo > 0 && !curve ? [along(mark.lo), along(mark.hi)] : null;
        const cap = ([px, py]) => (upright ? `M${px - 4} ${py}H${px + 4}` : `M${px} ${py - 4}V${py + 4}`);
        const dots = this.#dotsShown() ? mark.dots : [];
        return svg(
            'g',
            { class: this.#classOf(mark), data: { row: mark.row } },
            dots.map((value, k) => {
                const aside = ((k % 5) - 2) * 2;
                const [dx, dy] = along(value);
                return svg('circle', {
                    cx: upright ? dx + aside : dx,
                    cy: upright ? dy : dy + aside,
                    r: 1.7,
                    class: 'dot',
                });
            }),
            ends &&
                svg('path', {
                    d: `M${ends[0].join(' ')}L${ends[1].join(' ')}${cap(ends[0])}${cap(ends[1])}`,
                    class: 'bar-line',
                }),
            svg(
                'path',
                { d: markPath(style, cx, cy, curve ? 3 : 4.5), class: mark.noisy ? 'mark hollow' : 'mark' },
                svg('title', { text: this.#markWords(mark) }),
            ),
        );
    }

    #dotsShown() {
        return (
            this.shown.reduce((sum, { marks }) => sum + marks.reduce((some, mark) => some + mark.dots.length, 0), 0) <=
            DOTS_MAX
        );
    }

    #classOf(mark) {
        return this.lit === null ? 'place' : this.lit.includes(mark.row) ? 'place lit' : 'place dim';
    }

    /* One below the other, none over another. */
    #endLabels(x, y, box, width) {
        const wanted = this.shown
            .map((one) => ({ one, end: one.marks.filter(({ band }) => !band).at(-1) }))
            .filter(({ end }) => end)
            .map(({ one, end }) => ({ one, end, y: y.place(end.y) }))
            .sort((a, b) => a.y - b.y);
        const gap = Math.min(LABEL_GAP, (box.bottom - box.top) / Math.max(wanted.length - 1, 1));
        wanted.forEach((label, at) => (label.y = Math.max(label.y, at ? wanted[at - 1].y + gap : box.top)));
        let most = box.bottom;
        for (const label of [...wanted].reverse()) {
            label.y = Math.min(label.y, most);
            most = label.y - gap;
        }
        const letters = Math.floor((width - box.right - 18) / LETTER);
        return wanted.map(({ one, y: at, end }) => {
            const { colour } = looks(one.slot);
            const words = one.label.length > letters ? `${one.label.slice(0, Math.max(letters - 1, 1))}…` : one.label;
            return svg(
                'g',
                { class: `label c${colour}` },
                svg('path', { d: `M${x(end.x) + 7} ${y.place(end.y)}L${box.right + 8} ${at}`, class: 'leader' }),
                svg('text', { x: box.right + 12, y: at + 4, text: words }, svg('title', { text: one.label })),
            );
        });
    }

    /* The best on top, each with its figure beside it. */
    #ranking(width, range) {
        const names = Math.max(...this.shown.map(({ label }) => label.length)) * LETTER + 14;
        const narrow = width < NARROW;
        const row = narrow ? ROW + 12 : ROW;
        const box = {
            left: narrow ? 10 : Math.min(names, width * 0.36),
            top: 12,
            right: width - 92,
            bottom: 12 + row * this.shown.length,
        };
        const x = this.#scale(range, [box.left + 4, box.right], this.log);
        const height = box.bottom + 40;
        this.box = box;
        const letters = narrow ? Infinity : Math.floor((box.left - 14) / LETTER);
        return svg(
            'svg',
            { viewBox: `0 0 ${width} ${height}`, width, height, class: 'plot', 'aria-hidden': 'true' },
            x.marks(Math.max(3, (box.right - box.left) / 90)).map((mark) => [
                svg('line', { x1: x.place(mark), x2: x.place(mark), y1: box.top, y2: box.bottom, class: 'grid' }),
                svg('text', {
                    x: x.place(mark),
                    y: box.bottom + 18,
                    'text-anchor': 'middle',
                    class: 'tick',
                    text: round(this.format(mark)),
                }),
            ]),
            this.shown.map((one, at) => {
                const style = looks(one.slot);
                const middle = box.top + row * (at + 0.5) + (narrow ? 8 : 0);
                const [mark] = one.marks;
                const words = one.label.length > letters ? `${one.label.slice(0, letters - 1)}…` : one.label;
                return svg(
                    'g',
                    { class: `series c${style.colour}`, data: { label: one.label } },
                    svg('line', { x1: box.left, x2: box.right, y1: middle, y2: middle, class: 'grid' }),
                    svg(
                        'text',
                        {
                            x: narrow ? box.left : box.left - 10,
                            y: narrow ? middle - 14 : middle + 4,
                            'text-anchor': narrow ? 'start' : 'end',
                            class: 'name',
                            text: words,
                        },
                        svg('title', { text: one.label }),
                    ),
                    this.#mark(mark, style, middle, (value) => ({ x: x.place(value) })),
                    svg('text', {
                        x: width - 4,
                        y: middle + 4,
                        'text-anchor': 'end',
                        class: 'value',
                        text: this.format(mark.y),
                    }),
                );
            }),
        );
    }

    #drawLegend(width) {
        const { shape } = this.data;
        const needed = shape !== 'ranking' && width < NARROW && this.shown.length > 1;
        fill(
            this.legend,
            needed &&
                this.shown.map(({ label, slot }) => {
                    const style = looks(slot);
                    return h(
                        'li',
                        {},
                        svg(
                            'svg',
                            {
                                viewBox: '0 0 32 14',
                                width: 32,
                                height: 14,
                                class: `plot c${style.colour}`,
                                'aria-hidden': 'true',
                            },
                            svg('path', {
                                d: 'M0 7H32',
                                class: 'line',
                                'stroke-dasharray': style.dash.join(' ') || null,
                            }),
                            svg('path', { d: markPath(style, 16, 7, 4.5), class: 'mark' }),
                        ),
                        label,
                    );
                }),
        );
    }

    #places() {
        return this.shown.flatMap((one) =>
            one.marks.filter((mark) => !mark.bare).map((mark) => ({ ...mark, label: one.label })),
        );
    }

    #markWords(mark, label = null) {
        const { axis, shape } = this.data;
        const at = shape === 'curves' ? ninesWords(mark.x) : axis && axisWords(axis, mark.x);
        const range = mark.lo !== null && `${this.format(mark.lo)} to ${this.format(mark.hi)}`;
        const kind = mark.level ? `${figure(mark.level * 100, 3)} % interval` : 'min–max';
        return [
            label,
            at,
            this.format(mark.y),
            range && `${kind} ${range}`,
            plural(mark.runs, 'run'),
            mark.noisy && 'noisy',
        ]
            .filter(Boolean)
            .join(' · ');
    }

    #key(event) {
        const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
        if (!step || !this.data) return;
        event.preventDefault();
        const places = this.#places();
        const from = this.at ?? (step > 0 ? -1 : places.length);
        this.at = Math.min(Math.max(from + step, 0), places.length - 1);
        const words = this.#markWords(places[this.at], places[this.at].label);
        setText(this.readout, words);
        setText($('announcer'), words);
        const marks = this.canvas.querySelectorAll('.place');
        marks.forEach((mark, at) => mark.classList.toggle('read', at === this.at));
    }
}
