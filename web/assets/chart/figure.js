// SPDX-License-Identifier: MIT
// The large chart of an experiment, drawn as SVG: lines over an axis, a ranking where there is one point of it, or
// latency by percentile. What it shows is chosen in the address. Loaded with the first experiment that is opened.

import { choices, chosen, choose, onTheWall } from '../address.js';
import { $, fill, h, patch, setText, svg } from '../dom.js';
import { axisTitle, axisWords, barsOfMarks, figureData, ninesWords, runsByPoint } from './figure-data.js';
import { fieldTitle, figure, levelWords, plural, shortened, size } from '../format.js';
import { looks, markPath } from './marks.js';
import { Panel } from './panel.js';
import { extent, linearMarks, logMarks, markWords, spaced } from './scales.js';

const SERIES_MAX = 24;
const NARROW = 560; /* pixels below which labels stand in the margin no more */
const HEIGHT = 440;
/* When it is presented: its share of the window's height, and how much larger its letters are (figure.css). */
const ON_WALL = { height: 0.66, letters: 15 / 12 };
const ROW = 34;
const LETTER = 7.4; /* of the labels' 12 px, on average */
const BANDS_MAX = 4; /* more would hide one another */
const ASIDE = 4; /* pixels between the bars of two series at one place */
const LABEL_GAP = 15;
const DOTS_MAX = 2000;
const PAPER = { width: 700, height: 270 }; /* two of them beside words on a sheet of A4 or letter */
const PRINTING = ['beforeprint', 'afterprint'];
/* Of several: the least width in pixels, and how many are abreast at most. */
const PANEL = { width: 300, height: 270, title: 24, columns: 4 };
const WIDE_SPREAD = 4; /* figures this far apart start on a logarithmic axis */

/* So that the bars of series at one place lie beside one another. */
const aside = (at, count) => (at - (count - 1) / 2) * Math.min(ASIDE, 16 / count);

/* The marks of a curve that a band goes through. */
const rangedOf = ({ marks }) => marks.filter((mark) => !mark.bare && mark.lo > 0);
/* The series of a panel that have such a band. */
const bandedOf = (series) => (series.length > BANDS_MAX ? [] : series.filter((one) => rangedOf(one).length > 1));

const OVER = { ranking: 'a ranking' };
const AT = 'at.';

export class Figure extends Panel {
    /**
     * `settings()`: the line of settings that an exported picture has. `id` distinguishes several figures of a page.
     * `fixed`: the choice {figure, over, at, facet, relative, scale} of a figure that has no switches and follows no
     * address. `tall` is its height in pixels, `level` the element of its heading.
     */
    constructor(settings, { id = 'figure', fixed = null, tall = HEIGHT, level = 'h2' } = {}) {
        super(id, { level, legend: h('ul', { class: 'keys' }) });
        Object.assign(this, { settings, id, fixed, tall });
        this.rows = [];
        this.runs = new Map();
        this.limits = [];
        this.lit = null;
        this.printing = (event) => this.#print(event.type === 'beforeprint');
        PRINTING.forEach((type) => addEventListener(type, this.printing));
    }

    destroy() {
        super.destroy();
        PRINTING.forEach((type) => removeEventListener(type, this.printing));
    }

