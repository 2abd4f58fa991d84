// SPDX-License-Identifier: MIT
// Pinned experiments: their list, and of one the experiments of the same spec that came after it, each compared with it:
// a strip of ratios in time for each point, with the changes of level and of environment.

import { chosen, choose } from '../address.js';
import { get, put, remove } from '../api.js';
import { countsWords, settingsOf, titleOf, valueWords } from './compare.js';
import { confirm } from '../dialogs.js';
import { $, fill, h, patch, setText, svg } from '../dom.js';
import { day, figure, levelWords, plural, pointLabel, shortened, splitFields, time } from '../format.js';
import { nameOf } from '../home/list.js';
import { markPath } from '../chart/marks.js';
import { Panel } from '../chart/panel.js';
import { extent, logMarks, spaced } from '../chart/scales.js';
import { tableOf } from '../table.js';
import { showError } from '../views.js';

const LATER = 1000; /* experiments in a history, at most */
const STRIPS = 24;
const LEFT = 62;
const RIGHT = 66;
const TOP = 26; /* where the changes of environment are named */
const STRIP = { title: 20, plot: 72, gap: 14 };
const LETTER = 7.4;
const LEAST = 1.03; /* the ratio up to which an axis reaches at least, and its inverse */
const CIRCLE = 0;
const SHAPES = { faster: 2, slower: 4, equivalent: CIRCLE, undecided: CIRCLE };

const addressOf = (name) => `#/baselines/${encodeURIComponent(name)}`;
const times = (ratio) => `${figure(ratio, 3)} ×`;
const words = (key) => key.replaceAll('_', ' ');

/** The list of all baselines, unless it is `left` meanwhile. */
export async function showBaselines(main, left) {
    const { items } = await get('/baselines');
    if (left()) return;
    document.title = 'Baselines · ipclab';
    fill(
        main,
        h('a', { class: 'back', href: '#/', text: '← All experiments' }),
        h('div', { class: 'title' }, h('h1', { text: 'Baselines' })),
        h(
            'section',
            { class: 'panel', 'aria-label': 'All baselines' },
            items.length > 0 &&
                table(
                    'Baselines',
                    ['Name', 'Experiment', 'Pinned'],
                    items.map((one) => [
                        h('a', { href: addressOf(one.name), text: one.name }),
                        experimentLink(one.experiment_id, one.experiment_name),
                        time(one.pinned_at),
                    ]),
                ),
            h('p', {
                class: 'soft more',
                text: [
                    !items.length && 'Nothing is pinned yet: an experiment that has finished has the button “Pin…”.',
                    'Later experiments of a baseline’s spec are compared with it as soon as they have finished.',
                ]
                    .filter(Boolean)
                    .join(' '),
            }),
        ),
    );
}

const experimentLink = (id, name) => h('a', { href: `#/experiments/${id}`, text: `${id}${name ? `, ${name}` : ''}` });

const table = (label, heads, rows) =>
    tableOf(
        label,
        heads,
        rows.map((cells) =>
            h(
                'tr',
                {},
                cells.map((cell, at) => h('td', { class: 'wrap', data: { title: heads[at] } }, cell)),
            ),
        ),
    );

/** What came after the baseline of that name, unless the view is `left` meanwhile. */
export async function showHistory(main, left, name) {
    const history = await get(`/baselines/${encodeURIComponent(name)}/history?limit=${LATER}`);
    if (left()) return;
    const { baseline, items } = history;
    const changes = environmentChanges(items);
    document.title = `Baseline ${name} · ipclab`;
    fill(
        main,
        h('a', { class: 'back', href: '#/baselines', text: '← All baselines' }),
        h(
            'div',
            { class: 'title' },
            h(
                'div',
                {},
                h('h1', { text: `Baseline ${name}` }),
                h(
                    'p',
                    { class: 'meta' },
                    h('span', {}, 'experiment ', experimentLink(baseline.experiment_id, baseline.experiment_name)),
                    h('span', { text: `pinned ${time(baseline.pinned_at)}` }),
                    h('span', { text: plural(items.length, 'later experiment') }),
                ),
            ),
            h(
                'div',
                { class: 'buttons' },
                h('a', {
                    class: 'button',
                    href: `#/compare?${new URLSearchParams({ baseline: name })}`,
                    text: 'Compare with…',
                }),
                forgetButton(name),
            ),
        ),
        h('p', { class: 'notice', id: 'baseline-error', role: 'alert', hidden: true }),
        environmentPanel(items, changes),
        items.length > 0 && new Strips(history, changes).element,
        items.length > 0 &&
            h(
                'section',
                { class: 'panel', 'aria-labelledby': 'later-title' },
                h('h2', { id: 'later-title', text: 'Each experiment against it' }),
                table(
                    'Later experiments',
                    ['Experiment', 'Finished', 'Verdict', 'Environment', 'ipclab', 'All of it'],
                    [...items].reverse().map((one) => laterCells(one, name)),
                ),
            ),
    );
}

