// SPDX-License-Identifier: MIT
// A drawing as a file: SVG or PNG, with its title, its note and the line of settings drawn in, as it looks on the page.

import { $, h, setText, svg } from './dom.js';

const STYLED = [
    'fill',
    'fill-opacity',
    'stroke',
    'stroke-width',
    'stroke-opacity',
    'stroke-dasharray',
    'font-size',
    'font-weight',
    'opacity',
];
const LINE = 17;
const MARGIN = 16;
const LETTER = 6.4;
const PNG_SCALE = 2;

/** Buttons that save it: `title()`, `drawing()` the SVG element, `words()` the lines below it. */
export function exportButtons({ title, drawing, words }) {
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
                            save(await make(picture(drawing(), title(), words())), `${name()}.${ending}`);
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

function wrapped(text, letters) {
    const lines = [''];
    for (const word of text.split(' '))
        if (lines.at(-1).length + word.length < letters) lines.push(`${lines.pop()} ${word}`.trim());
        else lines.push(word);
    return lines.filter(Boolean);
}

/* A copy that needs no style sheet, on the page's ground. */
function picture(drawing, title, words) {
    const copy = drawing.cloneNode(true);
    const sources = drawing.querySelectorAll('*');
    copy.querySelectorAll('*').forEach((element, at) => {
        const style = getComputedStyle(sources[at]);
        for (const property of STYLED) element.setAttribute(property, style.getPropertyValue(property));
        element.removeAttribute('class');
    });
    const { width, height } = drawing.viewBox.baseVal;
    const page = getComputedStyle(document.documentElement);
    const colour = (name) => page.getPropertyValue(name).trim();
    const below = words.flatMap((text) => wrapped(text, (width - 2 * MARGIN) / LETTER));
    const top = 2.4 * LINE;
    const whole = top + height + below.length * LINE + MARGIN;
    copy.setAttribute('y', top);
    copy.setAttribute('width', width);
    copy.setAttribute('height', height);
    return svg(
        'svg',
        {
            viewBox: `0 0 ${width} ${whole}`,
            width,
            height: whole,
            xmlns: 'http://www.w3.org/2000/svg',
            'font-family': 'system-ui, sans-serif',
            'font-size': 12,
        },
        svg('rect', { width, height: whole, fill: colour('--surface') }),
        svg('text', {
            x: MARGIN,
            y: 1.6 * LINE,
            'font-size': 15,
            'font-weight': 600,
            fill: colour('--text'),
            text: title,
        }),
        copy,
        below.map((text, at) =>
            svg('text', {
                x: MARGIN,
                y: top + height + (at + 1) * LINE,
                fill: colour('--soft'),
                'font-size': 11.5,
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
