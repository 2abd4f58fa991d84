// SPDX-License-Identifier: MIT
// Posting an experiment: fields built from what this build and host can do, or the spec as JSON. What the server
// refuses is shown beside the field that its pointer names.

import { Problem, post } from './api.js';
import { fill, h, setText } from './dom.js';
import { duration, plural } from './format.js';
import { once } from './host.js';
import { makeFields } from './offer.js';
import { amount, DEFAULTS, fieldOf, fitsForm, meaningless, toSpec, toValues, WORDS } from './spec.js';

const FIRST = { message_size: [64, 1024, 4096, 65536], duration_seconds: 5 };

export class Form {
    /** `opened(experiment)` is called with what was accepted. */
    constructor(opened) {
        this.opened = opened;
        this.tab = 'form';
    }

    /** Builds the page in `main`; `spec`: to start from another experiment's. */
    async show(main, spec = null) {
        fill(main, h('h1', { text: 'New experiment' }), h('p', { class: 'soft', text: 'Loading…' }));
        const [presets, transports, topology] = await Promise.all([
            once('/presets'),
            once('/transports'),
            once('/topology'),
        ]);
        this.presets = presets.items;
        this.transports = transports.items;
        this.#build(main, transports.items, topology);
        this.#load(spec ?? FIRST);
    }

