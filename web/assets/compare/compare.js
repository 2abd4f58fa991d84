// SPDX-License-Identifier: MIT
// Two experiments, or two values of an axis of one, compared: what differs between their environments
// first, then a verdict in words for each point with its ratio and interval. Loaded with the first comparison.

import { choices, chosen, choose } from '../address.js';
import { Problem, get } from '../api.js';
import { $, fill, h, svg } from '../dom.js';
import { exportButtons } from '../chart/export.js';
import { fieldTitle, fieldValue, figure, plural, pointLabel, shortened, splitFields } from '../format.js';
import { nameOf, originOf } from '../home/list.js';
import { serves } from '../routes.js';
import { logMarks } from '../chart/scales.js';
import { settingsLine } from '../settings.js';
import { tableOf } from '../table.js';
import { showFailure } from '../views.js';

const CORRECTIONS = { holm: 'Holm', 'benjamini-hochberg': 'Benjamini and Hochberg' };
const OFFERED = 200; /* experiments in a list to choose from */
const ROW = 44;
const NARROW = 620;
const LETTER = 7.4;
const PARAMETERS = ['baseline', 'candidate', 'experiment', 'axis', 'force'];
const VERDICTS = ['faster', 'slower', 'equivalent', 'undecided'];
const TITLES = {
    throughput_bytes_per_second: 'Throughput',
    messages_per_second: 'Messages per second',
    cpu_ns_per_message: 'CPU time per message',
    cost_ns: 'Cost of an operation',
};
export const titleOf = (name) => TITLES[name] ?? name.replace(/^latency_ns_/, 'Latency, ').replaceAll('_', ' ');

/** The page, unless it is `left` meanwhile. */
export async function showCompare(main, left) {
    fill(main, h('h1', { text: 'Compare' }), h('p', { class: 'soft', text: 'Loading…' }));
    const there = await serves('/compare');
    const [{ items }, { items: pinned }] = await Promise.all([get(`/experiments?limit=${OFFERED}`), get('/baselines')]);
    if (left()) return;
    const body = h('div', { id: 'comparison' });
    const query = () => Object.fromEntries(choices().filter(([name]) => PARAMETERS.includes(name)));
    const again = () => draw(body, query(), left).catch((error) => left() || showFailure(body, error));
    fill(
        main,
        h('a', { class: 'back', href: '#/', text: '← All experiments' }),
        h('div', { class: 'title' }, h('h1', { text: 'Compare' })),
        there
            ? await chooser(items, pinned, again)
            : h('p', { class: 'notice warn', text: 'This ipclabd does not compare: it has no route /compare.' }),
        body,
    );
    if (there) await again();
}

/* The choice of both sides: two experiments, or an axis of one experiment and two of its values. */
async function chooser(experiments, pinned, again) {
    const element = h('section', { class: 'panel', 'aria-label': 'What is compared' });
    const select = (name, label, options) => {
        const control = h(
            'select',
            {
                id: `compare-${name}`,
                on: {
                    change: async (event) => {
                        const value = event.target.value || null;
                        choose(
                            name === 'axis'
                                ? {
                                      axis: value,
                                      experiment: value && chosen('candidate'),
                                      baseline: null,
                                      candidate: value ? null : chosen('experiment'),
                                  }
                                : { [name]: value, force: null },
                        );
                        await build();
                        again();
                    },
                },
            },
            options.map(([value, words]) => h('option', { value, text: words })),
        );
        control.value = chosen(name) ?? '';
        return h('label', { class: 'field' }, h('span', { class: 'label', text: label }), control);
    };
    const ended = experiments.filter(({ progress }) => progress.runs_done > 0);
    const listed = ended.map((one) => [
        String(one.id),
        [`${one.id}: ${nameOf(one)}`, originOf(one)].filter(Boolean).join(', '),
    ]);
    const named = pinned.map(({ name }) => [name, `baseline ${name}`]);
    /* The address may have an experiment that is older than the list. */
    const offeredWith = (name, others = []) => {
        const offered = [...others, ...listed];
        const current = chosen(name);
        const more = current && !offered.some(([id]) => id === current) ? [[current, current]] : [];
        return [['', 'choose…'], ...more, ...offered];
    };
    async function build() {
        const axis = chosen('axis');
        const one = chosen('experiment') ?? chosen('candidate');
        const axes = ended.some(({ id }) => String(id) === one) ? await axesOf(one) : new Map();
        const values = (axes.get(axis) ?? []).map((value) => [wordOf(value), fieldValue(axis, value)]);
        fill(
            element,
            h(
                'div',
                { class: 'form-grid' },
                axis
                    ? [
                          select('experiment', 'Experiment', offeredWith('experiment')),
                          select('axis', 'Values of', [
                              ['', 'another experiment'],
                              ...[...axes.keys()].map((name) => [name, fieldTitle(name)]),
                          ]),
                          select('baseline', 'Baseline', [['', 'choose…'], ...values]),
                          select('candidate', 'Candidate', [['', 'choose…'], ...values]),
                      ]
                    : [
                          select('candidate', 'Candidate', offeredWith('candidate')),
                          select('axis', 'Compared with', [
                              ['', 'another experiment'],
                              ...[...axes.keys()].map((name) => [name, `its own values of ${fieldTitle(name)}`]),
                          ]),
                          select('baseline', 'Baseline', offeredWith('baseline', named)),
                      ],
            ),
        );
    }
    await build();
    return element;
}

