// SPDX-License-Identifier: MIT
// A study's answers beside the figures that it published, on one axis for each unit. Both are right of their own
// machine: what can be compared is the picture.

import { svg } from '../dom.js';
import { wrapped } from '../chart/export.js';
import { figure, integer } from '../format.js';
import { Panel } from '../chart/panel.js';
import { extent, logMarks, spaced } from '../chart/scales.js';
import { settings } from '../settings.js';

const ROW = 40; /* whose question has one line */
const LINE = 15;
const HEAD = 24;
const AXIS = 34; /* below the rows of a unit */
const LEFT = 10;
const RIGHT = 66; /* for the ratio */
const QUESTION = { 'font-size': 12, 'font-weight': 600 };
const BEYOND = 1.08; /* factor by which the axis reaches beyond its outermost figures */
const TICK = 7; /* pixels of a letter of the axis */

/** [{question, unit, here, interval, published}] of the answers with a published figure; `here` null: not measured. */
export const publishedFigures = ({ answers }) =>
    answers
        .filter(({ published }) => published.value > 0)
        .map(({ question, figures, published: { value, unit } }) => {
            const own = figures.find((one) => one.unit === unit && one.value > 0);
            return { question, unit, here: own?.value ?? null, interval: own?.interval ?? null, published: value };
        });

const numberOf = (value) => (value >= 1e4 ? integer(Math.round(value)) : figure(value, 4));

function wordsOf({ question, unit, here, interval, published }) {
    const range = interval ? ` [${numberOf(interval.low)} – ${numberOf(interval.high)}]` : '';
    const own = here === null ? 'not measured here' : `here ${numberOf(here)} ${unit}${range}`;
    return `${question} ${own}, published ${numberOf(published)} ${unit}`;
}

/* Logarithmic: [pixels of a value, marks]. */
function axisOf(rows, width) {
    const [least, most] = extent(
        rows.flatMap(({ here, interval, published }) => [here ?? published, interval?.low, interval?.high, published]),
    );
    const [min, max] = [least / BEYOND, most * BEYOND];
    const [from, to] = [LEFT + 8, width - RIGHT];
    const place = (value) => from + ((Math.log(value) - Math.log(min)) / (Math.log(max) - Math.log(min))) * (to - from);
    return { place, marks: logMarks(min, max, { most: Math.max(3, Math.floor((to - from) / 90)) }) };
}

const heightOf = ({ lines }) => ROW + (lines.length - 1) * LINE;

function rowOf({ lines, here, interval, published }, top, { place }, width) {
    const y = top + heightOf({ lines }) - 12;
    return svg(
        'g',
        { class: 'answer c1' },
        lines.map((text, at) => svg('text', { x: LEFT, y: y - 12 - (lines.length - 1 - at) * LINE, text })),
        svg('line', { x1: LEFT, x2: width - RIGHT, y1: y, y2: y, class: 'grid' }),
        here !== null && [
            svg('line', { x1: place(published), x2: place(here), y1: y, y2: y, class: 'between' }),
            interval && svg('path', { d: `M${place(interval.low)} ${y}H${place(interval.high)}`, class: 'bar-line' }),
            svg('circle', { cx: place(here), cy: y, r: 5, class: 'mark' }),
            svg('text', {
                x: width - 4,
                y: y + 4,
                'text-anchor': 'end',
                class: 'value',
                text: `${figure(here / published, 3)} ×`,
            }),
        ],
        svg('path', { d: `M${place(published)} ${y - 6}l6 6-6 6-6-6z`, class: 'mark hollow' }),
    );
}

/* The words of an axis: whole within the picture, and none over another. */
function ticksOf({ place, marks }, y, width) {
    const half = Math.max(...marks.map((mark) => numberOf(mark).length)) * (TICK / 2);
    return spaced(marks.map(place), 2 * half + TICK).map((at) =>
        svg('text', {
            x: Math.min(Math.max(place(marks[at]), half), width - half),
            y,
            'text-anchor': 'middle',
            class: 'tick',
            text: numberOf(marks[at]),
        }),
    );
}

export class Published extends Panel {
    constructor(study) {
        super('published', { title: 'Here and published', level: 'h3' });
        this.study = study;
        this.rows = publishedFigures(study);
        this.units = [...new Set(this.rows.map(({ unit }) => unit))];
        /* Rows of a unit stand below one another, in the order of the questions. */
        this.rows = this.units.flatMap((unit) => this.rows.filter((row) => row.unit === unit));
        const words = `Dot: the median here, with its interval; diamond: ${study.source}; the ratio is of here over it.`;
        this.note.textContent = words;
        this.canvas.setAttribute('aria-label', `${this.rows.map(wordsOf).join('. ')}.`);
        this.controls.append(this.exports(() => `Study ${study.name}, here and published`, async () => [words, settings()]));
    }

    key(event) {
        this.step(event, this.rows.length, (at) => wordsOf(this.rows[at]), '.answer');
    }

    draw() {
        this.width = this.canvas.clientWidth;
        if (this.width === 0) return; /* folded away */
        const width = Math.max(this.width, 260);
        const all = this.rows.map((row) => ({ ...row, lines: wrapped(row.question, width - LEFT, QUESTION) }));
        const sum = (rows) => rows.reduce((total, row) => total + heightOf(row), 0);
        const height = this.units.length * (HEAD + AXIS) + sum(all);
        let top = 0;
        const part = (unit) => {
            const rows = all.filter((row) => row.unit === unit);
            const axis = axisOf(rows, width);
            const [from, bottom] = [top + HEAD, top + HEAD + sum(rows)];
            top = bottom + AXIS;
            return [
                svg('text', { x: LEFT, y: from - 6, class: 'name', text: unit }),
                axis.marks.map((mark) =>
                    svg('line', { x1: axis.place(mark), x2: axis.place(mark), y1: from, y2: bottom, class: 'grid' }),
                ),
                ticksOf(axis, bottom + 18, width),
                rows.map((row, at) => rowOf(row, from + sum(rows.slice(0, at)), axis, width)),
            ];
        };
        this.canvas.replaceChildren(
            svg(
                'svg',
                { viewBox: `0 0 ${width} ${height}`, width, height, class: 'plot', 'aria-hidden': 'true' },
                this.units.map(part),
            ),
        );
    }
}
