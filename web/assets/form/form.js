// SPDX-License-Identifier: MIT
// Posting an experiment: fields built from what this build and host can do, or the spec as JSON. What the server
// refuses is shown beside the field that its pointer names.

import { Problem, submission } from '../api.js';
import { Chips } from './fields.js';
import { $, fill, h, setText } from '../dom.js';
import { fieldTitle, fieldValue, plural, size } from '../format.js';
import { Further, furtherFields, rangeOf, withMember } from './further.js';
import { machine, once } from '../machine.js';
import { GROUPS, makeFields, pairsOf } from './offer.js';
import { Preview } from './preview.js';
import { appliesOf, defaultsOf } from '../schema.js';
import { amount, effective, fieldOf, isEnd, meaningless, toSpec, toValues, without, withoutField } from './spec.js';
import { showError } from '../views.js';

const FIRST = { message_size: [64, 1024, 4096, 65536], duration_seconds: 5 };

/*
 * The form edits a spec: `source.spec` is the one that it was opened with, `before` the values of the fields then. Only
 * fields that differ from these change it, so that untouched parts are posted byte for byte as they were
 * (`source.text`), whether the form has a field for them or not.
 */
export class Form {
    /** `opened(experiment)` is called with the accepted experiment. */
    constructor(opened) {
        this.opened = opened;
        this.submit = submission();
    }

    /** Builds the page in `main`, unless that is `left` meanwhile; `text`: another experiment's spec to start from. */
    async show(main, left, text = JSON.stringify(FIRST, null, 2)) {
        fill(main, h('h1', { text: 'New experiment' }), h('p', { class: 'soft', text: 'Loading…' }));
        const [here, openapi] = await Promise.all([machine(), once('/openapi.json')]);
        if (left()) return;
        const { presets, transports, topology, environment } = here;
        this.presets = presets.items;
        this.transports = transports.items;
        this.pairs = pairsOf(topology);
        this.defaults = defaultsOf(openapi);
        this.applies = appliesOf(openapi);
        this.rangeOf = (name, words) => rangeOf(openapi, name, words);
        this.tab = 'form';
        this.fields = makeFields(this.presets, transports.items, topology, openapi);
        this.further = new Further(
            furtherFields(openapi, (name) => this.fields.has(isEnd(name) ? 'end' : name)),
            { transports: transports.items, environment, add: (path, value) => this.#add(path, value) },
        );
        this.#build(main);
        this.#open(text);
    }

    #build(main) {
        this.rest = new Chips('Not in the form', ({ key }) => this.#leaveOut(key));
        this.restField = h(
            'div',
            { class: 'field span', hidden: true },
            h('p', { class: 'label', text: 'Also specified' }),
            this.rest.element,
            h('p', { class: 'hint', text: 'These are posted as they are.' }),
        );
        this.groups = GROUPS.map(({ title, of }) => {
            const fields = of.map((name) => this.fields.get(name)).filter(Boolean);
            const grid = h(
                'div',
                { class: 'form-grid' },
                fields.map(({ element }) => element),
                of.length === 0 && [this.restField, this.further.element],
            );
            const element = h('section', { class: 'form-group' }, title && h('h2', { text: title }), grid);
            return { fields, element };
        });
        const sections = this.groups.map(({ element }) => element);
        this.json = h('textarea', { id: 'spec-json', spellcheck: 'false', 'aria-describedby': 'json-error json-hint' });
        this.jsonError = h('p', { class: 'field-error', id: 'json-error', role: 'alert' });
        this.panes = {
            form: h('div', { id: 'pane-form', role: 'tabpanel', 'aria-labelledby': 'tab-form' }, sections),
            json: h(
                'div',
                { id: 'pane-json', role: 'tabpanel', 'aria-labelledby': 'tab-json', hidden: true },
                h(
                    'div',
                    { class: 'field' },
                    h('label', { for: 'spec-json', text: 'Experiment spec' }),
                    this.json,
                    this.jsonError,
                    h('p', {
                        class: 'hint',
                        id: 'json-hint',
                        text: 'Posted as it stands.',
                    }),
                ),
            ),
        };
        this.tabs = { form: this.#tab('form', 'Form'), json: this.#tab('json', 'JSON') };
        this.preview = new Preview();
        this.summary = h('p', { class: 'soft', role: 'status' });
        this.formError = h('p', { class: 'notice', role: 'alert', hidden: true });
        this.button = h('button', { type: 'submit', class: 'primary' }, 'Start experiment');
        const form = h(
            'form',
            {
                class: 'panel',
                novalidate: true,
                on: {
                    submit: (e) => this.#post(e),
                    input: (e) => this.#edited(e),
                    change: (e) => this.#chosen(e),
                    keydown: submitOnCtrlEnter,
                },
            },
            h(
                'div',
                { class: 'tabs', role: 'tablist', 'aria-label': 'How to describe the experiment' },
                this.tabs.form,
                this.tabs.json,
            ),
            this.panes.form,
            this.panes.json,
            this.preview.element,
            h('div', { class: 'form-foot' }, this.formError, this.summary, this.button),
        );
        fill(
            main,
            h('a', { class: 'back', href: '#/', text: '← All experiments' }),
            h(
                'div',
                { class: 'title' },
                h(
                    'div',
                    {},
                    h('h1', { text: 'New experiment' }),
                    h('p', {
                        class: 'meta',
                        text: 'Several values in a field make an axis: every combination is measured, in a random order.',
                    }),
                ),
            ),
            form,
        );
    }

    #tab(name, label) {
        const other = name === 'form' ? 'json' : 'form';
        return h(
            'button',
            {
                type: 'button',
                role: 'tab',
                id: `tab-${name}`,
                'aria-controls': `pane-${name}`,
                'aria-selected': String(name === this.tab),
                on: {
                    click: () => this.#switch(name),
                    keydown: (event) => {
                        if (!['ArrowLeft', 'ArrowRight'].includes(event.key)) return;
                        this.#switch(other);
                        this.tabs[this.tab].focus();
                    },
                },
            },
            label,
        );
    }

    #select(name) {
        this.tab = name;
        for (const [key, tab] of Object.entries(this.tabs)) {
            tab.setAttribute('aria-selected', String(key === name));
            tab.tabIndex = key === name ? 0 : -1;
            this.panes[key].hidden = key !== name;
        }
        this.#summarise();
    }

