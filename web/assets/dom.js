// SPDX-License-Identifier: MIT
// Building the page's elements. Every text goes in as a text node, so that a name with markup in it stays a name;
// no other module creates elements, and nothing in the dashboard assigns HTML.

/**
 * An element. Properties: `class`, `on` ({event: listener}), `data` (dataset), `text`; a boolean sets or leaves out the
 * attribute, null and undefined leave it out; everything else is an attribute. Children: nodes, strings, null, lists.
 */
export function h(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(properties ?? {})) setProperty(element, key, value);
    element.append(...flatten(children));
    return element;
}

function setProperty(element, key, value) {
    if (value === null || value === undefined || value === false) return;
    if (key === 'on') for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    else if (key === 'data') Object.assign(element.dataset, value);
    else if (key === 'text') element.textContent = value;
    else element.setAttribute(key, value === true ? '' : String(value));
}

function flatten(children) {
    return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Puts the children in place of what is there. */
export function fill(element, ...children) {
    element.replaceChildren(...flatten(children));
    return element;
}

/** Sets an element's text only when it differs: live regions and selections stay undisturbed. */
export function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

/**
 * Makes `parent` hold one child per item, in order, re-using the children of before by key: focus, open details and
 * scroll positions survive an update. `create(item)` makes a child, `update(child, item)` brings it up to date.
 */
export function reconcile(parent, items, { key, create, update }) {
    const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
    let at = parent.firstElementChild;
    for (const item of items) {
        const name = String(key(item));
        let child = old.get(name);
        old.delete(name);
        if (!child) {
            child = create(item);
            child.dataset.key = name;
        }
        update(child, item);
        if (child === at) at = at.nextElementSibling;
        else parent.insertBefore(child, at);
    }
    for (const child of old.values()) child.remove();
}

export const $ = (id) => document.getElementById(id);
