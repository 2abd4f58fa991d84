// SPDX-License-Identifier: MIT
// A preview of an experiment before it is posted: its runs, its time and the points left out, by the daemon's own plan;
// and the same spec as lines for a terminal.

import { Problem, post, token } from '../api.js';
import { fill, h, patch } from '../dom.js';
import { duration, figure, plural, pointLabel, splitFields } from '../format.js';
import { serves } from '../routes.js';
import { copyText } from '../table.js';

const SOON_MS = 400;

/** One line of a shell: whatever is in it stays a word. */
export const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The lines that post this spec, {label: line}. */
export function linesFor(text, origin) {
    const compact = JSON.stringify(JSON.parse(text));
    const { preset, ...others } = JSON.parse(text);
    const own = preset && !Object.keys(others).length;
    return {
        curl: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' ${origin}/experiments -d ${quoted(compact)}`,
        ipclab: `ipclab run ${own ? preset : quoted(compact)}`,
    };
}

export class Preview {
    constructor() {
        this.plan = h('div', { id: 'plan', role: 'status' });
        this.lines = h('div', { class: 'stack' });
        this.element = h(
            'div',
            { class: 'preview' },
            this.plan,
            h(
                'details',
                { class: 'more', id: 'lines' },
                h('summary', { text: 'As JSON and for a terminal' }),
                this.lines,
            ),
        );
    }

    /** Shows the preview of a spec's text; null: the spec is incomplete. */
    set(text) {
        if (text === this.text) return;
        this.text = text;
        clearTimeout(this.timer);
        fill(this.lines, this.#lines(text));
        if (text === null) {
            fill(this.plan);
            return;
        }
        this.timer = setTimeout(() => this.#request(text), SOON_MS);
    }

    #lines(text) {
        let made;
        try {
            made = { JSON: JSON.stringify(JSON.parse(text), null, 2), ...linesFor(text, location.origin) };
        } catch {
            return h('p', { class: 'soft', text: 'There is no whole spec yet.' });
        }
        return Object.entries(made).map(([label, line]) =>
            h(
                'div',
                { class: 'line' },
                h('pre', { tabindex: '0', role: 'region', 'aria-label': label, text: line }),
                h('button', { type: 'button', class: 'quiet', on: { click: () => copyText(line) } }, `Copy ${label}`),
            ),
        );
    }

    /*
     * Only the newest spec's plan is shown. A refusal is shown as it will be when the spec is posted. A plan is a POST;
     * the token dialog does not open for it.
     */
    async #request(text) {
        if (token.state !== 'set' || !(await serves('/experiments', 'dry_run'))) return;
        let content;
        try {
            content = planWords(await post('/experiments?dry_run=true', text));
        } catch (error) {
            if (!(error instanceof Problem)) return;
            content = h('p', { class: 'field-error', text: `It would be refused. ${error.message}` });
        }
        if (text === this.text) patch(this.plan, content);
    }
}

/* Worth words from a fifth less error on. */
const SPLIT_GAIN = 0.8;

const percent = (part) => `${figure(100 * part, 2)} %`;

/* Of the point with the largest error as planned: the division of the same time that makes it smaller. */
function splitWords(points) {
    const [worst] = points
        .filter(({ split }) => split)
        .sort((a, b) => b.split.relative_error_as_planned - a.split.relative_error_as_planned);
    if (!worst || worst.split.relative_error >= SPLIT_GAIN * worst.split.relative_error_as_planned) return '';
    const { repetitions, duration_seconds: seconds, relative_error: error } = worst.split;
    const of = points.length > 1 ? 'of the point that scatters most ' : '';
    return (
        `In the same time, ${plural(repetitions, 'repetition')} of ${seconds} s would give the mean ${of}` +
        `a standard error of ${percent(error)} in place of ${percent(worst.split.relative_error_as_planned)}.`
    );
}

/* How many runs show a difference: the points that no number of them decides, and the most that any other needs. */
function enoughWords(points) {
    const known = points.filter(({ enough }) => enough);
    const beyond = known.filter(({ enough }) => enough.repetitions === null).map(({ enough }) => enough);
    const [worst] = known
        .filter(({ enough }) => enough.repetitions !== null)
        .sort((a, b) => b.enough.repetitions - a.enough.repetitions);
    const words = [];
    if (beyond.length) {
        const of = known.length > 1 ? `for ${beyond.length} of ${known.length} points ` : '';
        const [{ repetitions_reason: reason, difference }] = beyond;
        words.push(`By earlier runs here, ${of}${reason} to show a difference of ${100 * difference} %.`);
    }
    if (worst) {
        const { repetitions, difference } = worst.enough;
        const which = beyond.length ? 'the others' : 'the points';
        const all = beyond.length ? 'of each of the others' : 'of each point';
        const of = known.length < points.length ? `of each of ${which} that ran here before` : all;
        const given = worst.runs < repetitions ? `; this has ${worst.runs}` : '';
        words.push(
            `By earlier runs here, ${plural(repetitions, 'repetition')} ${of} show a difference of ` +
                `${100 * difference} %${given}.`,
        );
    }
    return words;
}

/* A plan in words: what it costs, how many runs would show a difference, what is left out and why. */
function planWords({ runs, estimated_seconds: seconds, points, skipped }) {
    const division = splitWords(points);
    const fields = splitFields(skipped.map(({ point }) => point)).varying;
    return [
        h(
            'p',
            {},
            h('strong', {
                text: `${plural(points.length, 'point')}, ${plural(runs, 'run')}, about ${duration(seconds)}`,
            }),
        ),
        enoughWords(points).map((text) => h('p', { class: 'hint', text })),
        division && h('p', { class: 'hint', text: division }),
        skipped.length > 0 &&
            h(
                'details',
                {},
                h('summary', { text: `${plural(skipped.length, 'point')} left out` }),
                h(
                    'ul',
                    { class: 'hint' },
                    skipped.map(({ point, reason }) =>
                        h('li', { text: `${pointLabel(point, fields.length ? fields : undefined)}: ${reason}` }),
                    ),
                ),
            ),
    ];
}
