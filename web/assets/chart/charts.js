// SPDX-License-Identifier: MIT
// A line chart: uPlot for the frame, the axes and the cursor; the series, a legend and a readout that the keyboard
// reaches are drawn here. Colours come from the style sheet, so that a chart follows the page from light to dark.

import { $, fill, h, setText, svg } from '../dom.js';
import { exportButtons } from './export.js';
import { DASH } from '../format.js';
import { drawLine, drawMark, drawSwatch, drawWhisker, looks } from './marks.js';
import { extent, linearMarks, logMarks, markWords, padded, spaced } from './scales.js';
import { settings } from '../settings.js';

const PRINTED_WIDTH = 640; /* fits on A4 and on letter paper */
const MARKED_UP_TO = 8; /* pixels between points that have a mark each; denser ones have one here and there */
const MARKED_AGAIN = 60;
const LABEL_WIDTH = 58;
const LABEL_HEIGHT = 30;

const root = document.documentElement;
const dark = matchMedia('(prefers-color-scheme: dark)');
const charts = new Set();

const styleOf = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const colour = (number) => styleOf(`--series-${number}`);
/* What was drawn in a canvas, as a drawing of that size. */
const pictureOf = (canvas, { width, height }) =>
    svg(
        'svg',
        { viewBox: `0 0 ${width} ${height}` },
        svg('image', { href: canvas.toDataURL(), width, height, preserveAspectRatio: 'none' }),
    );
const finite = (values) => values.filter((value) => value !== null && value !== undefined);

/* The library comes with the first chart: the pages before it need not wait for it. */
let uPlot = null;
let loading = null;
const load = () => (loading ??= import('uplot').then((module) => (uPlot = module.default)));

/* Paper has the light scheme and a width of its own; a canvas is not redrawn for them without this. */
function setPrinting(printing) {
    root.classList.toggle('printing', printing);
    charts.forEach((chart) => chart.print(printing));
}
addEventListener('beforeprint', () => setPrinting(true));
addEventListener('afterprint', () => setPrinting(false));

/**
 * A figure to be put somewhere and given data. Options: `title`; `format(value)` for the y axis and the readout, and
 * `unit`, how many of what it shows a datum of 1 is, up to a power of ten; `formatX(value)`; `x`: "linear" or "log2";
 * `log`: a logarithmic y axis; `splitsX`: mark the x values themselves; `note()`: what an exported picture has besides
 * the settings.
 */