export const wordOf = (value) => (typeof value === 'object' ? JSON.stringify(value) : String(value));

async function axesOf(experiment) {
    const { items } = await get(`/experiments/${encodeURIComponent(experiment)}/results`);
    return axesIn(items.map((row) => row.point));
}

/** The axes of an experiment with the values that its points have. */
export function axesIn(points) {
    const valuesOf = (field) => [
        ...new Map(
            points.filter((point) => point[field] !== undefined).map((point) => [wordOf(point[field]), point[field]]),
        ).values(),
    ];
    return new Map(splitFields(points).varying.map((field) => [field, valuesOf(field)]));
}

async function draw(body, query, left) {
    if (!query.baseline || !query.candidate) {
        fill(body, h('p', { class: 'soft', text: 'Choose a baseline and a candidate.' }));
        return;
    }
    try {
        const answer = await get(`/compare?${new URLSearchParams(query)}`);
        if (!left()) show(body, answer);
    } catch (error) {
        if (!(error instanceof Problem) || error.status !== 409 || query.force) throw error;
        if (!left()) refused(body, error);
    }
}

/* Across unlike environments it is a person's own decision. */
function refused(body, error) {
    fill(
        body,
        h(
            'section',
            { class: 'panel' },
            h('p', { class: 'notice warn', role: 'alert', text: error.message }),
            h('p', { class: 'more' }, h('a', { class: 'button', id: 'force', href: forced() }, 'Compare all the same')),
        ),
    );
}

const forced = () =>
    `#/compare?${new URLSearchParams([...choices().filter(([name]) => name !== 'force'), ['force', 'true']])}`;

function show(body, answer) {
    const names = [
        ...new Set(answer.rows.flatMap(({ figures }) => Object.keys(figures).filter((name) => figures[name]))),
    ];
    const current = chosen('figure');
    const name = names.includes(current) ? current : names[0];
    const pick = h(
        'select',
        {
            id: 'compare-figure',
            on: {
                change: (event) => {
                    choose({ figure: event.target.value });
                    show(body, answer);
                    $('compare-figure').focus();
                },
            },
        },
        names.map((one) => h('option', { value: one, text: titleOf(one) })),
    );
    pick.value = name;
    fill(
        body,
        environment(answer, sidesOf(answer)),
        h(
            'section',
            { class: 'panel', 'aria-labelledby': 'verdicts-title' },
            h(
                'div',
                { class: 'panel-head' },
                h('h2', { id: 'verdicts-title', text: verdictWords(answer) }),
                h('div', { class: 'panel-tools' }, h('label', { for: 'compare-figure' }, 'Show ', pick)),
            ),
            name ? rowsOf(answer, name) : h('p', { class: 'soft', text: 'There is no figure that both have.' }),
            only('Only in the baseline', answer.only_in_baseline),
            only('Only in the candidate', answer.only_in_candidate),
        ),
    );
}

/* Where and when each was measured, as soon as it is known. */
function sidesOf(answer) {
    const list = h('ul', { class: 'hint sides' });
    const draw = (lines) => fill(list, lines.map((text) => h('li', { text })));
    const unknown = (error) => draw([`Where they were measured is not known: ${error.message}`]);
    if (sidesKnown.has(answer)) return draw(sidesKnown.get(answer));
    settingsOfSides(answer).then((lines) => {
        sidesKnown.set(answer, lines);
        draw(lines);
    }, unknown);
    return list;
}

