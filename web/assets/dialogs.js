// SPDX-License-Identifier: MIT
// The modal dialogs. The browser's <dialog> traps the focus, closes on Esc and returns the focus.

import { token } from './api.js';
import { $, setText } from './dom.js';

/* Shows a dialog; resolves with its return value, "" when it was left by Esc or a button that cancels. */
function show(dialog) {
    const cancel = dialog.querySelector('[data-cancel]');
    return new Promise((resolve) => {
        const leave = () => dialog.close('');
        cancel?.addEventListener('click', leave);
        dialog.addEventListener(
            'close',
            () => {
                cancel?.removeEventListener('click', leave);
                resolve(dialog.returnValue);
            },
            { once: true },
        );
        dialog.returnValue = '';
        dialog.showModal();
    });
}

/** True for a press on the button labelled `action`; false for the one labelled `keep`, and for Esc. */
export async function confirm({ title, text, action, keep }) {
    const dialog = $('confirm-dialog');
    setText($('confirm-title'), title);
    setText($('confirm-text'), text);
    setText($('confirm-ok'), action);
    setText(dialog.querySelector('[data-cancel]'), keep);
    return (await show(dialog)) === 'ok';
}

let pending = null;

/** Shows the dialog for the bearer token; true when there is one now. Concurrent calls share one dialog. */
export function requestToken(rejected = false) {
    pending ??= tokenDialog(rejected).finally(() => {
        pending = null;
    });
    return pending;
}

async function tokenDialog(rejected) {
    const input = $('token-input');
    input.value = rejected ? '' : token.get();
    setText(
        $('token-error'),
        rejected ? 'The daemon refused this token. Is it the one of this daemon’s token file?' : '',
    );
    input.setAttribute('aria-invalid', rejected);
    if ((await show($('token-dialog'))) !== 'ok') return false;
    token.set(input.value.trim());
    input.value = '';
    return token.get() !== '';
}
