// SPDX-License-Identifier: MIT
// The findings from an experiment's runs, in words. A finding leads to the marks of the chart that it is about; a
// study's own questions stand beside the published figures.

import { chosen, choose } from '../address.js';
import { get } from '../api.js';
import { fill, h } from '../dom.js';
import { figure, integer, plural } from '../format.js';
import { Published, publishedFigures } from './published.js';
import { serves } from '../routes.js';
import { tableOf } from '../table.js';

const ROUTE = '/experiments/{id}/findings';
const CONFIDENCE = { reduced: 'few, disturbed or unsteady runs' };
const FIRST = 5; /* in sight; the others are folded away */

export class Findings {
    /** `onChosen(rows)` is called with the rows that the chosen finding rests on, null for none. */
    constructor(experiment, onChosen) {
        Object.assign(this, { experiment, onChosen });
        this.element = h('section', {
            class: 'panel findings',
            id: 'findings',
            'aria-labelledby': 'findings-title',
            hidden: true,
        });
    }

    destroy() {
        this.gone = true;
        this.published?.destroy();
    }

    /** Reads them, where the daemon draws any. */
    async load() {
        if (!(await serves(ROUTE))) return;
        const { items, study, comparisons } = await get(ROUTE.replace('{id}', this.experiment));
        if (this.gone) return; /* the view was left */
        this.items = items;
        this.needed = Math.max(0, ...items.map((one) => one.runs_needed ?? 0)) || null;
        this.published?.destroy();
        this.published = study && publishedFigures(study).length ? new Published(study) : null;
        fill(
            this.element,
            h('h2', { id: 'findings-title', text: 'What it shows' }),
            this.#content(items, comparisons),
            studyTable(study, this.published?.element),
        );
        this.element.hidden = false;
        const current = items[Number(chosen('finding') ?? -1)];
        if (current) this.#light(current);
    }

    #content(items, comparisons) {
        if (!items.length)
            return h('p', {
                class: 'soft',
                text: 'Nothing can be concluded from these runs: four of each point are the least that is compared.',
            });
        const decided = items.filter(({ kind }) => kind !== 'undecided');
        const open = items.filter(({ kind }) => kind === 'undecided');
        const folded = (title, some) =>
            some.length > 0 &&
            h(
                'details',
                { class: 'more' },
                h('summary', {}, title, h('span', { class: 'soft', text: ` · ${integer(some.length)}` })),
                this.#list(some),
            );
        const added = items.some(({ reason }) => reason === 'repetitions-added')
            ? ', unless runs were added because of what earlier ones showed'
            : '';
        const hint =
            comparisons > 0 &&
            h('p', {
                class: 'hint more',
                text: `${plural(comparisons, 'comparison')}; the probability that one of them is a false difference is at most 5 %${added}.`,
            });
        if (!decided.length)
            return [
                h('p', { class: 'soft', text: 'No difference is certain. What is open:' }),
                this.#list(open.slice(0, FIRST)),
                folded('More that is open', open.slice(FIRST)),
                hint,
            ];
        return [
            this.#list(decided.slice(0, FIRST)),
            folded('More findings', decided.slice(FIRST)),
            folded('What cannot be said yet', open),
            hint,
        ];
    }

    #list(items) {
        return h(
            'ul',
            { class: 'sentences' },
            items.map((finding) => this.#item(finding)),
        );
    }

    #item(finding) {
        const at = this.items.indexOf(finding);
        const confidence = CONFIDENCE[finding.confidence];
        return h(
            'li',
            {},
            h(
                'button',
                {
                    type: 'button',
                    class: 'sentence',
                    'aria-pressed': 'false',
                    data: { at },
                    on: { click: () => this.#toggle(at) },
                },
                finding.sentence,
            ),
            confidence && h('span', { class: 'flag', text: confidence }),
        );
    }

    #toggle(at) {
        const off = chosen('finding') === String(at);
        choose({ finding: off ? null : at });
        this.#light(off ? null : this.items[at]);
    }

    #light(finding) {
        const at = finding ? this.items.indexOf(finding) : -1;
        this.element.querySelectorAll('.sentence').forEach((button) => {
            const pressed = Number(button.dataset.at) === at;
            button.setAttribute('aria-pressed', pressed);
            if (pressed && button.closest('details')) button.closest('details').open = true;
        });
        this.onChosen(finding);
    }
}

function studyTable(study, drawing) {
    if (!study) return null;
    const number = ({ value, unit, of, interval }) =>
        `${figure(value)} ${unit}${of ? ` (${of})` : ''}${interval ? ` [${figure(interval.low)} – ${figure(interval.high)}]` : ''}`;
    const here = ({ figures, sentence, reason }) => figures.map(number).join(', ') || sentence || reason || '';
    const published = ({ value, unit, words }) =>
        [value !== null && `${figure(value)} ${unit ?? ''}`.trim(), words].filter(Boolean).join(', ');
    return h(
        'details',
        { class: 'more', open: true },
        h(
            'summary',
            {},
            `The questions of the study ${study.name} `,
            h('span', { class: 'soft', text: `· beside the figures of ${study.source}` }),
        ),
        drawing,
        tableOf(
            'Questions of the study',
            ['Question', 'Here', 'Published'],
            study.answers.map((answer) =>
                h(
                    'tr',
                    {},
                    h('td', { class: 'wrap', data: { title: 'Question' }, text: answer.question }),
                    h(
                        'td',
                        { class: 'wrap', data: { title: 'Here' } },
                        here(answer),
                        CONFIDENCE[answer.confidence] && [
                            ' ',
                            h('span', { class: 'flag', text: CONFIDENCE[answer.confidence] }),
                        ],
                    ),
                    h('td', { class: 'wrap', data: { title: 'Published' }, text: published(answer.published) }),
                ),
            ),
        ),
    );
}
