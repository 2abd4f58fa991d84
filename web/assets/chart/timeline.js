// SPDX-License-Identifier: MIT
// The runs of an experiment in the order in which they were made, above what else the machine did meanwhile: a track
// for each disturbance that is recorded second by second, the warm-up shaded, change points and flags marked.

import { patch, setText, svg } from '../dom.js';
import { clockTime, figure, integer, plural, pointLabel, round, splitFields, time } from '../format.js';
import { LIMITS } from '../noise.js';
import { Panel } from './panel.js';
import { linearMarks, spaced } from './scales.js';
import { showRun } from '../experiment/run.js';

const LEFT = 96;
const RIGHT = 14;
const ROW = { runs: 26, track: 44, flags: 18 };
const GAP = 24; /* between tracks, where their titles stand */
const PAUSE_MS = 2000; /* of longer pauses between runs no more is drawn */
const perSecond = (n) => `${figure(n, 3)}/s`;
const percent = (share) => `${figure(share * 100, 3)} %`;

/* A run's seconds, or the whole of it where it has one figure. A bundle has no times since boot: a second follows the
 * one before, or is as many seconds later as its number tells; those without a disturbance may be left out. Runs of
 * earlier versions have no worst softirqs, but those of the CPU with the most foreign time. Where a flag has several
 * causes, `from` is the value from which on this one is. */
const seconds = (name, flag, { earlier, from: least = -Infinity } = {}) => (run) => {
    const { begin_ns: begin, seconds: all = [] } = run.result?.noise ?? {};
    let next = 0;
    let number = 0;
    return (run.window ? all : []).map((one) => {
        next += 1e9 * ((one.second ?? number) - number);
        const from = begin === undefined ? next : one.begin_ns - begin;
        next = from + one.interval_ns;
        number = (one.second ?? number) + 1;
        const value = one[name] ?? one[earlier] ?? null;
        return {
            from: run.window + from / 1e6,
            to: run.window + next / 1e6,
            value,
            flagged: one.flags && one.flags.includes(flag) && value >= least,
        };
    });
};
const whole = (of, flag) => (run) => {
    const value = run.result?.noise ? of(run.result.noise) : null;
    return run.window && Number.isFinite(value)
        ? [{ from: run.window, to: run.closed, value, flagged: run.flags.includes(flag) }]
        : [];
};

const loads = seconds('load_cpus', 'noisy:load');
const meanLoad = whole((noise) => noise.load_cpus, 'noisy:load');

/* A track: its title, the pieces of a run, how a value is written, the largest that its axis has at least, and the
 * value from which on a run is flagged. A piece is marked where its own flags have the track's; those that come without
 * flags, where they exceed that value. A quiet track is shown when a piece of it is marked. */