function forgetButton(name) {
    const press = async () => {
        const agreed = await confirm({
            title: `Forget the baseline ${name}?`,
            text: 'Its history is gone; the experiment and those that were compared with it stay.',
            action: 'Forget the name',
            keep: 'Keep it',
        });
        if (!agreed) return;
        try {
            await remove(`/baselines/${encodeURIComponent(name)}`);
            location.hash = '#/baselines';
        } catch (error) {
            showError($('baseline-error'), error);
        }
    };
    return h('button', { type: 'button', class: 'danger', id: 'forget', on: { click: press } }, 'Forget…');
}

/* What of the environment matters and differs from the baseline's: {key: value}. */
const unlikeOf = ({ differences }) =>
    Object.fromEntries(differences.filter(({ unlike }) => unlike).map(({ key, candidate }) => [key, candidate]));

/**
 * Where the environment became another one than that of the experiment before, or than the baseline's for the first:
 * [{at, changed: [{key, from, to}]}], `at` the place among `items`.
 */
export function environmentChanges(items) {
    const own = new Map(
        items.flatMap(({ differences }) => differences.map(({ key, baseline }) => [key, baseline])),
    ); /* the baseline's values */
    let before = {};
    return items.flatMap((one, at) => {
        const now = unlikeOf(one);
        const valueOf = (values, key) => (key in values ? values[key] : own.get(key));
        const changed = [...new Set([...Object.keys(before), ...Object.keys(now)])]
            .map((key) => ({ key, from: valueOf(before, key), to: valueOf(now, key) }))
            .filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to));
        before = now;
        return changed.length ? [{ at, changed }] : [];
    });
}

/* The difference of the environments is the headline: what a change of level means depends on it. */
function environmentPanel(items, changes) {
    if (!items.length)
        return h('p', {
            class: 'panel soft',
            id: 'nothing-later',
            text: 'No later experiment of this spec has finished. “Run again” on the experiment starts one.',
        });
    const keys = [...new Set(changes.flatMap(({ changed }) => changed.map(({ key }) => words(key))))];
    const headline = keys.length
        ? `The environment changed: ${keys.join(', ')}`
        : 'All were measured in the same environment';
    return h(
        'section',
        { class: keys.length ? 'panel unlike' : 'panel', 'aria-labelledby': 'environment-title' },
        h('h2', { id: 'environment-title', text: headline }),
        h(
            'ul',
            { class: 'sentences' },
            changes.map(({ at, changed }) =>
                h(
                    'li',
                    {},
                    h(
                        'span',
                        {},
                        'From experiment ',
                        experimentLink(items[at].experiment_id),
                        ' on: ',
                        changed
                            .map(({ key, from, to }) => `${words(key)} ${valueWords(from)} → ${valueWords(to)}`)
                            .join('; '),
                    ),
                ),
            ),
        ),
    );
}

const compareAddress = (name, { experiment_id: id, alike }) =>
    `#/compare?${new URLSearchParams({ baseline: name, candidate: id, ...(alike ? {} : { force: true }) })}`;

/* The verdict that a reader looks for first is the word that stands out. */
const worstOf = ({ slower, faster, equivalent }) =>
    slower ? 'slower' : faster ? 'faster' : equivalent ? 'equivalent' : 'undecided';

