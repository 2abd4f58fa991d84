// SPDX-License-Identifier: MIT
// Node by node and CPU by CPU: a cell for each pair of places, as they lie in the machine. The arrow keys go from cell
// to cell; a press shows the runs of one beside it.

import { choices, chosen, choose } from '../address.js';
import { Cell } from './cell.js';
import { $, h, patch, setText, svg } from '../dom.js';
import { figuresOf } from './figure-data.js';
import { fieldTitle, fieldValue, levelWords, plural, splitFields } from '../format.js';
import { ranges } from '../home/host.js';
import { borderOf, kindsOf, pairOf, placesOf } from './pairs.js';
import { Panel } from './panel.js';
import { extent } from './scales.js';

const GAPS = { package: 10, node: 6, cache: 3 };
const LEFT = 96;
const TOP = 58;
const CELL = { least: 5, most: 72, words: 46 };
const WIDE_SPREAD = 4; /* figures this far apart have colours by their logarithms */
const FAINT = 0.07; /* opacity of the least */
/* Opacities above which one scheme and both have words of the other brightness, so that their contrast is 4.5 or more. */
const MIDDLE = 0.525;
const STRONG = 0.725;
const onHeat = (opacity) => (opacity > STRONG ? 'on-strong' : opacity > MIDDLE ? 'on-middle' : 'on-faint');
const TITLES = { cpu: 'CPU', node: 'Node' };
const BY = { cpu: 'CPU by CPU', node: 'node by node' };
const LINE = 13; /* pixels of a line of numbers, and of each digit */
const DIGIT = 7.4;
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export class HeatMap extends Panel {
    /** `topology` as the API has it; `settings()`: the line that an exported picture carries. */
    constructor(topology, settings) {
        const cell = new Cell(() => this.#choose(null));
        super('heatmap', { focusable: false, beside: cell.element });
        Object.assign(this, { topology, settings, cell, at: null });
        this.element.hidden = true;
    }

    destroy() {
        super.destroy();
        this.cell.destroy();
    }

    update(rows) {
        this.rows = rows;
        this.draw();
    }

    #choice() {
        const kinds = kindsOf(this.rows);
        const kind = kinds.find((one) => one === chosen('pairs')) ?? kinds[0];
        if (!kind) return null;
        const paired = this.rows.filter(({ point }) => pairOf(point.placement)?.kind === kind);
        const figures = figuresOf(paired).filter(({ curve }) => !curve);
        const what = figures.find(({ key }) => key === chosen('figure')) ?? figures[0];
        if (!what) return null;
        const pinned = new Map(choices());
        const fields = splitFields(paired.map(({ point }) => point)).varying.filter((field) => field !== 'placement');
        const pins = fields.map((field) => {
            const values = [...new Set(paired.map(({ point }) => JSON.stringify(point[field])))];
            return { field, values, value: values.find((one) => one === pinned.get(`with.${field}`)) ?? values[0] };
        });
        const rows = paired.filter(({ point }) =>
            pins.every(({ field, value }) => JSON.stringify(point[field]) === value),
        );
        return { kinds, kind, figures, what, pins, rows };
    }

    draw() {
        const choice = this.rows ? this.#choice() : null;
        this.element.hidden = !choice;
        if (!choice) return;
        this.choice = choice;
        const { kind, what, rows, pins } = choice;
        this.places = placesOf(rows, kind, this.topology);
        this.cells = new Map(
            rows.map((row) => {
                const { from, to } = pairOf(row.point.placement);
                return [`${from}-${to}`, { row, from, to, statistic: what.of(row) }];
            }),
        );
        const values = [...this.cells.values()].map(({ statistic }) => statistic?.median).filter((value) => value > 0);
        this.range = extent(values) ?? [1, 1];
        this.log = this.range[1] / this.range[0] >= WIDE_SPREAD;
        const at = pins.map(({ field, value }) => `${fieldTitle(field)} ${fieldValue(field, JSON.parse(value))}`);
        setText(this.heading, `${what.title}, ${BY[kind]}${at.length ? ` at ${at.join(', ')}` : ''}`);
        this.#drawControls();
        this.width = this.canvas.clientWidth;
        patch(this.canvas, this.#map(Math.max(this.width, 240)));
        setText(this.note, this.#words());
        this.element.dataset.cells = this.cells.size;
        this.cell.show(this.cells.get(chosen('cell')) ?? null, what, this.#pairWords(this.cells.get(chosen('cell'))));
    }

    #drawControls() {
        const { kinds, kind, figures, what, pins } = this.choice;
        const given = [
            kinds.length > 1 && ['pairs', 'Pairs of', kinds.map((one) => [one, `${TITLES[one]}s`]), kind],
            figures.length > 1 && ['figure', 'Show', figures.map(({ key, title }) => [key, title]), what.key],
            ...pins.map(({ field, values, value }) => [
                `with.${field}`,
                fieldTitle(field),
                values.map((one) => [one, fieldValue(field, JSON.parse(one))]),
                value,
            ]),
        ].filter(Boolean);
        const select = ([name, title, options]) =>
            h(
                'label',
                { for: `heatmap-${name}`, data: { key: name } },
                `${title} `,
                h(
                    'select',
                    {
                        id: `heatmap-${name}`,
                        on: {
                            change: (event) => {
                                choose({ [name]: event.target.value });
                                this.draw();
                            },
                        },
                    },
                    options.map(([value, words]) => h('option', { value, text: words })),
                ),
            );
        patch(
            this.controls,
            given.map(select),
            this.exports(
                () => this.heading.textContent,
                () => [this.settings(), this.note.textContent],
            ),
        );
        for (const [name, , , value] of given) $(`heatmap-${name}`).value = value;
    }

    /* 0 for the least of the figures, 1 for the largest. */
    #share(value) {
        const f = this.log ? Math.log : Number;
        const [least, most] = this.range;
        return most === least ? 1 : (f(value) - f(least)) / (f(most) - f(least));
    }

    /* The offset of each place, with gaps between groups. */
    #offsets(side) {
        let at = 0;
        return this.places.map((place, index) => {
            const border = index > 0 && borderOf(this.places[index - 1], place);
            if (border) at += GAPS[border];
            const mine = at;
            at += side;
            return mine;
        });
    }

    #map(width) {
        const { places } = this;
        this.digits = Math.max(2, ...places.map(({ id }) => String(id).length));
        const left = (width < 560 ? 52 : LEFT) + (this.digits - 2) * DIGIT;
        const gaps = places.slice(1).reduce((sum, place, at) => sum + (GAPS[borderOf(places[at], place)] ?? 0), 0);
        const side = Math.min(CELL.most, Math.max(CELL.least, (width - left - 8 - gaps) / places.length));
        const offsets = this.#offsets(side);
        const end = offsets.at(-1) + side;
        const whole = Math.max(width, left + end + 8);
        const height = TOP + end + 54;
        return svg(
            'svg',
            {
                viewBox: `0 0 ${whole} ${height}`,
                width: whole,
                height,
                class: 'plot heat',
                role: 'grid',
                'aria-label':
                    `${this.heading.textContent}: ${plural(this.cells.size, 'pair')}. ` +
                    'Arrow keys go from cell to cell, Enter shows its runs.',
            },
            this.#groups(offsets, side, left),
            places.map((place, at) => [
                this.#label(place, left - 8, TOP + offsets[at] + side / 2 + 4, 'end', side, at),
                this.#label(place, left + offsets[at] + side / 2, TOP - 8, 'middle', side, at),
            ]),
            places.map((from, y) =>
                svg(
                    'g',
                    { role: 'row', data: { key: `row-${from.id}` } },
                    places.map((to, x) => this.#cell(from, to, left + offsets[x], TOP + offsets[y], side)),
                ),
            ),
            this.#scale(left, TOP + end + 22, Math.min(260, width - left - 20)),
        );
    }

    /* Among small cells only every nth place has a number. */
    #label(place, x, y, anchor, side, at) {
        const room = anchor === 'end' ? LINE : this.digits * DIGIT + 6;
        if (at % Math.ceil(room / side)) return null;
        return svg('text', { x, y, 'text-anchor': anchor, class: 'tick', 'aria-hidden': 'true', text: place.id });
    }

    /* A bracket with the name of each node, or package, where there are several. */
    #groups(offsets, side, left) {
        const { places } = this;
        const field = ['node', 'package'].find(
            (one) => places[0][one] !== undefined && new Set(places.map((place) => place[one])).size > 1,
        );
        const groups = [];
        if (field)
            places.forEach((place, at) => {
                const last = groups.at(-1);
                if (last && last.of === place[field]) last.to = at;
                else groups.push({ of: place[field], from: at, to: at });
            });
        return groups
            .filter(({ of, from, to }) => Number.isFinite(of) && to > from)
            .map(({ of, from, to }) => {
                const [begin, end] = [offsets[from], offsets[to] + side];
                const beside = left - 19 - this.digits * DIGIT;
                const words = end - begin > 64 ? `${field} ${of}` : String(of);
                return svg(
                    'g',
                    { 'aria-hidden': 'true' },
                    svg('path', { d: `M${left + begin} ${TOP - 25}H${left + end}`, class: 'bracket' }),
                    svg('text', {
                        x: left + (begin + end) / 2,
                        y: TOP - 31,
                        'text-anchor': 'middle',
                        class: 'tick',
                        text: words,
                    }),
                    svg('path', { d: `M${beside} ${TOP + begin}V${TOP + end}`, class: 'bracket' }),
                    left >= LEFT &&
                        svg('text', {
                            x: beside - 6,
                            y: TOP + (begin + end) / 2 + 4,
                            'text-anchor': 'end',
                            class: 'tick',
                            text: `${field === 'package' ? 'pkg' : field} ${of}`,
                        }),
                );
            });
    }

    #cell(from, to, x, y, side) {
        const key = `${from.id}-${to.id}`;
        const cell = this.cells.get(key);
        const value = cell?.statistic?.median;
        const share = value > 0 ? this.#share(value) : null;
        const opacity = share === null ? 0 : FAINT + (1 - FAINT) * share;
        const noisy = cell?.row.flags.some((flag) => flag.startsWith('noisy:'));
        const first = (this.at ?? chosen('cell') ?? `${this.places[0].id}-${this.places[0].id}`) === key;
        const words = side >= CELL.words && value > 0 ? this.choice.what.format(value).split('\u00a0')[0] : null;
        return svg(
            'g',
            {
                role: 'gridcell',
                class: chosen('cell') === key ? 'cell picked' : 'cell',
                tabindex: first ? '0' : '-1',
                'aria-label': this.#cellWords(from.id, to.id, cell),
                'aria-selected': String(chosen('cell') === key),
                data: { key, at: key },
                on: { click: () => this.#choose(key), focus: () => this.#focused(key) },
            },
            svg('rect', { x, y, width: side - 1, height: side - 1, class: share === null ? 'none' : 'ground' }),
            share !== null &&
                svg('rect', {
                    x,
                    y,
                    width: side - 1,
                    height: side - 1,
                    class: 'heat-fill',
                    'fill-opacity': opacity.toFixed(3),
                }),
            words &&
                svg('text', {
                    x: x + side / 2,
                    y: y + side / 2 + 4,
                    'text-anchor': 'middle',
                    class: onHeat(opacity),
                    text: words,
                }),
            noisy &&
                side >= 12 &&
                svg('circle', {
                    cx: x + side - 6,
                    cy: y + 5,
                    r: 2.2,
                    class: `noisy ${onHeat(opacity)}`,
                }),
        );
    }

    /* The scale goes from the least to the largest, in five steps. */
    #scale(x, y, width) {
        const steps = 5;
        const [least, most] = this.range;
        const valueAt = (share) => (this.log ? least * (most / least) ** share : least + (most - least) * share);
        return svg(
            'g',
            { 'aria-hidden': 'true' },
            Array.from({ length: steps }, (_, at) => at / (steps - 1)).map((share, at) => [
                svg('rect', {
                    x: x + (at * width) / steps,
                    y,
                    width: width / steps,
                    height: 10,
                    class: 'heat-fill',
                    'fill-opacity': (FAINT + (1 - FAINT) * share).toFixed(3),
                }),
                at % 2 === 0 &&
                    svg('text', {
                        x: x + ((at + 0.5) * width) / steps,
                        y: y + 24,
                        'text-anchor': 'middle',
                        class: 'tick',
                        text: this.choice.what.format(valueAt(share)),
                    }),
            ]),
        );
    }

    #pairWords(cell) {
        if (!cell) return '';
        const name = TITLES[this.choice.kind];
        return `${name} ${cell.from} → ${name} ${cell.to}`;
    }

    #cellWords(from, to, cell) {
        const name = TITLES[this.choice.kind];
        const { statistic, row } = cell ?? {};
        const { format } = this.choice.what;
        const [lo, hi] = statistic?.ci95 ?? (row?.runs > 1 && statistic ? [statistic.min, statistic.max] : []);
        return [
            `${name} ${from} → ${name} ${to}`,
            statistic ? format(statistic.median) : (row?.error ?? 'not measured'),
            lo !== undefined &&
                [
                    statistic.ci95 ? `${levelWords([statistic.level])} interval` : 'min–max',
                    `${format(lo)} to ${format(hi)}`,
                ].join(' '),
            row && plural(row.runs, 'run'),
            row?.flags.some((flag) => flag.startsWith('noisy:')) && 'noisy',
        ]
            .filter(Boolean)
            .join(' · ');
    }

    #words() {
        const measured = [...this.cells.values()].filter(({ statistic }) => statistic).length;
        return [
            "A row for each place of the sender (or initiator), a column for each of the receiver's.",
            `${measured} of ${this.places.length ** 2} pairs are measured.`,
            this.#leftOut(),
            this.choice.what.more ? 'The stronger the colour, the more.' : 'The stronger the colour, the longer.',
            this.log && 'Colours follow the logarithm.',
            'A ring in a corner: other programs disturbed a run.',
        ]
            .filter(Boolean)
            .join(' ');
    }

    /* The places of this machine that no run was at. */
    #leftOut() {
        const { kind } = this.choice;
        const own = kind === 'cpu' ? this.topology.cpus?.filter((cpu) => cpu.online !== false) : this.topology.nodes;
        const left = (own ?? []).map(({ id }) => id).filter((id) => !this.places.some((place) => place.id === id));
        if (!left.length) return null;
        const name = TITLES[kind];
        return left.length === 1
            ? `${name} ${left[0]} of this machine is not among them.`
            : `${name}s ${ranges(left)} of this machine are not among them.`;
    }

    #choose(key) {
        choose({ cell: key !== null && chosen('cell') !== key ? key : null, 'cell-run': null });
        if (key !== null) this.at = key;
        this.draw();
    }

    #focused(key) {
        this.at = key;
        setText(this.readout, this.canvas.querySelector(`[data-at="${key}"]`).getAttribute('aria-label'));
        this.canvas
            .querySelectorAll('.cell')
            .forEach((one) => one.setAttribute('tabindex', one.dataset.at === key ? '0' : '-1'));
    }

    key(event) {
        const { at } = event.target.closest?.('.cell')?.dataset ?? {};
        if (!at) return;
        if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault();
            this.#choose(at);
            return;
        }
        const ids = this.places.map(({ id }) => id);
        const last = ids.length - 1;
        const [y, x] = at.split('-').map((id) => ids.indexOf(Number(id)));
        const to = { Home: [y, 0], End: [y, last] }[event.key] ?? STEPS[event.key]?.map((step, i) => [y, x][i] + step);
        if (!to) return;
        event.preventDefault();
        const [toY, toX] = to.map((one) => Math.min(Math.max(one, 0), last));
        this.canvas.querySelector(`[data-at="${ids[toY]}-${ids[toX]}"]`).focus();
    }
}