const TRACKS = [
    {
        title: 'Foreign CPU',
        of: seconds('foreign_share', 'noisy:foreign-cpu'),
        format: percent,
        least: 0.1,
        limit: LIMITS.foreign,
    },
    {
        title: 'Steal',
        of: seconds('worst_steal_share', 'noisy:steal'),
        format: percent,
        least: 0.1,
        limit: LIMITS.steal,
    },
    {
        title: 'Standstill',
        of: seconds('worst_standstill_share', 'noisy:standstill'),
        format: percent,
        least: 0.1,
        limit: LIMITS.standstill,
        quiet: true,
    },
    {
        title: 'Stopped',
        of: seconds('stopped_ns', 'noisy:stopped'),
        format: (ns) => `${figure(ns / 1e6, 3)} ms`,
        least: 1e8,
        quiet: true,
    },
    {
        title: 'Sent again',
        of: seconds('retransmitted_segments', 'noisy:retransmits'),
        format: (n) => `${figure(n, 3)} ${n === 1 ? 'segment' : 'segments'}`,
        least: 1,
        quiet: true,
    },
    {
        title: 'Softirq',
        of: seconds('worst_softirq_share', 'noisy:softirq', { earlier: 'softirq_share' }),
        format: percent,
        least: 0.1,
        limit: LIMITS.softirq,
        quiet: true,
    },
    {
        title: 'Packets',
        of: seconds('foreign_packets_per_second', 'noisy:softirq', { from: LIMITS.packets }),
        format: perSecond,
        least: LIMITS.packets,
        limit: LIMITS.packets,
        quiet: true,
    },
    {
        title: 'In interrupts',
        of: seconds('worst_irq_share', 'noisy:interrupts', { from: LIMITS.irq }),
        format: percent,
        least: 0.1,
        limit: LIMITS.irq,
        quiet: true,
    },
    {
        title: 'Interrupts',
        of: seconds('device_interrupts_per_second', 'noisy:interrupts', { from: LIMITS.interrupts }),
        format: perSecond,
        least: LIMITS.interrupts,
        limit: LIMITS.interrupts,
        quiet: true,
    },
    {
        title: 'Other load',
        of: (run) => (loads(run).some(({ value }) => value !== null) ? loads(run) : meanLoad(run)),
        format: (value) => `${figure(value, 3)} ${value === 1 ? 'CPU' : 'CPUs'}`,
        least: 1,
        limit: LIMITS.load,
    },
    {
        title: 'Clock',
        of: whole((noise) => noise.slowest_khz && noise.slowest_khz / 1e6),
        format: (value) => `${figure(value, 3)} GHz`,
        least: 1,
    },
];

/* Runs of earlier versions have the mean alone. */
function loadWords(noise) {
    if (Number.isFinite(noise?.worst_load_cpus)) return `other load up to ${figure(noise.worst_load_cpus, 3)} CPUs`;
    return Number.isFinite(noise?.load_cpus) && `other load ${figure(noise.load_cpus, 3)} CPUs`;
}

const isMarked = ({ value, flagged }, limit) => value !== null && (flagged ?? value >= limit);

const ms = (text) => (text ? new Date(text).getTime() : null);

/**
 * The begun runs in the order of time, each with `start`, `window` (where its measured window begins; null: not known),
 * `closed` (where that ends) and `end` in milliseconds of a time without long pauses.
 */
export function laidOut(runs) {
    const begun = runs.filter((run) => run.started_at).sort((a, b) => ms(a.started_at) - ms(b.started_at));
    let shift = begun.length ? ms(begun[0].started_at) : 0;
    let last = null;
    return begun.map((run) => {
        const at = ms(run.started_at);
        if (last !== null && at - last > PAUSE_MS) shift += at - last - PAUSE_MS;
        const window = ms(run.result?.begun_at);
        const length = (run.result?.window_ns ?? 0) / 1e6;
        const end = Math.max(ms(run.finished_at) ?? at, window ? window + length : at, at + 1);
        last = end;
        const closed = window ? window + length : end;
        return {
            ...run,
            start: at - shift,
            window: window && window - shift,
            closed: closed - shift,
            end: end - shift,
        };
    });
}

const steadiness = (run) => run.result?.steadiness ?? [];

/** The changes of level of a run's figures, in seconds of its window: each once. */
export const changesOf = (run) => [
    ...new Set(steadiness(run).flatMap(({ changes = [] }) => changes.map(({ at_seconds: at }) => at))),
];

/* The time at which the last of its figures became steady, in milliseconds of its window. */
const unsteadyFor = (run) => 1000 * Math.max(0, ...steadiness(run).map((one) => one.steady_from_seconds ?? 0));

export class TimeLine extends Panel {
    constructor(settings) {
        super('timeline', { title: 'Runs, and what disturbed them' });
        this.settings = settings;
        this.runs = [];
        this.element.hidden = true;
    }

    /** Those that are known, of `total`. */
    setRuns(runs, total) {
        this.runs = laidOut(runs);
        this.fields = splitFields(this.runs.map(({ point }) => point)).varying;
        this.total = total;
        this.soon();
    }