function laterCells(one, name) {
    const unlike = one.differences.filter((difference) => difference.unlike);
    return [
        experimentLink(one.experiment_id, one.name),
        time(one.finished_at),
        one.error
            ? `not compared: ${one.error}`
            : h('span', {
                  class: 'verdict',
                  data: { verdict: worstOf(one.verdicts) },
                  text: countsWords(one.verdicts) || 'no figure in common',
              }),
        unlike.length
            ? unlike.map(({ key, candidate }) => `${words(key)} ${valueWords(candidate)}`).join(', ')
            : 'as the baseline’s',
        one.version,
        h('a', { href: compareAddress(name, one), text: 'Compare' }),
    ];
}

/* A strip of ratios for each point, one below the other, over the same experiments; what changed stands on top. */
class Strips extends Panel {
    constructor({ baseline, items, series }, changes) {
        super('history');
        Object.assign(this, { baseline, items, series, changes });
        this.places = new Map(items.map((one, at) => [one.experiment_id, at]));
        this.draw();
    }

    draw() {
        const names = [...new Set(this.series.map((one) => one.figure))];
        const name = names.includes(chosen('figure')) ? chosen('figure') : names[0];
        const fields = splitFields(this.series.map(({ point }) => point)).varying;
        const all = this.series
            .filter((one) => one.figure === name)
            .map((one) => ({ ...one, label: pointLabel(one.point, fields) || 'all runs' }))
            .sort((a, b) => attention(b) - attention(a));
        this.shown = all.slice(0, STRIPS);
        this.width = this.canvas.clientWidth;
        setText(this.heading, name ? this.#title(name, all) : 'No figure was compared');
        if (!name) return;
        this.#drawControls(names, name);
        patch(this.canvas, this.#drawing(Math.max(this.width, 240)));
        const marks = this.shown.reduce((sum, { values }) => sum + values.length, 0);
        this.canvas.setAttribute(
            'aria-label',
            `${titleOf(name)} over the baseline's: ${plural(marks, 'ratio')}. ` +
                'Left and right arrow keys read them out, Enter compares.',
        );
        setText(this.note, this.#words(all));
    }

    #title(name, all) {
        const changed = all.filter(({ change_points: some }) => some?.length).length;
        if (changed) return `${titleOf(name)}: the level of ${changed} of ${plural(all.length, 'point')} changed`;
        const unsearched = all.every(({ change_points: some }) => some === null);
        return `${titleOf(name)} over the baseline’s${unsearched ? '' : ': no change of level'}`;
    }

    #drawControls(names, name) {
        const change = (event) => {
            choose({ figure: event.target.value });
            this.at = undefined;
            this.draw();
        };
        patch(
            this.controls,
            h(
                'label',
                { for: 'history-figure' },
                'Show ',
                h(
                    'select',
                    { id: 'history-figure', on: { change } },
                    names.map((one) => h('option', { value: one, text: titleOf(one) })),
                ),
            ),
            this.exports(
                () => `Baseline ${this.baseline.name}: ${this.heading.textContent}`,
                async () => [...(await this.#settings()), this.note.textContent],
            ),
        );
        this.controls.querySelector('select').value = name;
    }

    async #settings() {
        const { name, experiment_id: id } = this.baseline;
        const versions = [...new Set(this.items.map(({ version }) => version))];
        return [
            `Baseline ${name}: ${await settingsOf(id)}`,
            `${plural(this.items.length, 'later experiment')} · ipclab ${versions.join(', ')}`,
        ];
    }

    #words(all) {
        const reason = all.find(({ change_points_reason: one }) => one)?.change_points_reason;
        return [
            'Each mark: an experiment’s figure over the baseline’s, with its interval;',
            'triangles up are faster, down slower, circles equivalent, hollow ones undecided.',
            this.shown.some(({ segments }) => segments) && 'Thick: the level; a line across: it changed there.',
            this.changes.length > 0 && 'Dotted: the environment changed.',
            reason && `Changes of level were ${reason}.`,
            all.length > STRIPS && `${plural(all.length - STRIPS, 'more point')} are not drawn.`,
        ]
            .filter(Boolean)
            .join(' ');
    }

    #drawing(width) {
        const values = this.shown.flatMap((one) =>
            one.values.flatMap(({ ratio, interval }) => [ratio, ...(interval ?? [])]),
        );
        const [least, most] = extent(values, [LEAST, 1 / LEAST]);
        const [min, max] = [least / 1.005, most * 1.005];
        const right = width - RIGHT;
        const last = Math.max(this.items.length - 1, 1);
        const x = (at) => LEFT + 10 + (at / last) * (right - LEFT - 20);
        const height = STRIP.title + STRIP.plot + STRIP.gap;
        const bottom = TOP + height * this.shown.length;
        const scale = (top) => (ratio) => top + STRIP.plot - (Math.log(ratio / min) / Math.log(max / min)) * STRIP.plot;
        return svg(
            'svg',
            {
                viewBox: `0 0 ${width} ${bottom + 24}`,
                width,
                height: bottom + 24,
                class: 'plot history',
                'aria-hidden': 'true',
            },
            this.#environments(x, bottom, right),
            this.shown.map((one, at) => {
                const top = TOP + height * at + STRIP.title;
                return svg(
                    'g',
                    { class: 'strip', data: { label: one.label } },
                    svg('text', {
                        x: LEFT,
                        y: top - 6,
                        class: 'name',
                        text: shortened(one.label, Math.floor((right - LEFT) / LETTER)),
                    }),
                    this.#grid(min, max, scale(top), right),
                    this.#strip(one, x, scale(top), top),
                    svg('text', {
                        x: width - 4,
                        y: scale(top)(one.values.at(-1).ratio) + 4,
                        'text-anchor': 'end',
                        class: 'value',
                        text: times(one.values.at(-1).ratio),
                    }),
                );
            }),
            this.#dates(x, bottom, width),
        );
    }