const sidesKnown = new WeakMap(); /* lines by answer, which is shown anew for each figure */

const sideWords = ({ experiment_id: id, name, value }, axis) =>
    axis ? fieldValue(axis, value) : `${id}${name ? `, ${name}` : ''}`;

export const valueWords = (value) =>
    value === null || value === undefined
        ? 'unknown'
        : typeof value === 'object'
          ? JSON.stringify(value)
          : String(value);

/* The machine's own state beside the runs of both, by their probes; null where the runs took turns. */
function machineWords(machine) {
    if (!machine || machine.state === 'no-difference') return [];
    if (machine.state === 'unknown') return [`Whether the machine was in the same state is not known: ${machine.reason}.`];
    return machine.probes
        .filter((probe) => probe.differs)
        .map(
            ({ what, cpu, ratio }) =>
                `The machine was in another state: beside the candidate, ${what.replace(/_ns$/, '').replaceAll('_', ' ')} on CPU ${cpu} took ${figure(ratio)} times as long. A verdict below may be of that.`,
        );
}

/* The difference of the environments is the headline: what a verdict means depends on it. */
function environment(answer, measured) {
    const { environment: found, machine, settings, axis, ...sides } = answer;
    const { alike, forced: byForce, differences } = found;
    const unlike = differences.filter((one) => one.unlike);
    const changed = ['baseline', 'candidate'].flatMap((side) =>
        (sides[side]?.environment_changed ?? []).map(({ key, first, last }) => ({
            key: `${key} within the ${side}`,
            words:
                `Between the runs of the ${side}, ${key.replaceAll('_', ' ')} changed from ${valueWords(first)} to ` +
                (last === null ? 'another value and back within a run.' : `${valueWords(last)}.`),
        })),
    );
    const headline = alike
        ? 'Both were measured in the same environment'
        : `The environments differ: ${[...unlike, ...changed].map(({ key }) => key.replaceAll('_', ' ')).join(', ')}`;
    const all = [...differences, ...(settings?.differences ?? [])];
    return h(
        'section',
        { class: alike ? 'panel' : 'panel unlike', 'aria-labelledby': 'environment-title' },
        h('h2', { id: 'environment-title', text: headline }),
        measured,
        byForce &&
            h('p', {
                class: 'notice warn',
                text: 'Compared all the same: a verdict below may be the environment’s.',
            }),
        changed.map(({ words }) => h('p', { class: 'notice warn', text: words })),
        machineWords(machine).map((text) => h('p', { class: 'notice warn', text })),
        all.length === 0
            ? h('p', {
                  class: 'soft',
                  text: axis ? 'Nothing changed between the first run and the last.' : 'Nothing that is known differs.',
              })
            : tableOf(
                  'Differences',
                  ['What', 'Baseline', 'Candidate'],
                  all.map(({ key, baseline, candidate, unlike: matters }) =>
                      h(
                          'tr',
                          {},
                          h(
                              'td',
                              { data: { title: 'What' } },
                              key.replaceAll('_', ' '),
                              matters && h('span', { class: 'flag', text: 'matters' }),
                          ),
                          h('td', { class: 'wrap', data: { title: 'Baseline' }, text: valueWords(baseline) }),
                          h('td', { class: 'wrap', data: { title: 'Candidate' }, text: valueWords(candidate) }),
                      ),
                  ),
              ),
    );
}

/** "2 slower, 5 equivalent" */
export const countsWords = (verdicts) =>
    VERDICTS.filter((verdict) => verdicts[verdict])
        .map((verdict) => `${verdicts[verdict]} ${verdict}`)
        .join(', ');

const verdictWords = ({ verdicts, tests, baseline, candidate, axis }) =>
    `${sideWords(candidate, axis)} against ${sideWords(baseline, axis)}: ` +
    `of ${plural(tests, 'figure')}, ${countsWords(verdicts) || 'none compared'}`;