    #build(main, transports, topology) {
        this.fields = makeFields(this.presets, transports, topology);
        const one = (name) => this.fields.get(name).element;
        this.grid = h('div', { class: 'form-grid' }, [...this.fields.keys()].map(one));
        this.json = h('textarea', { id: 'spec-json', spellcheck: 'false', 'aria-describedby': 'json-error json-hint' });
        this.jsonError = h('p', { class: 'field-error', id: 'json-error', role: 'alert' });
        this.panes = {
            form: h('div', { id: 'pane-form', role: 'tabpanel', 'aria-labelledby': 'tab-form' }, this.grid),
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
                        text: 'Posted as it stands. It has fields that the form has not: explicit placement, rate, require, seed.',
                    }),
                ),
            ),
        };
        this.tabs = { form: this.#tab('form', 'Form'), json: this.#tab('json', 'JSON') };
        this.summary = h('p', { class: 'soft', role: 'status' });
        this.formError = h('p', { class: 'notice', role: 'alert', hidden: true });
        this.submit = h('button', { type: 'submit', class: 'primary' }, 'Start experiment');
        const form = h(
            'form',
            {
                class: 'panel',
                novalidate: true,
                on: { submit: (e) => this.#submit(e), input: (e) => this.#edited(e), keydown: submitOnCtrlEnter },
            },
            h(
                'div',
                { class: 'tabs', role: 'tablist', 'aria-label': 'How to describe the experiment' },
                this.tabs.form,
                this.tabs.json,
            ),
            this.panes.form,
            this.panes.json,
            this.formError,
            h('div', { class: 'form-foot' }, this.summary, this.submit),
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
                        text: 'Several values in a field make an axis: every combination is measured, in shuffled order.',
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

    /* What one tab says is carried to the other; what cannot be carried stays where it is, with the reason. */
    #switch(name) {
        if (name === this.tab) return;
        this.#clear();
        if (name === 'json') {
            const values = this.#read();
            if (!values) return;
            this.json.value = JSON.stringify(toSpec(values, this.presets), null, 2);
        } else {
            const spec = this.#parse();
            if (!spec) return;
            if (!fitsForm(spec)) {
                this.#jsonFails('The form has no fields for some of this; it can be posted from here.');
                return;
            }
            this.#fillForm(spec);
        }
        this.#select(name);
    }

    #load(spec) {
        this.json.value = JSON.stringify(spec, null, 2);
        this.#fillForm(fitsForm(spec) ? spec : FIRST);
        this.#select(fitsForm(spec) ? 'form' : 'json');
    }

    #fillForm(spec) {
        const preset = this.presets.find((one) => one.name === spec.preset);
        const values = toValues({ ...preset?.spec, ...spec });
        this.base = values; /* what has no field on this machine stays as it is */
        this.fields.forEach((field, name) => field.set(name === 'end' ? values : (values[name] ?? '')));
    }

    #edited(event) {
        const preset = this.fields.get('preset');
        if (event.target === preset.control) {
            const chosen = this.presets.find((one) => one.name === preset.get());
            this.#fillForm(chosen ? { preset: chosen.name } : FIRST);
            this.#clear();
        }
        [...this.fields.values()].find((field) => field.element.contains(event.target))?.clear();
        this.#summarise();
    }

    /* What no chosen transport has a use for is not shown. */
    #fold() {
        const chosen = { workload: [], transport: [] };
        for (const name of Object.keys(chosen))
            try {
                chosen[name] = this.fields.get(name).get();
            } catch {
                return; /* none is chosen yet: it stays as it was */
            }
        const idle = meaningless(chosen, this.transports);
        for (const name of Object.keys(WORDS))
            if (this.fields.has(name)) this.fields.get(name).element.hidden = idle.includes(name);
    }

    #summarise() {
        this.#fold();
        const values = this.tab === 'form' ? this.#read(true) : null;
        if (!values) {
            setText(this.summary, '');
            return;
        }
        const { points, runs, seconds } = amount(values);
        setText(
            this.summary,
            `Up to ${plural(points, 'point')}, ${plural(runs, 'run')}` +
                (seconds === null ? '' : `, about ${duration(seconds)}`),
        );
    }

    /* The fields' values, or null after having shown what is wrong (unless quiet). */
    #read(quiet = false) {
        const values = { ...this.base };
        let first = null;
        for (const [name, field] of this.fields) {
            if (field.element.hidden) continue;
            try {
                Object.assign(values, name === 'end' ? field.get() : { [name]: field.get() });
            } catch (error) {
                first ??= field;
                if (!quiet) field.fail(error.message);
            }
        }
        for (const name of meaningless(values, this.transports)) values[name] = DEFAULTS[name];
        if (first && !quiet) first.focus();
        return first ? null : values;
    }

    #parse() {
        try {
            return JSON.parse(this.json.value);
        } catch (error) {
            this.#jsonFails(`Not valid JSON: ${error.message}`);
            return null;
        }
    }

    #jsonFails(message) {
        setText(this.jsonError, message);
        this.json.setAttribute('aria-invalid', 'true');
        this.json.focus();
    }

    #clear() {
        this.fields.forEach((field) => field.clear());
        setText(this.jsonError, '');
        this.json.removeAttribute('aria-invalid');
        this.formError.hidden = true;
    }

    async #submit(event) {
        event.preventDefault();
        this.#clear();
        const values = this.tab === 'form' ? this.#read() : null;
        if (this.tab === 'form' && !values) return;
        const body = values ? JSON.stringify(toSpec(values, this.presets)) : this.json.value;
        /* The same key as long as the same body is tried: a retry after a lost answer starts nothing twice. */
        if (this.sent?.body !== body) this.sent = { body, key: newKey() };
        this.submit.disabled = true;
        try {
            const experiment = await post('/experiments', body, { 'Idempotency-Key': this.sent.key });
            this.sent = null;
            this.opened(experiment);
        } catch (error) {
            this.#refused(error);
        } finally {
            this.submit.disabled = false;
        }
    }

    #refused(error) {
        const pointer = error instanceof Problem ? error.pointer : '';
        const limit = error instanceof Problem ? error.body.limit : null;
        const words =
            limit?.name && !error.message.includes(limit.name)
                ? `${error.message} (${limit.name}: ${limit.value})`
                : error.message;
        if (this.tab === 'json' && error instanceof Problem && [400, 422].includes(error.status)) {
            this.#jsonFails(pointer ? `${pointer}: ${words}` : words);
            return;
        }
        const field = this.fields.get(fieldOf(pointer));
        if (field) {
            field.fail(words);
            field.focus();
            return;
        }
        setText(this.formError, pointer ? `${pointer}: ${words}` : words);
        this.formError.hidden = false;
    }
}

/* randomUUID needs a secure context, which a host name on a lab network is not. */
const newKey = () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

function submitOnCtrlEnter(event) {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
}