    #grid(min, max, y, right) {
        return [
            logMarks(min, max, { most: 3 }).map((mark) => [
                svg('line', { x1: LEFT, x2: right, y1: y(mark), y2: y(mark), class: 'grid' }),
                svg('text', {
                    x: LEFT - 8,
                    y: y(mark) + 4,
                    'text-anchor': 'end',
                    class: 'tick',
                    text: `${Number(mark.toPrecision(3))} ×`,
                }),
            ]),
            svg('line', { x1: LEFT, x2: right, y1: y(1), y2: y(1), class: 'one' }),
        ];
    }

    /* Half way between the last experiment before a change and the first after it. */
    #environments(x, bottom, right) {
        let free = LEFT;
        return this.changes.map(({ at, changed }) => {
            const place = x(Math.max(at - 0.5, 0));
            const text = changed.map(({ key }) => words(key)).join(', ');
            const fits = place >= free && place + text.length * LETTER < right + RIGHT;
            if (fits) free = place + text.length * LETTER + 8;
            return [
                svg('line', { x1: place, x2: place, y1: TOP - 6, y2: bottom, class: 'hairline environment' }),
                fits && svg('text', { x: place, y: 12, class: 'tick', text }),
            ];
        });
    }

    #strip({ label, values, segments, change_points: points }, x, y, top) {
        const place = (id) => x(this.places.get(id));
        return [
            (segments ?? []).map(({ from, to, ratio }) =>
                svg('path', { d: `M${place(from) - 5} ${y(ratio)}H${place(to) + 5}`, class: 'level' }),
            ),
            (points ?? []).map((id) =>
                svg('path', {
                    d: `M${x(this.places.get(id) - 0.5)} ${top}v${STRIP.plot}`,
                    class: 'change',
                    data: { experiment: id },
                }),
            ),
            values.map((one) => {
                const at = place(one.experiment_id);
                return svg(
                    'g',
                    { class: 'place held', data: { verdict: one.verdict, experiment: one.experiment_id } },
                    one.interval &&
                        svg('path', { d: `M${at} ${y(one.interval[0])}V${y(one.interval[1])}`, class: 'bar-line' }),
                    svg(
                        'path',
                        {
                            d: markPath({ shape: SHAPES[one.verdict] }, at, y(one.ratio), 4),
                            class: one.verdict === 'undecided' ? 'mark hollow' : 'mark',
                        },
                        svg('title', { text: this.#markWords(one, label) }),
                    ),
                );
            }),
        ];
    }

    #dates(x, bottom, width) {
        const labels = this.items.map((one) => day(one.finished_at));
        const fresh = labels.map((label, at) => at).filter((at) => at === 0 || labels[at] !== labels[at - 1]);
        const widest = Math.max(...labels.map((label) => label.length)) * LETTER + 8;
        const within = fresh.filter((at) => at === 0 || x(at) + widest < width);
        return spaced(
            within.map((at) => x(at)),
            widest,
        ).map((index) =>
            svg('text', { x: x(within[index]), y: bottom + 16, class: 'tick', text: labels[within[index]] }),
        );
    }

    #markWords({ experiment_id: id, ratio, interval, level, verdict }, label) {
        const one = this.items[this.places.get(id)];
        return [
            `${nameOf({ id, name: one.name })} (${id})`,
            time(one.finished_at),
            label,
            `${verdict}: ${times(ratio)}`,
            interval &&
                `${figure(interval[0], 4)} to ${figure(interval[1], 4)}` + (level ? `, ${levelWords([level])}` : ''),
            one.alike ? null : 'another environment',
        ]
            .filter(Boolean)
            .join(' · ');
    }

    #compare(id) {
        location.hash = compareAddress(this.baseline.name, this.items[this.places.get(id)]);
    }

    press(event) {
        const { experiment } = event.target.closest?.('.held')?.dataset ?? {};
        if (experiment) this.#compare(Number(experiment));
    }

    key(event) {
        const marks = this.shown.flatMap(({ values, label }) => values.map((one) => ({ one, label })));
        if (event.key === 'Enter' && this.at !== undefined) {
            event.preventDefault();
            this.#compare(marks[this.at].one.experiment_id);
            return;
        }
        this.step(event, marks.length, (at) => this.#markWords(marks[at].one, marks[at].label), '.held');
    }
}

