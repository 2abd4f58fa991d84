// SPDX-License-Identifier: MIT
// The dialogs that ask something. The browser's <dialog> keeps the focus inside, closes on Esc and gives it back.

import { token } from './api.js';
import { $, setText } from './dom.js';

/* Shows a dialog; resolves with its return value, "" when it was left by Esc or a button that cancels. */
function ask(dialog) {
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

/** True when the person agrees to what the button `action` says, and does not leave by the one that says `keep`. */
export async function confirm({ title, text, action, keep }) {
    const dialog = $('confirm-dialog');
    setText($('confirm-title'), title);
    setText($('confirm-text'), text);
    setText($('confirm-ok'), action);
    setText(dialog.querySelector('[data-cancel]'), keep);
    return (await ask(dialog)) === 'ok';
}

let asking = null;

/** Asks for the bearer token; true when there is one now. Requests that ask at once share one dialog. */
export function askToken(rejected = false) {
    asking ??= tokenDialog(rejected).finally(() => {
        asking = null;
    });
    return asking;
}

async function tokenDialog(rejected) {
    const input = $('token-input');
    input.value = rejected ? '' : token.get();
    setText(
        $('token-error'),
        rejected ? 'The daemon refused this token. Is it the one of this daemon’s token file?' : '',
    );
    input.setAttribute('aria-invalid', rejected);
    if ((await ask($('token-dialog'))) !== 'ok') return false;
    token.set(input.value.trim());
    input.value = '';
    return token.get() !== '';
}