    /* A sheet of paper has a width of its own. */
    #print(onPaper) {
        this.onPaper = onPaper;
        if (this.rows.length) this.draw();
    }

    /** The rows of the results table. */
    update(rows) {
        this.rows = rows;
        this.soon();
    }

    /** Sets all known runs; each done one is a dot. */
    setRuns(runs) {
        this.runs = runsByPoint(runs);
        this.soon();
    }

    /** Sizes at which something ends: [{bytes, words}], drawn as hairlines across an axis of message sizes. */
    setLimits(limits) {
        this.limits = limits;
        this.soon();
    }

    /** Lets the marks of these rows stand out; null: of none. */
    light(rows) {
        this.lit = rows;
        this.soon();
    }

    #choice() {
        if (this.fixed) return this.fixed;
        const at = choices().filter(([name]) => name.startsWith(AT));
        return {
            figure: chosen('figure'),
            over: chosen('over'),
            relative: chosen('relative'),
            scale: chosen('scale'),
            facet: chosen('facet'),
            at: Object.fromEntries(at.map(([name, value]) => [name.slice(AT.length), value])),
        };
    }

    draw() {
        const choice = this.#choice();
        const data = figureData(this.rows, choice, this.runs);
        this.element.hidden = !data || !data.series.length;
        if (this.element.hidden) return;
        this.data = data;
        this.height = this.onPaper ? PAPER.height : this.tall;
        this.letter = LETTER;
        if (onTheWall()) {
            this.height = Math.max(HEIGHT, innerHeight * ON_WALL.height);
            this.letter *= ON_WALL.letters;
        }
        this.panels = data.panels.map((panel) => ({ ...panel, series: panel.series.slice(0, SERIES_MAX) }));
        this.shown = this.panels.flatMap(({ series }) => series);
        this.banded = new Set(data.shape === 'curves' ? this.panels.flatMap(({ series }) => bandedOf(series)) : []);
        const dotted = this.#dotsShown();
        const values = this.shown
            .flatMap(({ marks }) => marks.flatMap(({ y, lo, hi, dots }) => [y, lo, hi, ...(dotted ? dots : [])]))
            .filter((value) => value > 0);
        const [least, most] = extent(values) ?? [1, 1];
        this.log =
            (choice.scale ?? (data.shape === 'ranking' || most / least < WIDE_SPREAD ? 'linear' : 'log')) === 'log';
        this.format = data.relative === null ? data.what.format : (value) => `${figure(value, 3)} ×`;
        setText(this.heading, this.#title());
        this.#drawControls();
        this.width = this.canvas.clientWidth;
        const width = this.onPaper ? PAPER.width : Math.max(this.width, 240);
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
        const { what, axis, pinned, relative, facet } = this.data;
        const at = pinned
            .filter(({ value }) => value !== null)
            .map((one) => `${fieldTitle(one.field)} ${axisWords(one, one.value)}`);
        return [
            what.title,
            axis && ` by ${axisTitle(axis).toLowerCase()}`,
            facet && `, for each ${fieldTitle(facet)}`,
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
            shape === 'curves' ? this.#bandWords() : barsOfMarks(this.shown, false),
            dots > 0 && dots <= DOTS_MAX && 'Dots: the runs.',
            marks.some((mark) => mark.noisy) && 'Hollow: other programs disturbed a run.',
            this.data.relative !== null &&
                'Each figure over that of the series chosen at the same point,' +
                    ' whose own uncertainty is not in the bars.',
            series.length > this.shown.length && `${series.length - this.shown.length} more series are in the table.`,
        ]
            .filter(Boolean)
            .join(' ');
    }

    #bandWords() {
        const without = this.shown.some((one) => !this.banded.has(one) && rangedOf(one).length > 1);
        return [
            barsOfMarks([...this.banded], true),
            without && `No band where there are more than ${BANDS_MAX} curves, which would hide one another.`,
        ]
            .filter(Boolean)
            .join(' ');
    }

    /* The switches. Each writes the address, from which the drawing follows. */
    #drawControls() {
        const { what, figures, axes, axis, pinned, labels, relative, shape, facet, facets } = this.data;
        const switches = !this.fixed && [
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
            facets.length > 0 && [
                'facet',
                'A panel for each',
                [['', 'nothing'], ...facets.map((field) => [field, fieldTitle(field)])],
                facet ?? '',
            ],
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
        ];
        const given = (switches || []).filter(Boolean);
        patch(
            this.controls,
            given.map(([name, title, options]) => this.#switch(name, title, options)),
            this.exports(
                () => this.#title(),
                () => [this.settings(), this.note.textContent],
            ),
        );
        for (const [name, , , value] of given) $(`${this.id}-${name}`).value = value;
    }

    #switch(name, title, options) {
        const change = (event) => {
            choose({ [name]: event.target.value || null });
            this.draw();
        };
        return h(
            'label',
            { for: `${this.id}-${name}`, data: { key: name } },
            `${title} `,
            h(
                'select',
                { id: `${this.id}-${name}`, on: { change } },
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

    /* Lines over an axis, and curves of percentiles: panels side by side, all with the same axes. */
    #lines(width, range) {
        const { shape } = this.data;
        const xs = [...new Set(this.shown.flatMap(({ marks }) => marks.map(({ x }) => x)))].sort((a, b) => a - b);
        const divided = this.panels.length > 1;
        const columns = divided
            ? Math.min(this.panels.length, Math.max(1, Math.floor(width / PANEL.width)), PANEL.columns)
            : 1;
        const lines = Math.ceil(this.panels.length / columns);
        const size = { width: width / columns, height: Math.max(this.height / lines, divided ? PANEL.height : 0) };
        const height = size.height * lines;
        return svg(
            'svg',
            { viewBox: `0 0 ${width} ${height}`, width, height, class: 'plot', 'aria-hidden': 'true' },
            this.panels.map((panel, at) => {
                const [across, down] = [(at % columns) * size.width, Math.floor(at / columns) * size.height];
                return svg(
                    'g',
                    {
                        class: 'panel-of',
                        transform: `translate(${across} ${down})`,
                        data: { panel: panel.title ?? '' },
                    },
                    this.#panel(panel, xs, range, size, shape === 'curves'),
                );
            }),
        );
    }

    /* Names at the lines' ends where there is room, else below all panels. */
    #panel({ title, series }, xs, range, { width, height }, curves) {
        const { axis } = this.data;
        const names = series.map(({ label }) => label.length * this.letter);
        const named = title === null && width >= NARROW && series.length > 1;
        const right = named ? Math.min(Math.max(...names) + 22, width * 0.32) : 14;
        const head = title === null ? 0 : PANEL.title;
        const box = { left: 78, top: 22 + head, right: width - right, bottom: height - 46 };
        const y = this.#scale(range, [box.bottom, box.top], this.log);
        const x = this.#axisX(xs, box, !curves && xs[0] > 0);
        const letters = Math.floor((width - box.left) / this.letter);
        return [
            title !== null && svg('text', { x: box.left, y: 14, class: 'name', text: shortened(title, letters) }),
            this.#frame(box, y),
            this.#ticksX(
                curves ? this.#nines(xs) : xs,
                x,
                box,
                curves ? ninesWords : (value) => axisWords(axis, value),
            ),
            svg('text', {
                x: (box.left + box.right) / 2,
                y: height - 6,
                class: 'axis',
                'text-anchor': 'middle',
                text: curves ? 'Percentile, in nines' : axisTitle(axis),
            }),
            axis?.field === 'message_size' && this.#hairlines(xs, x, box),
            series.map((one, at) => this.#series(one, x, y, curves ? 0 : aside(at, series.length))),
            named && this.#endLabels(series, x, y, box, width),
        ];
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
        return y.marks((box.bottom - box.top) / 40).map((mark, _, marks) => [
            svg('line', { x1: box.left, x2: box.right, y1: y.place(mark), y2: y.place(mark), class: 'grid' }),
            svg('text', {
                x: box.left - 8,
                y: y.place(mark) + 4,
                'text-anchor': 'end',
                class: 'tick',
                text: markWords(this.format, mark, marks, this.log),
            }),
        ]);
    }

    #ticksX(xs, x, box, words) {
        const least = Math.max(...xs.map((value) => words(value).length)) * this.letter + 8;
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

    #series(one, placeX, y, shift) {
        const { label, slot, marks } = one;
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
            this.banded.has(one) && this.#band(rangedOf(one), x, y),
            svg('path', { d: path, class: 'line', 'stroke-dasharray': style.dash.join(' ') || null }),
            places.map((mark) => this.#mark(mark, style, x(mark.x), (value) => ({ y: y.place(value) }))),
        );
    }

    #band(ranged, x, y) {
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
                    r: 2.2,
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
    #endLabels(series, x, y, box, width) {
        const wanted = series
            .map((one) => ({ one, end: one.marks.filter(({ band }) => !band).at(-1) }))
            .filter(({ end }) => end)
            .map(({ one, end }) => ({ one, end, y: y.place(end.y) }))
            .sort((a, b) => a.y - b.y);
        const gap = Math.min(LABEL_GAP * (this.letter / LETTER), (box.bottom - box.top) / Math.max(wanted.length - 1, 1));
        wanted.forEach((label, at) => (label.y = Math.max(label.y, at ? wanted[at - 1].y + gap : box.top)));
        let most = box.bottom;
        for (const label of [...wanted].reverse()) {
            label.y = Math.min(label.y, most);
            most = label.y - gap;
        }
        const letters = Math.floor((width - box.right - 18) / this.letter);
        const farthest = Math.max(...wanted.map(({ end }) => end.x));
        return wanted.map(({ one, y: at, end }) => {
            const style = looks(one.slot);
            const words = shortened(one.label, letters);
            const leader = `M${x(end.x) + 7} ${y.place(end.y)}L${box.right + 8} ${at}`;
            /* From a series that ends early, as while it runs, a line to its name would cross the others. */
            return svg(
                'g',
                { class: `label c${style.colour}` },
                end.x === farthest
                    ? svg('path', { d: leader, class: 'leader' })
                    : svg('path', { d: markPath(style, box.right + 3, at, 3.5), class: 'mark' }),
                svg('text', { x: box.right + 12, y: at + 4, text: words }, svg('title', { text: one.label })),
            );
        });
    }

    /* The best on top, each with its figure beside it; a panel below the other. */
    #ranking(width, range) {
        const names = Math.max(...this.shown.map(({ label }) => this.#wide(label))) + 16;
        const narrow = width < NARROW;
        const row = narrow ? ROW + 12 : ROW;
        const heads = this.panels.filter(({ title }) => title !== null).length * PANEL.title;
        const box = {
            left: narrow ? 10 : Math.min(names, width * 0.36),
            top: 12,
            right: width - 92,
            bottom: 12 + heads + row * this.shown.length,
        };
        const x = this.#scale(range, [box.left + 4, box.right], this.log);
        const height = box.bottom + 40;
        let top = box.top;
        return svg(
            'svg',
            { viewBox: `0 0 ${width} ${height}`, width, height, class: 'plot', 'aria-hidden': 'true' },
            x.marks(Math.max(3, (box.right - box.left) / 90)).map((mark, _, marks) => {
                const text = markWords(this.format, mark, marks, this.log);
                const inside = Math.max(x.place(mark), (text.length * this.letter) / 2);
                return [
                    svg('line', { x1: x.place(mark), x2: x.place(mark), y1: box.top, y2: box.bottom, class: 'grid' }),
                    svg('text', { x: inside, y: box.bottom + 18, 'text-anchor': 'middle', class: 'tick', text }),
                ];
            }),
            this.panels.map(({ title, series }) => {
                const head = title === null ? 0 : PANEL.title;
                const from = top;
                top += head + row * series.length;
                return svg(
                    'g',
                    { class: 'panel-of', data: { panel: title ?? '' } },
                    head > 0 &&
                        svg('text', {
                            x: 10,
                            y: from + head - 5,
                            class: 'name',
                            text: shortened(title, Math.floor(width / this.letter)),
                        }),
                    series.map((one, at) => this.#ranked(one, from + head + row * at, row, box, x, width)),
                );
            }),
        );
    }

    #ranked({ label, slot, marks: [mark] }, top, row, box, x, width) {
        const style = looks(slot);
        const narrow = width < NARROW;
        const middle = top + row / 2 + (narrow ? 8 : 0);
        return svg(
            'g',
            { class: `series c${style.colour}`, data: { label } },
            svg('line', { x1: box.left, x2: box.right, y1: middle, y2: middle, class: 'grid' }),
            svg(
                'text',
                {
                    x: narrow ? box.left : box.left - 10,
                    y: narrow ? middle - 14 : middle + 4,
                    'text-anchor': narrow ? 'start' : 'end',
                    class: 'name',
                    text: narrow ? label : this.#within(label, box.left - 14),
                },
                svg('title', { text: label }),
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
    }

    /* The pixels of a name, whose letters may all be wide ones. */
    #wide(name) {
        const pen = document.createElement('canvas').getContext('2d');
        pen.font = `600 ${(12 * this.letter) / LETTER}px ${getComputedStyle(document.body).fontFamily}`;
        return pen.measureText(name).width;
    }

    #within(name, room) {
        let words = name;
        for (let letters = name.length - 1; this.#wide(words) > room && letters > 1; letters--)
            words = shortened(name, letters);
        return words;
    }

    #drawLegend(width) {
        const { shape } = this.data;
        const keys = [...new Map(this.shown.map((one) => [one.label, one])).values()];
        const needed = shape !== 'ranking' && (width < NARROW || this.data.facet !== null) && keys.length > 1;
        fill(
            this.legend,
            needed &&
                keys.map(({ label, slot }) => {
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
            one.marks
                .filter((mark) => !mark.bare)
                .map((mark) => ({
                    ...mark,
                    label: [one.panel, one.label].filter(Boolean).join(' · '),
                })),
        );
    }

    #markWords(mark, label = null) {
        const { axis, shape } = this.data;
        const at = shape === 'curves' ? ninesWords(mark.x) : axis && axisWords(axis, mark.x);
        const range = mark.lo !== null && `${this.format(mark.lo)} to ${this.format(mark.hi)}`;
        const kind = mark.level ? `${levelWords([mark.level])} interval` : 'min–max';
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

    key(event) {
        const places = this.data ? this.#places() : [];
        this.step(event, places.length, (at) => this.#markWords(places[at], places[at].label), '.place');
    }
}
