// SPDX-License-Identifier: MIT
// A line chart: uPlot for the drawing, a legend and a readout of our own that the keyboard reaches. Colours come from
// the style sheet, so that a chart follows the page from light to dark.

import uPlot from 'uplot';
import { $, fill, h, setText } from './dom.js';
import { DASH, round } from './format.js';

const COLOURS = 8;
const POINTS_SHOWN_UP_TO = 120;
const dark = matchMedia('(prefers-color-scheme: dark)');

const styleOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (index) => styleOf(`--series-${(index % COLOURS) + 1}`);
const finite = (values) => values.filter((value) => value !== null && value !== undefined);

/* Marks of a logarithmic axis: powers of ten, with 2 and 5 between them where there is room. */
function decades(min, max) {
    const marks = [];
    const steps = max / min < 200 ? [1, 2, 5] : [1];
    for (let power = 10 ** Math.floor(Math.log10(min)); power <= max; power *= 10)
        marks.push(...steps.map((step) => step * power).filter((mark) => mark >= min && mark <= max));
    return marks;
}

/**
 * A figure to be put somewhere and given data. Options: `title`; `format(value)` for the y axis and the readout;
 * `formatX(value)`; `x`: "linear" or "log2"; `log`: a logarithmic y axis; `splitsX`: mark the x values themselves.
 */
export class Chart {
    constructor(options) {
        this.options = { x: 'linear', formatX: String, ...options };
        this.log = Boolean(options.log);
        this.hidden = new Set();
        this.readout = h('p', { class: 'readout' });
        this.canvas = h('div', { class: 'canvas', role: 'img', tabindex: '0', on: { keydown: (e) => this.#key(e) } });
        this.legend = h('ul', { class: 'legend' });
        this.element = h(
            'figure',
            { class: 'chart' },
            h('figcaption', {}, (this.heading = h('h3', { text: options.title })), this.readout),
            this.canvas,
            this.legend,
        );
        this.observer = new ResizeObserver(() => this.#resize());
        this.observer.observe(this.canvas);
        this.restyle = () => this.plot?.redraw(false);
        dark.addEventListener('change', this.restyle);
    }

    destroy() {
        this.observer.disconnect();
        dark.removeEventListener('change', this.restyle);
        this.plot?.destroy();
        this.element.remove();
    }

    /** xs ascending; series: [{label, ys, lo, hi}], lo and hi (lists) draw a range; describe(index): a point in words. */
    set(xs, series, describe = (index) => this.options.formatX(xs[index])) {
        this.xs = xs;
        this.describe = describe;
        const same = this.plot && this.series.map((s) => s.label).join('\n') === series.map((s) => s.label).join('\n');
        this.series = series;
        if (same) this.plot.setData(this.#data());
        else this.#rebuild();
        const drawn = series.reduce((sum, one) => sum + finite(one.ys).length, 0);
        this.element.dataset.points = drawn;
        this.canvas.setAttribute(
            'aria-label',
            `${this.options.title}: ${drawn} points in ${series.length} series. ` +
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

    #data() {
        const positive = (value) => (this.log && !(value > 0) ? null : value);
        return [this.xs, ...this.series.map((one) => one.ys.map(positive))];
    }

    #rebuild() {
        this.plot?.destroy();
        this.plot = new uPlot(this.#uplotOptions(), this.#data(), this.canvas);
        fill(
            this.legend,
            this.series.map((one, index) => this.#legendItem(one, index)),
        );
    }

    #legendItem(one, index) {
        const swatch = h('span', { class: 'swatch' });
        swatch.style.background = `var(--series-${(index % COLOURS) + 1})`;
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
                swatch,
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
        };
        const marks = options.splitsX ? { splits: () => this.#marks(), filter: (u, splits) => splits } : {};
        return {
            ...this.#extent(),
            legend: { show: false },
            cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
            scales: {
                x:
                    options.x === 'log2'
                        ? { time: false, distr: 3, log: 2, range: (u, min, max) => [min / 1.25, max * 1.25] }
                        : { time: false, range: (u, min, max) => (min === max ? [min - 0.5, max + 0.5] : [min, max]) },
                y: this.log
                    ? { distr: 3, log: 10, range: (u, min, max) => (min > 0 ? [min * 0.7, max * 1.4] : [1, 10]) }
                    : { range: (u, min, max) => [0, max > 0 ? max * 1.08 : 1] },
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
                    ...(this.log
                        ? { splits: (u, at, min, max) => decades(min, max), filter: (u, splits) => splits }
                        : {}),
                    values: (u, splits) => splits.map((v) => (v === null ? '' : round(options.format(v)))),
                    size: 84,
                    gap: 8,
                },
            ],
            series: [
                {},
                ...this.series.map((one, index) => ({
                    label: one.label,
                    show: !this.hidden.has(one.label),
                    width: 1.75,
                    spanGaps: false,
                    stroke: () => colour(index),
                    points: {
                        show: this.xs.length <= POINTS_SHOWN_UP_TO,
                        size: 5,
                        fill: () => colour(index),
                        stroke: () => colour(index),
                    },
                })),
            ],
            hooks: { setCursor: [(u) => this.#readOut(u.cursor.idx ?? null)], draw: [(u) => this.#drawRanges(u)] },
        };
    }

    /* The x values themselves as marks, thinned where their labels would touch. */
    #marks() {
        const least = Math.ceil((this.xs.length * 70) / Math.max(this.canvas.clientWidth - 84, 70));
        return this.xs.filter((x, index) => index % least === 0);
    }

    #drawRanges(u) {
        this.series.forEach((one, index) => {
            if (!one.lo || this.hidden.has(one.label)) return;
            u.ctx.save();
            u.ctx.strokeStyle = colour(index);
            u.ctx.globalAlpha = 0.55;
            u.ctx.lineWidth = 2 * devicePixelRatio;
            u.ctx.beginPath();
            this.xs.forEach((x, at) => {
                if (!(one.lo[at] > 0)) return;
                const px = u.valToPos(x, 'x', true);
                u.ctx.moveTo(px, u.valToPos(one.lo[at], 'y', true));
                u.ctx.lineTo(px, u.valToPos(one.hi[at], 'y', true));
            });
            u.ctx.stroke();
            u.ctx.restore();
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
        if (this.plot && this.canvas.clientWidth) this.plot.setSize(this.#extent());
    }
}
