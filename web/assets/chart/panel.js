// SPDX-License-Identifier: MIT
// The panel of a drawing: heading, controls, a line that reads marks out, the drawing itself and a note below. It is
// drawn again when its width changes, and the arrow keys go from mark to mark.

import { $, h, setText } from '../dom.js';
import { exportButtons } from './export.js';

const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

/** A drawing derives from it, and has draw(), which may set `width` to that of the canvas; key(event), press(event). */
export class Panel {
    /**
     * `legend`: a list between the drawing and its note, with swatch and label in each item; `beside`: an element at
     * its side. A drawing is a picture that takes the focus, unless it is not `focusable`, as its marks take it
     * themselves.
     */
    constructor(id, { title = '', level = 'h2', legend = null, beside = null, focusable = true } = {}) {
        this.heading = h(level, { id: `${id}-title`, text: title });
        this.controls = h('div', { class: 'panel-tools' });
        this.readout = h('p', { class: 'readout', text: '\u00a0' });
        this.canvas = h('div', {
            class: 'drawing',
            role: focusable && 'img',
            tabindex: focusable && '0',
            on: { keydown: (event) => this.key(event), click: (event) => this.press?.(event) },
        });
        this.note = h('p', { class: 'hint' });
        this.legend = legend;
        const drawn = [this.readout, this.canvas, legend, this.note];
        this.element = h(
            'section',
            { class: 'panel figure', id, 'aria-labelledby': `${id}-title` },
            h('div', { class: 'panel-head' }, this.heading, this.controls),
            beside ? h('div', { class: 'beside' }, h('div', {}, drawn), beside) : drawn,
        );
        this.frame = 0;
        this.observer = new ResizeObserver(() => this.canvas.clientWidth !== this.width && this.soon());
        this.observer.observe(this.canvas);
    }

    destroy() {
        cancelAnimationFrame(this.frame);
        this.observer.disconnect();
    }

    /** Draws once, however often it was called. */
    soon() {
        this.frame ||= requestAnimationFrame(() => {
            this.frame = 0;
            this.draw();
        });
    }

    /** The buttons that export the drawing, under `title()` and with the lines of `words()`. */
    exports(title, words) {
        const keys = () =>
            [...(this.legend?.children ?? [])].map((key) => ({ swatch: key.firstChild, label: key.textContent }));
        return exportButtons({ title, drawing: () => this.canvas.firstChild, keys, words });
    }

    /** Of a key that goes to another of `count` marks, which `selector` finds: reads out `wordsOf(at)`. */
    step(event, count, wordsOf, selector) {
        const step = STEPS[event.key];
        if (!step || !count) return;
        event.preventDefault();
        const from = this.at ?? (step > 0 ? -1 : count);
        this.at = Math.min(Math.max(from + step, 0), count - 1);
        const words = wordsOf(this.at);
        setText(this.readout, words);
        setText($('announcer'), words);
        this.canvas.querySelectorAll(selector).forEach((mark, at) => mark.classList.toggle('read', at === this.at));
    }
}