    /* The content of one tab is copied to the other. */
    #switch(name) {
        if (name === this.tab) return;
        this.#clear();
        if (name === 'json') this.#showJson();
        else if (this.json.value !== this.shown && !this.#take(this.json.value)) return;
        this.#select(name);
    }

    /* An invalid field does not block the others: its part of the spec stays as it was, and it shows an error. */
    #showJson() {
        this.shown = this.json.value = this.#text(2);
        const named = this.#unreadable().map((field) => `${fieldTitle(field.name)}: ${reading(field).error.message}`);
        if (named.length) setText(this.jsonError, `Left as before, since it could not be read: ${named.join(' ')}`);
    }

    /* A spec that the form cannot open, which the server would refuse too, is there to be mended as JSON. */
    #open(text) {
        this.shown = null;
        this.json.value = text;
        const taken = this.#take(text);
        if (!taken) this.#load(JSON.stringify(FIRST));
        this.#select(taken ? 'form' : 'json');
    }

    /* Fills the form from a spec's text; false after having shown why it cannot be. */
    #take(text) {
        try {
            this.#check(JSON.parse(text));
        } catch (error) {
            this.#jsonFails(error instanceof SyntaxError ? `Not valid JSON: ${error.message}` : error.message);
            return false;
        }
        this.#load(text);
        return true;
    }

    #check(spec) {
        if (spec === null || typeof spec !== 'object' || Array.isArray(spec))
            throw new Error('A spec is a JSON object, such as {"transport": "pipe"}.');
        if ('preset' in spec && !this.presets.some((one) => one.name === spec.preset))
            throw new Error(`There is no preset ${JSON.stringify(spec.preset)}.`);
        const values = toValues(spec, this.presets, this.defaults);
        for (const [name, field] of this.fields)
            if (!field.takes(values[name]))
                throw new Error(`${fieldTitle(name)}: the form cannot show ${JSON.stringify(values[name])}.`);
    }

    #load(text) {
        this.source = { text, spec: JSON.parse(text) };
        const values = toValues(this.source.spec, this.presets, this.defaults);
        this.fields.forEach((field, name) => field.set(values[name]));
        this.#fold();
        this.before = Object.fromEntries([...this.fields].map(([name, field]) => [name, reading(field).value]));
        this.folded = [...this.fields.keys()].filter((name) => this.fields.get(name).element.hidden);
        this.#showRest();
    }

    #showRest() {
        const rest = withoutField(this.source.spec, this.presets, (key) => this.fields.has(key));
        this.restField.hidden = rest.length === 0;
        this.rest.set(rest.map(([key, value]) => ({ key, text: `${fieldTitle(key)}: ${asWords(key, value)}` })));
    }

    #leaveOut(key) {
        const spec = without(this.source.spec, key, this.presets);
        const detached = this.source.spec.preset && !spec.preset;
        this.source = { text: JSON.stringify(spec), spec };
        if (detached) {
            this.fields.get('preset').set('');
            setText($('announcer'), `Not the preset any more, without ${fieldTitle(key)}; its other fields stay.`);
        }
        this.#showRest();
        if (this.restField.hidden) this.button.focus();
        this.#summarise();
    }

    #add(path, value) {
        const spec = withMember(this.source.spec, effective(this.source.spec, this.presets), path, value);
        this.source = { text: JSON.stringify(spec), spec };
        this.#showRest();
        this.#summarise();
    }

    #chosen(event) {
        const preset = this.fields.get('preset');
        if (event.target !== preset.control) return;
        const name = preset.get();
        this.#load(JSON.stringify(name ? { preset: name } : FIRST));
        this.#clear();
        this.#summarise();
    }

    #edited(event) {
        [...this.fields.values()].find((field) => field.element.contains(event.target))?.clear();
        this.#summarise();
    }

    /* Fields that no chosen transport uses are hidden. */
    #fold() {
        this.#note();
        const chosen = { workload: [], transport: [] };
        for (const name of Object.keys(chosen))
            try {
                chosen[name] = this.fields.get(name).get();
            } catch {
                return; /* none is chosen yet: it stays as it was */
            }
        const idle = meaningless(chosen, this.applies);
        this.fields.forEach((field, name) => {
            field.element.hidden = idle.includes(name);
        });
        for (const { fields, element } of this.groups)
            element.hidden = fields.length > 0 && fields.every((field) => field.element.hidden);
    }

    /* The limits of each field's value. */
    #note() {
        const transports = reading(this.fields.get('transport')).value ?? [];
        for (const [name, field] of this.fields) {
            const range = this.rangeOf(name === 'end' ? field.kind.value : name, field.sizes ? size : undefined);
            const here = name === 'message_size' && largestWords(transports, this.transports);
            field.note([range, here].filter(Boolean).join(' '));
        }
    }

    #summarise() {
        this.#fold();
        setText(this.summary, this.tab === 'form' ? this.#amount() : '');
        const whole = this.tab === 'json' || this.#unreadable().length === 0;
        this.preview.set(whole ? (this.tab === 'form' ? this.#text() : this.json.value) : null);
    }

    #amount() {
        if (this.#unreadable().length) return '';
        const values = toValues(this.#spec(), this.presets, this.defaults);
        const { points, runs } = amount(values, this.applies, this.pairs);
        return `Up to ${plural(points, 'point')}, ${plural(runs, 'run')}`;
    }

    /* The spec as it is now; a field that cannot be read has changed nothing. */
    #spec() {
        const after = { ...this.before };
        const inherited = toValues({ preset: this.source.spec.preset }, this.presets, this.defaults);
        for (const [name, field] of this.fields)
            if (!field.element.hidden) after[name] = reading(field).value ?? this.before[name];
            else if (!this.folded.includes(name)) after[name] = inherited[name];
        return toSpec(this.source.spec, this.before, after, this.presets, this.defaults);
    }

    #text(indent) {
        const spec = this.#spec();
        const untouched = JSON.stringify(spec) === JSON.stringify(this.source.spec);
        return untouched ? this.source.text : JSON.stringify(spec, null, indent);
    }

    #unreadable() {
        return [...this.fields.values()].filter((field) => !field.element.hidden && reading(field).error);
    }

    /* Whether every field can be read; else what is wrong stands beside each, and the first has the focus. */
    #complete() {
        const wrong = this.#unreadable();
        wrong.forEach((field) => field.fail(reading(field).error.message));
        wrong[0]?.focus();
        return wrong.length === 0;
    }

    #jsonFails(message) {
        setText(this.jsonError, message);
        this.json.setAttribute('aria-invalid', 'true');
        this.json.focus({ preventScroll: true });
        this.jsonError.scrollIntoView({ block: 'nearest' });
    }

    #clear() {
        this.fields.forEach((field) => field.clear());
        setText(this.jsonError, '');
        this.json.removeAttribute('aria-invalid');
        this.formError.hidden = true;
    }

    async #post(event) {
        event.preventDefault();
        this.#clear();
        if (this.tab === 'form' && !this.#complete()) return;
        this.button.disabled = true;
        try {
            this.opened(await this.submit(this.tab === 'form' ? this.#text() : this.json.value));
        } catch (error) {
            this.button.disabled = false;
            this.#refused(error);
        }
    }

    #refused(error) {
        const pointer = error instanceof Problem ? error.pointer : '';
        const limit = error instanceof Problem ? error.body.limit : null;
        const words =
            limit?.name && !error.message.includes(limit.name)
                ? error.message.replace(/\.?$/, ` (${limit.name}: ${limit.value}).`)
                : error.message;
        if (this.tab === 'json' && error instanceof Problem && [400, 422].includes(error.status)) {
            this.#jsonFails(pointer ? `${pointer}: ${words}` : words);
            return;
        }
        const field = this.fields.get(fieldOf(pointer));
        if (field && !field.element.hidden) {
            field.fail(words);
            field.focus();
            return;
        }
        showError(this.formError, error, pointer ? `${pointer}: ${words}` : words);
        this.button.focus({ preventScroll: true });
    }
}

/* {value}, or {error} where the field cannot be read. */
function reading(field) {
    try {
        return { value: field.get() };
    } catch (error) {
        return { error };
    }
}

/* The largest message of the chosen transports on this host, with the limit of those that have one of their own. */
function largestWords(chosen, transports) {
    const bounds = transports
        .filter(({ name, capacity }) => chosen.includes(name) && capacity?.largest_message)
        .map(({ name, message_bound: bound, capacity: { largest_message: most, limit } }) =>
            [name, size(most, true), bound && limit && `(${limit.name})`].filter(Boolean).join(' '),
        );
    return bounds.length ? `Largest here: ${bounds.join(', ')}.` : '';
}

function asWords(key, value) {
    if (Array.isArray(value)) return value.map((one) => fieldValue(key, one)).join(', ');
    return fieldValue(key, value);
}

function submitOnCtrlEnter(event) {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
}