const attention = ({ change_points: points, values }) =>
    2 * (points?.length > 0) + (values.at(-1).verdict === 'slower');

/** A form that pins the experiment under a name; `closed()` is called when it is left. */
export async function pinForm(experiment, closed) {
    const { items } = await get('/baselines');
    const error = h('p', { class: 'field-error', id: 'pin-error', role: 'alert' });
    const name = h('input', {
        id: 'pin-name',
        list: 'pin-names',
        required: true,
        maxlength: 64,
        autocomplete: 'off',
        spellcheck: 'false',
        'aria-describedby': 'pin-error pin-hint',
    });
    const submit = async (event) => {
        event.preventDefault();
        try {
            const pinned = await put(
                `/baselines/${encodeURIComponent(name.value.trim())}`,
                JSON.stringify({ experiment: experiment.id }),
            );
            location.hash = addressOf(pinned.name);
        } catch (failure) {
            name.setAttribute('aria-invalid', 'true');
            showError(error, failure);
        }
    };
    const leave = (event) => event.key === 'Escape' && closed();
    return h(
        'form',
        { class: 'panel', id: 'pin-form', 'aria-label': 'Pin as a baseline', on: { submit, keydown: leave } },
        h(
            'div',
            { class: 'field' },
            h('label', { for: 'pin-name', text: 'Name of the baseline' }),
            name,
            h(
                'datalist',
                { id: 'pin-names' },
                items.map((one) => h('option', { value: one.name })),
            ),
            error,
            h('p', {
                class: 'hint',
                id: 'pin-hint',
                text:
                    `Later experiments of the same spec are compared with ${nameOf(experiment)}. ` +
                    'A name that is taken moves to it.',
            }),
        ),
        h(
            'div',
            { class: 'actions' },
            h('button', { type: 'button', id: 'pin-leave', on: { click: closed } }, 'Not now'),
            h('button', { type: 'submit', class: 'primary' }, 'Pin'),
        ),
    );
}