/* Repetitions that somebody added, for all that is known because of the verdicts so far; "" where there are none. */
function addedWords({ axis, ...sides }) {
    const added = ['baseline', 'candidate']
        .map((side) => [axis ? 'experiment' : side, sides[side].repetitions_added])
        .filter(([, n]) => n > 0)
        .slice(0, axis ? 1 : 2)
        .map(([what, n]) => `${plural(n, 'repetition')} of the ${what}`);
    return added.length
        ? `${added.join(' and ')} came by hand: if that depended on what the runs before showed, a false difference ` +
              'is more likely than the correction allows.'
        : '';
}

const percent = (share) => `${figure(Math.abs(share) * 100, 2)} %`;

/** A verdict in a sentence. */
export function verdictOf({
    verdict,
    ratio,
    interval,
    visible_difference: visible,
    runs_needed: needed,
    runs_needed_reason: why,
}) {
    const by = `${percent(ratio - 1)} ${ratio < 1 ? 'less' : 'more'}`;
    const range =
        interval &&
        ` (${figure(interval.low, 4)} to ${figure(interval.high, 4)}, level ${figure(interval.level * 100, 3)} %)`;
    if (verdict === 'equivalent') return `equivalent: ${figure(ratio, 4)} times${range ?? ''}`;
    if (verdict !== 'undecided') return `${verdict}: ${by}, ${figure(ratio, 4)} times${range ?? ''}`;
    const seen = visible ? `; ${percent(visible)} would have been seen` : '';
    const more = needed ? `; ${plural(needed, 'run')} a side would decide` : why ? `; ${why}` : '';
    return `undecided: ${figure(ratio, 4)} times${range ?? ''}${seen}${more}`;
}

/* How many of a side's runs have flags, and take part all the same: "of the 12 runs of the baseline 3 are noisy". */
function flagsOf(row) {
    const words = ['baseline', 'candidate'].flatMap((side) => {
        const { runs, runs_noisy: noisy, runs_disputed: disputed } = row[side];
        const said = [
            noisy && `${noisy} ${noisy === 1 ? 'is' : 'are'} noisy`,
            ...Object.entries(disputed).map(([flag, n]) => `${n} ${n === 1 ? 'has' : 'have'} the flag ${flag}`),
        ].filter(Boolean);
        return said.length > 0 ? [`of the ${plural(runs, 'run')} of the ${side} ${said.join(', ')}`] : [];
    });
    return words.length > 0 && h('span', { class: 'soft flags', text: ` (${words.join('; ')})` });
}

function rowsOf(answer, name) {
    const points = answer.rows.map((row) => row.candidate.point);
    const { varying } = splitFields(points);
    const fields = varying.filter((field) => field !== answer.axis);
    const rows = answer.rows.map((row) => ({
        label: pointLabel(row.candidate.point, fields) || 'all runs',
        one: row.figures[name],
        why: row.reasons[name],
        flags: flagsOf(row),
        unlike: row.unlike ? `. The settings of the two sides are unlike, too: ${row.unlike}.` : '',
    }));
    const drawn = h('div', {
        class: 'drawing',
        role: 'img',
        'aria-label':
            `${titleOf(name)}, candidate over baseline: ${plural(rows.length, 'row')}, ` +
            'of which the list below has the verdicts.',
    });
    const redraw = () => fill(drawn, dumbbells(rows, Math.max(drawn.clientWidth, 260)));
    let width = 0;
    new ResizeObserver(() => {
        if (drawn.clientWidth === width) return;
        width = drawn.clientWidth;
        requestAnimationFrame(redraw);
    }).observe(drawn);
    return [
        drawn,
        h(
            'ul',
            { class: 'sentences verdicts' },
            rows.map(({ label, one, why, flags, unlike }) =>
                h(
                    'li',
                    {},
                    h('strong', { text: label }),
                    h('span', {
                        class: 'verdict',
                        data: { verdict: one?.verdict ?? 'none' },
                        text: one ? `${verdictOf(one)}${unlike}` : `not compared: ${why ?? 'no figure'}`,
                    }),
                    flags,
                ),
            ),
        ),
        h(
            'p',
            { class: 'hint more' },
            `${titleOf(name)} of the candidate over the baseline's; verdicts within ± ${percent(answer.delta)} are ` +
                `equivalent, corrected after ${CORRECTIONS[answer.correction]} over ${plural(answer.tests, 'figure')}. ` +
                addedWords(answer),
        ),
        h(
            'p',
            {},
            exportButtons({
                title: () => titleOf(name),
                drawing: () => drawn.firstChild,
                words: async () => [verdictWords(answer), ...(await settingsOfSides(answer))],
            }),
        ),
    ];
}

