// SPDX-License-Identifier: MIT
// The fields of a spec that have no control of their own in the form, as the schema has them: one is chosen, given a
// value with its limits and this machine's beside it, and becomes a part of the spec.

import { fill, h, setText } from '../dom.js';
import { fieldTitle, integer, size } from '../format.js';
import { isAvailable } from '../home/host.js';
import { refOf, specOf } from '../schema.js';

const OWN = 'of the experiment';
const YES_NO = [true, false];
const TINY = 1e-6; /* a least value below it stands for "more than nothing" */
/* Facts of the host that stand as they are in GET /environment. */
const OF_THE_HOST = ['require', 'tune'];

/* An axis takes one value or several: the form of one. */
function singleOf(openapi, schema) {
    const one = schema.oneOf?.find((form) => form.$ref);
    return one ? { several: true, ...refOf(openapi, one.$ref), description: schema.description } : schema;
}

function leavesBelow(openapi, path, schema) {
    const own = singleOf(openapi, schema);
    if (!own.properties) return [{ ...own, path }];
    return Object.entries(own.properties).flatMap(([name, inner]) => leavesBelow(openapi, [...path, name], inner));
}

/** The members of a spec for which `hasField(name)` is false: [{path, several, ...schema}], those of objects singly. */
export function furtherFields(openapi, hasField) {
    return Object.entries(specOf(openapi).properties)
        .filter(([name]) => !hasField(name))
        .flatMap(([name, schema]) => leavesBelow(openapi, [name], schema));
}

/** The value that a text stands for, of a member of furtherFields(); throws with words for a person. */
export function valueOf(field, text) {
    const values = (field.several ? text.split(',') : [text]).map((part) => oneValue(field, part.trim()));
    return values.length === 1 ? values[0] : values;
}

function oneValue({ type, minimum, maximum, exclusiveMinimum, enum: words }, text) {
    if (text === '') throw new Error('A value is needed.');
    const word = (words ?? (type === 'boolean' ? YES_NO : [])).find((one) => String(one) === text);
    if (word !== undefined) return word;
    if (words) throw new Error(`“${text}” is none of ${words.join(', ')}.`);
    if (Array.isArray(type) || type === undefined) return whatever(text);
    if (!['integer', 'number'].includes(type)) return text;
    const number = Number(text);
    if (!(type === 'integer' ? Number.isSafeInteger(number) : Number.isFinite(number)))
        throw new Error(`“${text}” is not ${type === 'integer' ? 'a whole number' : 'a number'}.`);
    if (number < minimum || number > maximum || number <= exclusiveMinimum)
        throw new Error(`${text} is not ${rangeWords({ minimum, maximum, exclusiveMinimum })}.`);
    return number;
}

/* JSON where it is any, else the text itself. */
function whatever(text) {
    try {
        return JSON.parse(text);
    } catch {
        return text;
    }
}

const figureOf = (value) => (Number.isInteger(value) ? integer(value) : String(value));

function rangeWords({ minimum, maximum, exclusiveMinimum }, words = figureOf) {
    if (minimum > 0 && minimum < TINY) return `above 0, up to ${words(maximum)}`;
    if (exclusiveMinimum !== undefined) return `above ${exclusiveMinimum}, up to ${words(maximum)}`;
    return minimum === undefined ? null : `from ${words(minimum)} to ${words(maximum)}`;
}

const begun = (words) => words && `${words[0].toUpperCase()}${words.slice(1)}.`;

/** What a member of a spec may be, "From 1 to 1 024."; null where the schema has no range. `words(value)` if given. */
export const rangeOf = (openapi, name, words) =>
    begun(rangeWords(singleOf(openapi, specOf(openapi).properties[name] ?? {}), words));

/** A copy of `spec` in which the member at `path` is `value`; what an object of it has besides is from `whole`. */
export function withMember(spec, whole, [name, ...rest], value) {
    const inner = whole[name] ?? {};
    return { ...spec, [name]: rest.length ? withMember(inner, inner, rest, value) : value };
}

