// SPDX-License-Identifier: MIT
// Ranges and marks of a chart's axes. Marks are round in the unit that is shown: `unit` is how many of it a datum of 1
// is, up to a power of ten (8 for bytes that are shown as bits).

import { round } from '../format.js';

const PADDING = 0.02;
const EVEN_MOST = 6;

/** [least, largest] of the numbers in the lists; null when there is none. */
export function extent(...lists) {
    const numbers = lists.flat().filter((value) => Number.isFinite(value));
    const wider = ([least, most], value) => [Math.min(least, value), Math.max(most, value)];
    return numbers.length ? numbers.reduce(wider, [Infinity, -Infinity]) : null;
}

/** The range of a linear x axis: what is marked at an end of it lies within the frame. */
export const padded = ([min, max]) => {
    const room = min === max ? 0.5 : (max - min) * PADDING;
    return [min - room, max + room];
};

const inRange = (marks, min, max) => marks.filter((mark) => mark >= min * (1 - 1e-9) && mark <= max * (1 + 1e-9));

/* At most `most` even steps of 1, 2, 2.5 or 5 times a power of ten; from 6 on there are three marks at least. */
function evenly(min, max, most) {
    const least = (max - min) / most;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => (max - min) / one <= most);
    const first = Math.ceil(min / step - 1e-9);
    const count = Math.floor(max / step + 1e-9) - first + 1;
    return Array.from({ length: count }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** The marks of a linear axis, in data units. */
export const linearMarks = (min, max, { unit = 1, most = 6 } = {}) =>
    evenly(min * unit, max * unit, most).map((mark) => mark / unit);

const STEPS = [[1, 2, 5], [1, 3], [1]];

/**
 * The marks of a logarithmic axis, in data units: powers of ten with as many steps between them as there is room for;
 * even steps where an axis is too short to have three of these.
 */
export function logMarks(min, max, { unit = 1, most = 8 } = {}) {
    const [from, to] = [min * unit, max * unit];
    const first = Math.floor(Math.log10(from));
    const decades = Array.from({ length: Math.ceil(Math.log10(to)) - first + 1 }, (_, index) => first + index);
    const marksOf = (steps, powers) =>
        inRange(
            powers.flatMap((power) => steps.map((step) => Number(`${step}e${power}`))),
            from,
            to,
        );
    const marks = STEPS.map((steps) => marksOf(steps, decades)).find((some) => some.length <= most);
    if (marks?.length >= 3) return marks.map((mark) => mark / unit);
    if (marks) return evenly(from, to, EVEN_MOST).map((mark) => mark / unit);
    const every = Math.ceil(decades.length / most);
    return marksOf(
        [1],
        decades.filter((power) => power % every === 0),
    ).map((mark) => mark / unit);
}

/** A mark of an axis as `format` writes it: all marks of a linear axis in the unit of the largest. */
export const markWords = (format, mark, marks, log) => round(format(mark, log ? mark : Math.max(...marks)));

/** Those of the ascending places (pixels) that leave `least` between them, from the first on: their indices. */
export function spaced(places, least) {
    let last = -Infinity;
    return places.flatMap((place, index) => {
        if (place - last < least) return [];
        last = place;
        return [index];
    });
}
