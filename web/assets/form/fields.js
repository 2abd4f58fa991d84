// SPDX-License-Identifier: MIT
// The form's fields: how each is drawn, read and filled, and shows an error.

import { fill, h, setText } from '../dom.js';
import { fieldValue, size } from '../format.js';
import { asList, parseCounts, parseSizes } from './spec.js';

/* The frame around a control: label, hint, and the place where an error appears. */
class Field {
    constructor(name, options) {
        const { label, hint, group = false, span = false } = options;
        Object.assign(this, { name, options });
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

    /** What the schema and this machine allow, behind the hint. */
    note(words) {
        setText(this.hint, [this.options.hint, words].filter(Boolean).join(' '));
        if (this.hint.textContent && !this.hint.parentNode) this.element.append(this.hint);
    }

    fail(message) {
        setText(this.error, message);
        this.control.setAttribute('aria-invalid', 'true');
    }

    clear() {
        setText(this.error, '');
        this.control.removeAttribute('aria-invalid');
    }

    /** The whole field comes into view, with its error, between the top of the page and the form's foot. */
    focus() {
        this.control.focus({ preventScroll: true });
        this.element.scrollIntoView({ block: 'nearest' });
        if (this.error.textContent) this.error.scrollIntoView({ block: 'nearest' });
    }
}

/** The parts of a spec without a control of their own: shown as text, each with a button that removes it. */
export class Chips {
    /** `remove(item)` takes the item out of what the next set() gets. */
    constructor(label, remove) {
        this.remove = remove;
        this.element = h('ul', { class: 'chips', 'aria-label': label, hidden: true });
    }

    /** items: anything with `text` */
    set(items) {
        this.element.hidden = items.length === 0;
        fill(this.element, items.map((item, index) => this.#chip(item, index)));
    }

    #chip(item, index) {
        const remove = () => {
            this.remove(item);
            const buttons = this.element.querySelectorAll('button');
            buttons[Math.min(index, buttons.length - 1)]?.focus();
        };
        return h(
            'li',
            { class: 'chip' },
            h('span', { text: item.text }),
            h('button', { type: 'button', 'aria-label': `Remove ${item.text}`, on: { click: remove } }, '×'),
        );
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

    takes(value) {
        return typeof value === 'string';
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

    takes(values) {
        return values.length > 0 && values.every((value) => Number.isSafeInteger(value) && value >= 0);
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

    takes(value) {
        return typeof value === 'number';
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

    takes(value) {
        return [...this.control.options].some((option) => option.value === value);
    }
}

/**
 * One or several of a few words; what is unavailable stands there, disabled, with its reason. Values that are none of
 * these words, such as a placement per role, are chips beside them.
 */
export class ChoicesField extends Field {
    constructor(name, options) {
        super(name, { ...options, group: true });
        this.boxes = options.choices.map((choice, index) => this.#choice(choice, index));
        this.chips = new Chips(`${options.label}, beyond these`, ({ value }) => this.#drop(value));
        this.control = this.boxes.find(({ box }) => !box.disabled)?.box ?? this.element;
        this.place(
            h(
                'div',
                { class: 'choices' },
                this.boxes.map(({ element }) => element),
            ),
            this.chips.element,
        );
    }

    #choice(choice, index) {
        const id = `${this.id}-${index}`;
        const why = choice.unavailable ?? choice.hint;
        const box = h('input', {
            type: 'checkbox',
            id,
            value: choice.value,
            name: this.name,
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
        return { box, element, unavailable: Boolean(choice.unavailable) };
    }

    /* The values in the order in which they were given; what was added comes last. */
    get() {
        const checked = this.boxes.filter(({ box }) => box.checked).map(({ box }) => box.value);
        const remaining = this.given.filter((value) => this.others.includes(value) || checked.includes(value));
        const chosen = [...remaining, ...checked.filter((value) => !remaining.includes(value))];
        if (!chosen.length) throw new Error('At least one is needed.');
        return chosen;
    }

    /* A spec's value stays checked when it is unavailable, and can be unchecked; otherwise the server's refusal is
     * shown. */
    set(values) {
        this.given = values;
        this.boxes.forEach(({ box, unavailable }) => {
            box.checked = values.includes(box.value);
            box.disabled = unavailable && !box.checked;
        });
        this.#show(values.filter((value) => !this.boxes.some(({ box }) => box.value === value)));
    }

    takes(values) {
        return values.every((value) => typeof value === 'string' || (value !== null && typeof value === 'object'));
    }

    #show(others) {
        this.others = others;
        const words = (value) =>
            fieldValue(this.name, value) + (value.otherwise ? ', only where no other can be had' : '');
        this.chips.set(others.map((value) => ({ value, text: words(value) })));
    }

    #drop(value) {
        this.#show(this.others.filter((other) => other !== value));
        if (!this.others.length) this.boxes.find(({ box }) => !box.disabled)?.box.focus();
        this.element.dispatchEvent(new Event('input', { bubbles: true }));
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

    takes(value) {
        return typeof value === 'boolean';
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
        return { end: this.kind.value, value: this.control.valueAsNumber };
    }

    set({ end, value }) {
        this.kind.value = end;
        this.control.value = value;
    }

    takes({ value }) {
        return typeof value === 'number';
    }
}