    draw() {
        this.element.hidden = this.runs.length === 0;
        if (this.element.hidden) return;
        this.width = this.canvas.clientWidth;
        const width = Math.max(this.width, 240);
        const end = Math.max(...this.runs.map((run) => run.end));
        const x = (value) => LEFT + (value / end) * (width - LEFT - RIGHT);
        const tracks = TRACKS.map((track) => ({ ...track, pieces: this.runs.flatMap(track.of) })).filter(
            ({ pieces, limit, quiet }) =>
                pieces.some(({ value }) => value !== null) &&
                !(quiet && !pieces.some((piece) => isMarked(piece, limit))),
        );
        const flagged = this.runs.some(({ flags }) => flags.length > 0);
        let y = 8;
        const runsAt = y;
        y += ROW.runs;
        const flagsAt = y;
        if (flagged) y += ROW.flags;
        const placed = tracks.map((track) => {
            const top = y + GAP;
            y = top + ROW.track;
            return { ...track, top };
        });
        const bottom = y + 4;
        patch(
            this.canvas,
            svg(
                'svg',
                {
                    viewBox: `0 0 ${width} ${bottom + 26}`,
                    width,
                    height: bottom + 26,
                    class: 'plot times',
                    'aria-hidden': 'true',
                },
                this.#label('Runs', LEFT, runsAt + 17),
                this.#warmUps(x, runsAt, bottom),
                this.runs.map((run) => this.#run(run, x, runsAt)),
                flagged && this.#label('Flags', LEFT, flagsAt + 12),
                flagged && this.runs.map((run) => this.#flags(run, x, flagsAt + 8)),
                placed.map((track) => this.#track(track, x, width)),
                this.#clock(x, bottom),
            ),
        );
        patch(
            this.controls,
            this.exports(
                () => this.heading.textContent,
                () => [this.settings(), this.note.textContent],
            ),
        );
        this.element.dataset.tracks = placed.map(({ title }) => title).join(', ');
        this.canvas.setAttribute(
            'aria-label',
            `${plural(this.runs.length, 'run')} in time. Left and right arrow keys read them out, Enter opens one.`,
        );
        setText(this.note, this.#words(placed));
    }

    #label(text, left, y) {
        return svg('text', { x: left - 10, y, 'text-anchor': 'end', class: 'name', text });
    }

    /* The time from the start of a run to where it is steady: set-up, warm-up, and what of the window warmed up still. */
    #warmUps(x, top, bottom) {
        return this.runs
            .filter((run) => run.window)
            .map((run) =>
                svg('rect', {
                    x: x(run.start),
                    y: top,
                    width: Math.max(x(run.window + unsteadyFor(run)) - x(run.start), 0.5),
                    height: bottom - top,
                    class: 'warm-up',
                }),
            );
    }

    #run(run, x, top) {
        const from = x(run.window ?? run.start);
        return svg(
            'g',
            { class: 'run', data: { run: run.id, state: run.state } },
            svg(
                'rect',
                { x: from, y: top + 4, width: Math.max(x(run.closed) - from, 1), height: ROW.runs - 8, class: 'span' },
                svg('title', { text: this.#runWords(run) }),
            ),
            run.window &&
                changesOf(run).map((second) =>
                    svg('path', {
                        d: `M${x(run.window + second * 1000).toFixed(1)} ${top}V${top + ROW.runs}`,
                        class: 'change',
                    }),
                ),
        );
    }

    #flags(run, x, y) {
        if (!run.flags.length) return null;
        const middle = (x(run.window ?? run.start) + x(run.closed)) / 2;
        return svg(
            'path',
            { d: `M${middle} ${y - 5}l5 9h-10Z`, class: 'flag-mark' },
            svg('title', { text: `Run ${run.id}: ${run.flags.join(', ')}` }),
        );
    }

    #track({ title, pieces, format, least, limit, top }, x, width) {
        const known = pieces.filter(({ value }) => value !== null);
        const most = Math.max(least, ...known.map(({ value }) => value)) * 1.05;
        const y = (value) => top + ROW.track - (value / most) * ROW.track;
        return svg(
            'g',
            { class: 'track', data: { track: title } },
            this.#label(title, LEFT, top - 7),
            linearMarks(0, most, { most: 2 }).map((mark) => [
                svg('line', { x1: LEFT, x2: width - RIGHT, y1: y(mark), y2: y(mark), class: 'grid' }),
                mark > 0 &&
                    svg('text', {
                        x: LEFT - 10,
                        y: y(mark) + 4,
                        'text-anchor': 'end',
                        class: 'tick',
                        text: round(format(mark)),
                    }),
            ]),
            limit &&
                limit < most &&
                svg('line', { x1: LEFT, x2: width - RIGHT, y1: y(limit), y2: y(limit), class: 'hairline' }),
            known.map((piece) => {
                const { from, to, value } = piece;
                return svg('rect', {
                    x: x(from),
                    y: y(value),
                    width: Math.max(x(to) - x(from), 0.7),
                    height: Math.max(top + ROW.track - y(value), 0.7),
                    class: isMarked(piece, limit) ? 'amount over' : 'amount',
                });
            }),
        );
    }

    /* The time by the wall clock at which runs started, where there is room for it: to the second within a minute or two. */
    #clock(x, bottom) {
        const minutes = this.runs.map(({ started_at: at }) => time(at).split(', ').at(-1));
        const isBrief = new Set(minutes).size < 3;
        const words = isBrief ? this.runs.map(({ started_at: at }) => clockTime(new Date(at))) : minutes;
        const fresh = this.runs.map((run, at) => at).filter((at) => at === 0 || words[at] !== words[at - 1]);
        return spaced(
            fresh.map((at) => x(this.runs[at].start)),
            isBrief ? 72 : 52,
        ).map((index) => {
            const place = x(this.runs[fresh[index]].start);
            return [
                svg('line', { x1: place, x2: place, y1: bottom, y2: bottom + 5, class: 'grid' }),
                svg('text', {
                    x: place,
                    y: bottom + 19,
                    'text-anchor': index ? 'middle' : 'start',
                    class: 'tick',
                    text: words[fresh[index]],
                }),
            ];
        });
    }