/** The line of settings that an exported picture has of an experiment. */
export async function settingsOf(id) {
    const [experiment, { provenance }] = await Promise.all([
        get(`/experiments/${id}`),
        get(`/experiments/${id}/runs?limit=1`),
    ]);
    return settingsLine(experiment, provenance);
}

async function settingsOfSides({ axis, baseline, candidate }) {
    if (axis) return [await settingsOf(candidate.experiment_id)];
    const [before, after] = await Promise.all([baseline, candidate].map((side) => settingsOf(side.experiment_id)));
    return [`Baseline: ${before}`, `Candidate: ${after}`];
}

/* A dumbbell goes from the baseline, which is 1, to the candidate, whose interval lies around it. */
function dumbbells(rows, width) {
    const compared = rows.map(({ one }) => one).filter(Boolean);
    const values = compared.flatMap(({ ratio, interval }) => [
        ratio,
        interval?.low ?? ratio,
        interval?.high ?? ratio,
        1,
    ]);
    const [min, max] = [Math.min(...values) / 1.06, Math.max(...values) * 1.06];
    const narrow = width < NARROW;
    const left = narrow ? 10 : Math.min(Math.max(...rows.map(({ label }) => label.length)) * LETTER + 14, width * 0.36);
    const right = width - 66;
    const bottom = 10 + ROW * rows.length;
    const x = (ratio) => left + ((Math.log(ratio) - Math.log(min)) / (Math.log(max) - Math.log(min))) * (right - left);
    const letters = narrow ? Infinity : Math.floor((left - 12) / LETTER);
    return svg(
        'svg',
        { viewBox: `0 0 ${width} ${bottom + 30}`, width, height: bottom + 30, class: 'plot', 'aria-hidden': 'true' },
        logMarks(min, max, { most: Math.max(3, Math.floor((right - left) / 80)) }).map((mark) => [
            svg('line', { x1: x(mark), x2: x(mark), y1: 10, y2: bottom, class: 'grid' }),
            svg('text', { x: x(mark), y: bottom + 18, 'text-anchor': 'middle', class: 'tick', text: `${mark} ×` }),
        ]),
        svg('line', { x1: x(1), x2: x(1), y1: 6, y2: bottom, class: 'one' }),
        rows.map(({ label, one }, at) => {
            const y = 10 + ROW * (at + 0.5) + (narrow ? 8 : 0);
            const words = shortened(label, letters);
            return svg(
                'g',
                { class: 'dumbbell', data: { verdict: one?.verdict ?? 'none' } },
                svg('text', {
                    x: narrow ? 10 : left - 10,
                    y: narrow ? y - 14 : y + 4,
                    'text-anchor': narrow ? 'start' : 'end',
                    class: 'name',
                    text: words,
                }),
                one && [
                    svg('line', { x1: x(1), x2: x(one.ratio), y1: y, y2: y, class: 'between' }),
                    one.interval &&
                        svg('path', {
                            d:
                                `M${x(one.interval.low)} ${y}H${x(one.interval.high)}` +
                                `M${x(one.interval.low)} ${y - 5}v10M${x(one.interval.high)} ${y - 5}v10`,
                            class: 'bar-line',
                        }),
                    svg('circle', { cx: x(1), cy: y, r: 4.5, class: 'mark hollow' }),
                    svg(
                        'circle',
                        {
                            cx: x(one.ratio),
                            cy: y,
                            r: 5.5,
                            class: one.verdict === 'undecided' ? 'mark hollow' : 'mark',
                        },
                        svg('title', { text: verdictOf(one) }),
                    ),
                    svg('text', {
                        x: width - 4,
                        y: y + 4,
                        'text-anchor': 'end',
                        class: 'value',
                        text: `${figure(one.ratio, 3)} ×`,
                    }),
                ],
            );
        }),
    );
}

const only = (title, points) =>
    points.length > 0 &&
    h(
        'details',
        { class: 'more' },
        h('summary', {}, title, h('span', { class: 'soft', text: ` · ${plural(points.length, 'point')}` })),
        h(
            'ul',
            { class: 'hint' },
            points.map((point) => h('li', { text: pointLabel(point) })),
        ),
    );
