// SPDX-License-Identifier: MIT
// What of an experiment is to be compared: two values of an axis, or the experiment with a baseline, each ticked in a
// list, or chosen from a menu where a list would be too long. The choice stands in the address.

import { addressOf, chosen, choose } from '../address.js';
import { axesIn, wordOf } from './compare.js';
import { h, patch } from '../dom.js';
import { fieldTitle, fieldValue } from '../format.js';

const BASELINE = 'baseline'; /* the name of no axis */
const VALUES = 32; /* in a list of boxes; more are in menus */

/* [list, value, value]: of one list alone. */
function ticked() {
    try {
        const [list = null, ...values] = JSON.parse(chosen('tick') ?? '[]');
        return { list, values: values.map(String) };
    } catch {
        return { list: null, values: [] };
    }
}

/* What the menus of a list have. */
const chosenIn = (group) => [...group.querySelectorAll('select')].map((menu) => menu.value).filter(Boolean);

export class Ticks {
    constructor(id) {
        this.id = id;
        this.element = h('section', { class: 'panel', id: 'ticks', 'aria-labelledby': 'ticks-title' });
        this.element.hidden = true;
    }

    /** The points of the results, and the names of the baselines that it can be compared with. */
    update(points, baselines) {
        const axes = [...axesIn(points)].map(([name, values]) => ({
            name,
            title: fieldTitle(name),
            options: values.map((value) => [wordOf(value), fieldValue(name, value)]),
        }));
        this.lists = [
            ...axes,
            { name: BASELINE, title: 'Baselines', options: baselines.map((name) => [name, name]) },
        ].filter(({ name, options }) => options.length >= (name === BASELINE ? 1 : 2));
        this.element.hidden = this.lists.length === 0;
        this.#draw();
    }

    /* The third value takes the place of the first; a baseline is compared with the whole experiment. */
    #tick(list, value, on) {
        const before = ticked();
        const others = before.list === list ? before.values.filter((one) => one !== value) : [];
        const values = (on ? [...others, value] : others).slice(list === BASELINE ? -1 : -2);
        choose({ tick: values.length ? JSON.stringify([list, ...values]) : null });
        this.#draw();
    }

    #draw() {
        const { list, values } = ticked();
        patch(
            this.element,
            h('h2', { id: 'ticks-title', text: 'Compare' }),
            this.lists.map(({ name, title, options }) =>
                h(
                    'fieldset',
                    { class: 'chips', data: { key: name } },
                    h('legend', { class: 'label', text: title }),
                    options.length > VALUES
                        ? this.#menus(name, title, options)
                        : options.map(([value, text]) => this.#box(name, value, text)),
                ),
            ),
            h('p', { class: 'more' }, this.#link(list, values) ?? 'Tick two values of an axis, or a baseline.'),
        );
        for (const box of this.element.querySelectorAll('input'))
            box.checked = box.dataset.list === list && values.includes(box.value);
        for (const group of this.element.querySelectorAll('fieldset')) {
            const wanted = group.dataset.key === list ? values : [];
            if (String(chosenIn(group).sort()) === String([...wanted].sort())) continue; /* each where it was chosen */
            for (const [side, menu] of [...group.querySelectorAll('select')].entries()) menu.value = wanted[side] ?? '';
        }
    }

    /* One for each side; a baseline is one alone. */
    #menus(list, title, options) {
        const labels = list === BASELINE ? ['Baseline'] : [`First ${title}`, `Second ${title}`];
        const change = ({ target }) => {
            const values = chosenIn(target.closest('fieldset'));
            choose({ tick: values.length ? JSON.stringify([list, ...values]) : null });
            this.#draw();
        };
        return labels.map((label) =>
            h(
                'select',
                { 'aria-label': label, data: { list, key: label }, on: { change } },
                h('option', { value: '', text: `${label} …` }),
                options.map(([value, text]) => h('option', { value, text })),
            ),
        );
    }

    #box(list, value, text) {
        const change = ({ target }) => this.#tick(list, value, target.checked);
        const box = h('input', { type: 'checkbox', value, data: { list }, on: { change } });
        return h('label', { class: 'inline', data: { key: value } }, box, ` ${text}`);
    }

    /* Values are linked in the order of the axis: the lower value is what the higher one is compared with. */
    #link(list, values) {
        const of = this.lists.find(({ name }) => name === list);
        const [baseline, candidate = null] = (of?.options ?? []).filter(([value]) => values.includes(value));
        if (!baseline || (list !== BASELINE && !candidate)) return null;
        const query =
            list === BASELINE
                ? { baseline: baseline[0], candidate: this.id }
                : { experiment: this.id, axis: list, baseline: baseline[0], candidate: candidate[0] };
        const words = candidate ? `${baseline[1]} and ${candidate[1]}` : `with the baseline ${baseline[1]}`;
        const href = addressOf('/compare', query);
        return h('a', { class: 'button primary', id: 'ticks-compare', href, text: `Compare ${words}` });
    }
}