    #runWords(run) {
        const noise = run.result?.noise;
        const changes = changesOf(run);
        return [
            `Run ${run.id}`,
            pointLabel(run.point, this.fields),
            run.repetition > 1 && `repetition ${run.repetition}`,
            run.state,
            noise?.worst && `foreign CPU up to ${percent(noise.worst.foreign_share)}`,
            loadWords(noise),
            changes.length > 0 && `level changed at second ${changes.map((one) => figure(one, 3)).join(', ')}`,
            run.flags.join(', '),
            run.error,
        ]
            .filter(Boolean)
            .join(' · ');
    }

    #words(placed) {
        return [
            this.runs.length < this.total &&
                `${integer(this.runs.length)} of ${integer(this.total)} runs; more are listed below.`,
            'Shaded: set-up and warm-up, to where the run is steady.',
            'A line across a run: its level changed there. A triangle: the run has flags.',
            placed.some(({ limit }) => limit) && 'Dotted: from there on a run is flagged.',
            placed.some(({ title }) => title === 'Standstill') &&
                'A standstill is also flagged where it exceeds that of the best second by 30 points.',
            'Pauses longer than 2 s are cut.',
        ]
            .filter(Boolean)
            .join(' ');
    }

    press(event) {
        const { run } = event.target.closest?.('.run')?.dataset ?? {};
        if (run) showRun(Number(run));
    }

    key(event) {
        if (event.key === 'Enter' && this.at !== undefined) {
            event.preventDefault();
            showRun(this.runs[this.at].id);
            return;
        }
        this.step(event, this.runs.length, (at) => this.#runWords(this.runs[at]), '.run');
    }
}
