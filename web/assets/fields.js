// SPDX-License-Identifier: MIT
// The form's fields: how each is drawn, read, filled, and told that it is wrong.

import { h, setText } from './dom.js';
import { size } from './format.js';
import { asList, parseCounts, parseSizes } from './spec.js';

/* The frame around a control: label, hint, and the place where an error appears. */
class Field {
    constructor(name, { label, hint, group = false, span = false }) {
        this.name = name;
        this.id = `field-${name}`;
        this.error = h('p', { class: 'field-error', id: `${this.id}-error`, role: 'alert' });
        this.hint = h('p', { class: 'hint', id: `${this.id}-hint`, text: hint ?? '' });
        const describedBy = `${this.id}-error ${this.id}-hint`;
        this.attributes = { id: this.id, 'aria-describedby': describedBy };
        this.element = group
            ? h(
                  'fieldset',
                  { class: span ? 'span' : null, 'aria-describedby': describedBy },
                  h('legend', { text: label }),
              )
            : h('div', { class: span ? 'field span' : 'field' }, h('label', { for: this.id, text: label }));
    }

    place(...controls) {
        this.element.append(...controls, this.error, ...(this.hint.textContent ? [this.hint] : []));
        return this;
    }

    fail(message) {
        setText(this.error, message);
        this.control.setAttribute('aria-invalid', 'true');
    }

    clear() {
        setText(this.error, '');
        this.control.removeAttribute('aria-invalid');
    }

    focus() {
        this.control.focus();
        this.element.scrollIntoView({ block: 'nearest' });
    }
}

export class TextField extends Field {
    constructor(name, options) {
        super(name, options);
        this.control = h('input', {
            type: 'text',
            autocomplete: 'off',
            spellcheck: 'false',
            maxlength: options.maxlength,
            ...this.attributes,
        });
        this.place(this.control);
    }

    get() {
        return this.control.value.trim();
    }

    set(value) {
        this.control.value = value;
    }
}

/** Several sizes or counts in one line. */
export class ListField extends TextField {
    constructor(name, options) {
        super(name, options);
        this.sizes = options.sizes;
    }

    get() {
        return (this.sizes ? parseSizes : parseCounts)(this.control.value);
    }

    set(values) {
        const inputSize = (bytes) => size(bytes).replaceAll('\u202f', '').replace(/ B$/, '');
        this.control.value = asList(values)
            .map((value) => (this.sizes ? inputSize(value) : value))
            .join(', ');
    }
}

export class NumberField extends Field {
    constructor(name, options) {
        super(name, options);
        this.control = h('input', {
            type: 'number',
            min: options.min,
            step: options.step ?? '1',
            inputmode: 'decimal',
            required: true,
            ...this.attributes,
        });
        this.place(this.control);
    }

    get() {
        if (this.control.value === '' || !Number.isFinite(this.control.valueAsNumber))
            throw new Error('A number is needed.');
        return this.control.valueAsNumber;
    }

    set(value) {
        this.control.value = value;
    }
}

/** options.choices: [{value, label, hint}] */
export class SelectField extends Field {
    constructor(name, options) {
        super(name, options);
        this.control = h(
            'select',
            this.attributes,
            options.choices.map((choice) => h('option', { value: choice.value, text: choice.label })),
        );
        this.place(this.control);
    }

    get() {
        return this.control.value;
    }

    set(value) {
        this.control.value = value;
    }
}

/** One or several of a few words; what is unavailable stands there, disabled, with its reason. */
export class ChoicesField extends Field {
    constructor(name, options) {
        super(name, { ...options, group: true });
        this.boxes = options.choices.map((choice, index) => {
            const id = `${this.id}-${index}`;
            const why = choice.unavailable ?? choice.hint;
            const box = h('input', {
                type: 'checkbox',
                id,
                value: choice.value,
                name,
                disabled: Boolean(choice.unavailable),
                'aria-describedby': why ? `${id}-why ${this.id}-error` : `${this.id}-error`,
            });
            const element = h(
                'div',
                { class: 'choice' },
                box,
                h('label', { for: id, text: choice.label ?? choice.value }),
                why && h('p', { class: 'why', id: `${id}-why`, text: why }),
            );
            return { box, element };
        });
        this.control = this.boxes.find(({ box }) => !box.disabled)?.box ?? this.element;
        this.place(
            h(
                'div',
                { class: 'choices' },
                this.boxes.map(({ element }) => element),
            ),
        );
    }

    get() {
        const chosen = this.boxes.filter(({ box }) => box.checked).map(({ box }) => box.value);
        if (!chosen.length) throw new Error('At least one is needed.');
        return chosen;
    }

    /* What a preset asks for stays chosen when it is unavailable: the server says so in its own words. */
    set(values) {
        this.boxes.forEach(({ box }) => {
            box.checked = asList(values).includes(box.value);
        });
    }
}

export class CheckField extends Field {
    constructor(name, options) {
        super(name, { ...options, label: '', group: true });
        this.element.querySelector('legend').remove();
        this.control = h('input', { type: 'checkbox', ...this.attributes });
        this.place(h('div', { class: 'choice' }, this.control, h('label', { for: this.id, text: options.label })));
    }

    get() {
        return this.control.checked;
    }

    set(value) {
        this.control.checked = value;
    }
}

/** When the measured window ends: one of three, with its number. */
export class EndField extends Field {
    constructor(name, options) {
        super(name, options);
        this.kind = h(
            'select',
            { 'aria-label': 'What ends the measured window' },
            h('option', { value: 'duration_seconds', text: 'seconds' }),
            h('option', { value: 'messages', text: 'messages' }),
            h('option', { value: 'bytes', text: 'bytes' }),
        );
        this.control = h('input', { type: 'number', min: '0', step: 'any', required: true, ...this.attributes });
        const pair = h('div', { class: 'pair' }, this.control, this.kind);
        this.place(pair);
    }

    get() {
        if (this.control.value === '' || !(this.control.valueAsNumber > 0))
            throw new Error('A number above 0 is needed.');
        return { end: this.kind.value, end_value: this.control.valueAsNumber };
    }

    set({ end, end_value: value }) {
        this.kind.value = end;
        this.control.value = value;
    }
}
