// SPDX-License-Identifier: MIT
// A drawing as a file: SVG or PNG, with its title, its legend, its note and the line of settings drawn in, as it looks
// on the page.

import { $, h, setText, svg } from '../dom.js';

const STYLED = [
    'fill',
    'fill-opacity',
    'stroke',
    'stroke-width',
    'stroke-opacity',
    'stroke-dasharray',
    'stroke-linejoin',
    'paint-order',
    'font-size',
    'font-weight',
    'opacity',
];
const LINE = 17;
const MARGIN = 16;
const FAMILY = 'system-ui, sans-serif';
export const WORDS = { 'font-size': 11.5, 'font-weight': 400 };
const TITLE = { 'font-size': 15, 'font-weight': 600 };
const TITLE_LINE = 20;
const SWATCH = { width: 32, height: 14 };
const KEY = { label: 38, gap: 18 }; /* of a legend: from the swatch's left to the label, and to the next swatch */
const PNG_SCALE = 2;

/**
 * Buttons that save it: `title()`, `drawing()` the SVG element, `keys()` its legend as [{swatch, label}], `words()` the
 * lines below it, or a promise of them.
 */
export function exportButtons({ title, drawing, words, keys = () => [] }) {
    const name = () =>
        `ipclab-${title()
            .toLowerCase()
            .replace(/[^a-z0-9]+/g, '-')}`.slice(0, 80);
    const as = (label, make, ending) =>
        h(
            'button',
            {
                type: 'button',
                class: 'quiet',
                data: { key: `export-${ending}` },
                'aria-label': `Save the chart as ${label}`,
                on: {
                    click: async () => {
                        try {
                            const lines = await words();
                            save(await make(picture(drawing(), title(), keys(), lines)), `${name()}.${ending}`);
                        } catch (error) {
                            setText($('announcer'), `The chart was not saved: ${error.message}`);
                        }
                    },
                },
            },
            label,
        );
    return h(
        'span',
        { class: 'together', data: { key: 'export' } },
        as('SVG', svgFile, 'svg'),
        as('PNG', pngFile, 'png'),
    );
}

/** A file for the person, from a Blob. */
export function save(blob, name) {
    const url = URL.createObjectURL(blob);
    h('a', { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** The pixels of a text. */
export function widthOf(text, font) {
    const pen = h('canvas').getContext('2d');
    pen.font = `${font['font-weight']} ${font['font-size']}px ${FAMILY}`;
    return pen.measureText(text).width;
}

export function wrapped(text, room, font = WORDS) {
    const lines = [''];
    for (const word of text.split(' ')) {
        const longer = `${lines.at(-1)} ${word}`.trim();
        if (widthOf(longer, font) <= room) lines.splice(-1, 1, longer);
        else lines.push(word);
    }
    return lines.filter(Boolean);
}

/** A copy that needs no style sheet, at a place in the picture. */
export function copied(drawing, { x = 0, y, width, height }) {
    const copy = drawing.cloneNode(true);
    const sources = drawing.querySelectorAll('*');
    copy.querySelectorAll('*').forEach((element, at) => {
        const style = getComputedStyle(sources[at]);
        for (const property of STYLED) {
            const value = style.getPropertyValue(property); /* none of what is not in the page */
            if (value) element.setAttribute(property, value);
        }
        element.removeAttribute('class');
    });
    for (const [name, value] of Object.entries({ x, y, width, height })) copy.setAttribute(name, value);
    return copy;
}

/* The keys one after another, in as many lines as they need: {height, draw(top)}. */
function legendOf(keys, width, fill) {
    let [x, line, high] = [MARGIN, 0, 1];
    const placed = keys.map(({ swatch, label }) => {
        const lines = wrapped(label, width - 2 * MARGIN - KEY.label);
        const whole = KEY.label + Math.max(...lines.map((text) => widthOf(text, WORDS)));
        if (x > MARGIN && x + whole > width - MARGIN) [x, line, high] = [MARGIN, line + high, 1];
        const place = { swatch, lines, x, line };
        x += whole + KEY.gap;
        high = Math.max(high, lines.length);
        return place;
    });
    const draw = (top) =>
        placed.map(({ swatch, lines, x: left, line: at }) => [
            copied(swatch, { ...SWATCH, x: left, y: top + (at + 1) * LINE - 11 }),
            lines.map((text, below) =>
                svg('text', { x: left + KEY.label, y: top + (at + 1 + below) * LINE, fill, ...WORDS, text }),
            ),
        ]);
    return { height: keys.length ? (line + high + 0.5) * LINE : 0, draw };
}

/* The picture of a drawing, on the page's background. */
function picture(drawing, title, keys, words) {
    const { width, height } = drawing.viewBox.baseVal;
    const page = getComputedStyle(document.documentElement);
    const colour = (name) => page.getPropertyValue(name).trim();
    const below = words.flatMap((text) => wrapped(text, width - 2 * MARGIN));
    const heading = wrapped(title, width - 2 * MARGIN, TITLE);
    const legend = legendOf(keys, width, colour('--text'));
    const top = 1.5 * MARGIN + heading.length * TITLE_LINE;
    const foot = top + height + legend.height;
    const whole = foot + below.length * LINE + MARGIN;
    return svg(
        'svg',
        {
            viewBox: `0 0 ${width} ${whole}`,
            width,
            height: whole,
            xmlns: 'http://www.w3.org/2000/svg',
            'font-family': FAMILY,
            'font-size': 12,
        },
        svg('rect', { width, height: whole, fill: colour('--surface') }),
        heading.map((text, at) =>
            svg('text', {
                x: MARGIN,
                y: MARGIN + at * TITLE_LINE + 11,
                fill: colour('--text'),
                ...TITLE,
                text,
            }),
        ),
        copied(drawing, { y: top, width, height }),
        legend.draw(top + height),
        below.map((text, at) =>
            svg('text', {
                x: MARGIN,
                y: foot + (at + 1) * LINE,
                fill: colour('--soft'),
                ...WORDS,
                text,
            }),
        ),
    );
}

const textOf = (element) => new XMLSerializer().serializeToString(element);
const svgFile = (element) => new Blob([textOf(element)], { type: 'image/svg+xml' });

async function pngFile(element) {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(textOf(element))}`;
    await image.decode();
    const canvas = h('canvas', { width: image.width * PNG_SCALE, height: image.height * PNG_SCALE });
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve, reject) =>
        canvas.toBlob(
            (blob) => (blob ? resolve(blob) : reject(new Error('the browser made no picture of it'))),
            'image/png',
        ),
    );
}