/* What limits a transport's option on this host: "pipe, fifo: fs.pipe-max-size 1 MiB". */
function limitsOf(name, transports) {
    const by = new Map();
    const takes = (one) => isAvailable(one) && one.options?.includes(name);
    for (const { name: transport, capacity } of transports.filter(takes))
        if (capacity?.limit) {
            const words = `${capacity.limit.name} ${size(Number(capacity.limit.value), true)}`;
            by.set(words, [...(by.get(words) ?? []), transport]);
        }
    return [...by].map(([words, names]) => `${names.join(', ')}: ${words}`);
}

export class Further {
    /** `add(path, value)` takes the value into the spec. */
    constructor(fields, { transports, environment, add }) {
        Object.assign(this, { fields, transports, environment, add });
        this.value = h('div', { class: 'further-value' });
        this.error = h('p', { class: 'field-error', id: 'further-error', role: 'alert' });
        this.hint = h('p', { class: 'hint', id: 'further-hint' });
        this.select = h(
            'select',
            { id: 'further', on: { change: () => this.#chosen() } },
            h('option', { value: '', text: 'choose…' }),
            this.#groups(),
        );
        const click = () => this.#take();
        this.button = h('button', { type: 'button', id: 'further-add', hidden: true, on: { click } }, 'Add');
        this.element = h(
            'div',
            { class: 'field span', on: { keydown: (event) => this.#key(event) } },
            h('label', { for: 'further', text: 'Further fields' }),
            h('div', { class: 'further' }, this.select, this.value, this.button),
            this.error,
            this.hint,
        );
    }

    #groups() {
        const groups = Map.groupBy(this.fields, ({ path }) => (path.length > 1 ? path[0] : OWN));
        return [...groups].map(([name, fields]) =>
            h(
                'optgroup',
                { label: fieldTitle(name) },
                fields.map(({ path }) => {
                    const words = (path.length > 1 ? path.slice(1) : path).map((one) => one.replaceAll('_', ' '));
                    return h('option', { value: path.join('.'), text: words.join(': ') });
                }),
            ),
        );
    }

    #chosen() {
        this.field = this.fields.find(({ path }) => path.join('.') === this.select.value) ?? null;
        setText(this.error, '');
        this.button.hidden = !this.field;
        setText(this.hint, this.field ? this.#words() : '');
        fill(this.value, this.field && this.#control());
    }

    #control() {
        const { type, enum: words, several, default: usual, path } = this.field;
        const attributes = {
            id: 'further-value',
            'aria-label': path.at(-1).replaceAll('_', ' '),
            'aria-describedby': 'further-error further-hint',
        };
        const choices = words ?? (type === 'boolean' ? YES_NO : null);
        if (!choices || several)
            return h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', ...attributes });
        const other = choices.find((one) => one !== usual);
        return h(
            'select',
            attributes,
            choices.map((one) => h('option', { value: String(one), selected: one === other, text: this.#choice(one) })),
        );
    }

    /* Of sizes their unit; of other numbers and of words themselves. */
    #choice(value) {
        if (typeof value === 'boolean') return value ? 'on' : 'off';
        return this.field.path.at(-1).endsWith('bytes') ? size(value) : String(value);
    }

    /* What the field means, what it may be, and what it is here. */
    #words() {
        const { path, description, several, enum: words, default: usual } = this.field;
        const name = path.at(-1);
        const here = OF_THE_HOST.includes(path[0]) ? this.environment[name] : undefined;
        return [
            description && `${description}.`,
            begun(rangeWords(this.field)),
            several && `${words ? `${words.join(', ')}; several` : 'Several'} are separated by commas.`,
            usual !== undefined && `Without it: ${usual}.`,
            ['string', 'number', 'boolean'].includes(typeof here) && `Here: ${here}.`,
            path[0] === 'transport_options' && limitsOf(name, this.transports).map((one) => `Limit here, ${one}.`),
        ]
            .flat()
            .filter(Boolean)
            .join(' ');
    }

    #key(event) {
        if (event.key !== 'Enter' || event.ctrlKey || event.metaKey || event.target.id !== 'further-value') return;
        event.preventDefault();
        this.#take();
    }

    #take() {
        const control = this.value.firstChild;
        try {
            this.add(this.field.path, valueOf(this.field, control.value));
        } catch (error) {
            setText(this.error, error.message);
            control.setAttribute('aria-invalid', 'true');
            control.focus();
            return;
        }
        this.select.value = '';
        this.#chosen();
        this.select.focus();
    }
}