export class Chart {
    constructor(options) {
        this.options = { x: 'linear', formatX: String, note: () => '', ...options };
        this.slots = new Map(); /* label → number of a series that brings none */
        this.log = Boolean(options.log);
        this.hidden = new Set();
        this.readout = h('p', { class: 'readout' });
        this.canvas = h('div', { class: 'canvas', role: 'img', tabindex: '0', on: { keydown: (e) => this.#key(e) } });
        this.legend = h('ul', { class: 'legend' });
        this.element = h(
            'figure',
            { class: 'chart' },
            h('figcaption', {}, (this.heading = h('h3', { text: options.title })), this.readout, this.#exports()),
            this.canvas,
            this.legend,
        );
        this.observer = new ResizeObserver(() => this.#resize());
        this.observer.observe(this.canvas);
        this.restyle = () => this.#redraw();
        dark.addEventListener('change', this.restyle);
        charts.add(this);
    }

    destroy() {
        charts.delete(this);
        this.observer.disconnect();
        dark.removeEventListener('change', this.restyle);
        this.plot?.destroy();
        this.element.remove();
    }

    /**
     * xs ascending; series: [{label, ys, lo, hi, slot, variant}]: lo and hi (lists) draw a range, slot and variant are
     * what a series looks like (marks.js), by default as its label came first in this chart; describe(index): a point
     * in words.
     */
    set(xs, series, describe = (index) => this.options.formatX(xs[index])) {
        this.xs = xs;
        this.describe = describe;
        const identities = (list) => JSON.stringify(list.map(({ label, slot, variant }) => [label, slot, variant]));
        const same = this.plot && identities(this.series) === identities(series);
        this.series = series;
        this.styles = series.map(({ label, slot, variant }) => looks(slot ?? this.#slot(label), variant));
        if (!same) {
            this.#rebuild();
            return;
        }
        this.plot.setData(this.#data());
        this.#announce();
    }

    #announce() {
        const drawn = this.series.reduce((sum, one) => sum + finite(one.ys).length, 0);
        this.element.dataset.points = drawn;
        this.canvas.setAttribute(
            'aria-label',
            `${this.options.title}: ${drawn} points in ${this.series.length} series. ` +
                'Left and right arrow keys read them out.',
        );
        this.#readOut(null);
    }

    setTitle(title) {
        this.options.title = title;
        setText(this.heading, title);
    }

    setLog(log) {
        if (log === this.log) return;
        this.log = log;
        if (this.series) this.#rebuild();
    }

    /** Drawn anew for paper, or for the screen again. */
    print(printing) {
        this.printing = printing;
        if (!this.plot) return;
        this.plot.setSize(printing ? { ...this.#extent(), width: PRINTED_WIDTH } : this.#extent());
        this.#redraw();
    }

    #exports() {
        const { options } = this;
        return exportButtons({
            title: () => options.title,
            drawing: () => pictureOf(this.plot.ctx.canvas, this.#extent()),
            keys: () => this.#keys(),
            words: () => [settings(), options.note()],
        });
    }

    /* The legend of what is shown. */
    #keys() {
        const swatches = this.legend.querySelectorAll('canvas');
        return this.series
            .map(({ label }, at) => ({ label, swatch: pictureOf(swatches[at], swatches[at]) }))
            .filter(({ label }) => !this.hidden.has(label));
    }

    #slot(label) {
        if (!this.slots.has(label)) this.slots.set(label, this.slots.size);
        return this.slots.get(label);
    }

    #positive(value) {
        return this.log && !(value > 0) ? null : (value ?? null);
    }

    #data() {
        return [this.xs, ...this.series.map((one) => one.ys.map((value) => this.#positive(value)))];
    }

    #rebuild() {
        if (!uPlot) {
            load().then(
                () => charts.has(this) && this.#rebuild(),
                () => setText(this.readout, 'The chart cannot be drawn: its library was not loaded.'),
            );
            return;
        }
        this.plot?.destroy();
        this.plot = new uPlot(this.#uplotOptions(), this.#data(), this.canvas);
        fill(
            this.legend,
            this.series.map((one, index) => this.#legendItem(one, index)),
        );
        this.#drawSwatches();
        this.#announce();
    }

    #redraw() {
        this.plot?.redraw(false);
        if (this.plot) this.#drawSwatches();
    }

    #drawSwatches() {
        this.legend
            .querySelectorAll('canvas')
            .forEach((canvas, at) => drawSwatch(canvas, this.styles[at], colour(this.styles[at].colour)));
    }

    #legendItem(one, index) {
        const shown = !this.hidden.has(one.label);
        const toggle = (event) => {
            const show = this.hidden.delete(one.label);
            if (!show) this.hidden.add(one.label);
            event.currentTarget.setAttribute('aria-pressed', show);
            this.plot.setSeries(index + 1, { show });
        };
        return h(
            'li',
            {},
            h(
                'button',
                { type: 'button', 'aria-pressed': String(shown), on: { click: toggle } },
                h('canvas', { class: 'swatch', width: 64, height: 28 }),
                one.label,
                h('span', { class: 'value' }),
            ),
        );
    }

    #uplotOptions() {
        const { options } = this;
        const axis = {
            stroke: () => styleOf('--soft'),
            font: `12px ${styleOf('--sans')}`,
            grid: { stroke: () => styleOf('--grid'), width: 1 },
            ticks: { show: false },
            filter: (u, splits) => splits,
        };
        const marks = options.splitsX ? { splits: (u, at, min, max) => this.#marks(u, min, max) } : {};
        return {
            ...this.#extent(),
            legend: { show: false },
            cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
            scales: {
                x: {
                    time: false,
                    ...(options.x === 'log2' ? { distr: 3, log: 2 } : {}),
                    range: () => this.#rangeX(),
                },
                y: { ...(this.log ? { distr: 3, log: 10 } : {}), range: () => this.#rangeY() },
            },
            axes: [
                {
                    ...axis,
                    ...marks,
                    values: (u, splits) => splits.map((v) => (v === null ? '' : options.formatX(v))),
                    size: 32,
                    space: 60,
                },
                {
                    ...axis,
                    splits: (u, at, min, max) =>
                        (this.log ? logMarks : linearMarks)(min, max, {
                            unit: options.unit ?? 1,
                            most: Math.max(3, Math.floor(u.height / LABEL_HEIGHT)),
                        }),
                    values: (u, splits) =>
                        splits.map((v) => (v === null ? '' : markWords(options.format, v, splits, this.log))),
                    size: 84,
                    gap: 8,
                },
            ],
            series: [
                {},
                ...this.series.map((one, index) => ({
                    label: one.label,
                    show: !this.hidden.has(one.label),
                    stroke: () => colour(this.styles[index].colour),
                    paths: () => null /* #drawSeries: uPlot joins what a gap parts and paints over the joint */,
                    points: { show: false },
                })),
            ],
            hooks: { setCursor: [(u) => this.#readOut(u.cursor.idx ?? null)], draw: [(u) => this.#draw(u)] },
        };
    }

    /* The library's own range of a single x is a hundred wide. */
    #rangeX() {
        const [min, max] = extent(this.xs) ?? [1, 1];
        return this.options.x === 'log2' ? [min / 1.25, max * 1.25] : padded([min, max]);
    }

    /* The range of y over the shown series, bars included. */
    #rangeY() {
        const shown = this.series.filter((one) => !this.hidden.has(one.label));
        const [min, max] = extent(
            shown.flatMap((one) => [one.ys, one.lo ?? [], one.hi ?? []].flat().map((value) => this.#positive(value))),
        ) ?? [1, 1];
        return this.log ? [min * 0.75, max * 1.33] : [Math.min(0, min * 1.08), max > 0 ? max * 1.08 : 1];
    }

    /* The x values themselves as marks, but for those whose labels would touch. */
    #marks(u, min, max) {
        const scale = this.options.x === 'log2' ? Math.log2 : Number;
        const width = Math.max(u.width - 84, LABEL_WIDTH);
        const place = (x) => ((scale(x) - scale(min)) / (scale(max) - scale(min))) * width;
        return spaced(this.xs.map(place), LABEL_WIDTH).map((index) => this.xs[index]);
    }

    #draw(u) {
        const { left, top, width, height } = u.bbox;
        u.ctx.save();
        u.ctx.beginPath();
        u.ctx.rect(left, top, width, height);
        u.ctx.clip();
        u.ctx.lineJoin = 'round';
        this.series.forEach((one, index) => {
            if (!this.hidden.has(one.label)) this.#drawSeries(u, one, this.styles[index]);
        });
        u.ctx.restore();
    }

    #drawSeries(u, one, style) {
        const { ctx } = u;
        const pixel = devicePixelRatio;
        const placeX = (at) => u.valToPos(this.xs[at], 'x', true);
        const placeY = (value) => u.valToPos(value, 'y', true);
        const places = one.ys.map((value, at) =>
            this.#positive(value) === null ? null : [placeX(at), placeY(value)],
        );
        ctx.strokeStyle = ctx.fillStyle = colour(style.colour);
        ctx.lineWidth = 1.5 * pixel;
        ctx.globalAlpha = 0.7;
        one.lo?.forEach((low, at) => {
            if (this.#positive(low) !== null) drawWhisker(ctx, placeX(at), placeY(low), placeY(one.hi[at]), 4 * pixel);
        });
        ctx.globalAlpha = 1;
        ctx.lineWidth = 1.75 * pixel;
        drawLine(ctx, style, places, pixel);
        this.#drawMarks(ctx, style, places, pixel);
    }

    /* A mark on each point where there is room; else small ones on what stands alone, and here and there on a line. */
    #drawMarks(ctx, style, places, pixel) {
        const drawn = places.filter(Boolean);
        const dense = drawn.length > 1 && (drawn.at(-1)[0] - drawn[0][0]) / drawn.length < MARKED_UP_TO * pixel;
        let last = -Infinity;
        places.forEach((place, at) => {
            if (!place) return;
            const alone = !places[at - 1] && !places[at + 1];
            if (dense && !alone && place[0] - last < MARKED_AGAIN * pixel) return;
            if (!alone) last = place[0];
            drawMark(ctx, style, ...place, (dense && alone ? 2.25 : 3.5) * pixel);
        });
    }

    #readOut(index) {
        if (!this.series) return;
        setText(this.readout, index === null || index >= this.xs.length ? '' : this.describe(index));
        [...this.legend.querySelectorAll('.value')].forEach((value, at) => {
            const { ys } = this.series[at];
            const shown = index === null ? finite(ys).at(-1) : ys[index];
            setText(value, shown === null || shown === undefined ? DASH : this.options.format(shown));
        });
    }

    #key(event) {
        const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
        if (!step || !this.plot || !this.xs.length) return;
        event.preventDefault();
        const last = this.xs.length - 1;
        const from = this.plot.cursor.idx ?? (step > 0 ? -1 : last + 1);
        const to = Math.min(Math.max(from + step, 0), last);
        this.plot.setCursor({ left: this.plot.valToPos(this.xs[to], 'x'), top: 0 });
        const values = this.series.map(
            (one) => `${one.label} ${one.ys[to] === null ? DASH : this.options.format(one.ys[to])}`,
        );
        setText($('announcer'), `${this.describe(to)}: ${values.join(', ')}`);
    }

    #extent() {
        return { width: Math.max(this.canvas.clientWidth, 120), height: Math.max(this.canvas.clientHeight, 120) };
    }

    #resize() {
        if (this.plot && this.canvas.clientWidth && !this.printing) this.plot.setSize(this.#extent());
    }
}
