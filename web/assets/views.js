// SPDX-License-Identifier: MIT
// Messages that any view may show in its place or beside itself: that a page does not exist, or that a request failed.

import { connection, Unreachable } from './api.js';
import { fill, h, setText } from './dom.js';

/** A view of nothing, with a way home. */
export function showMissing(main, heading, words) {
    document.title = `${heading} · ipclab`;
    fill(
        main,
        h('h1', { text: heading }),
        h('p', { class: 'soft', text: words }),
        h('p', { class: 'more' }, h('a', { class: 'button', id: 'home', href: '#/' }, '← All experiments')),
    );
}

/** A view that could not be built. One that the daemon gave no answer for is tried again when it answers (app.js). */
export function showFailure(main, error) {
    fill(
        main,
        h('p', {
            class: 'notice',
            role: 'alert',
            data: { unanswered: error instanceof Unreachable },
            text: error.message,
        }),
    );
}

/**
 * Shows an error in `element`, a live region, and scrolls it into view. The error "does not answer" is removed once the
 * daemon responds.
 */
export function showError(element, error, words = error.message) {
    setText(element, words);
    element.hidden = false;
    element.scrollIntoView({ block: 'nearest' });
    if (!(error instanceof Unreachable)) return;
    const answersAgain = () => {
        if (connection.state === 'gone') return;
        connection.removeEventListener('change', answersAgain);
        if (element.textContent === words) setText(element, 'ipclabd did not answer, but does again. Try once more.');
    };
    connection.addEventListener('change', answersAgain);
}
