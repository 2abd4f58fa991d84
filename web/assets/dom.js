// SPDX-License-Identifier: MIT
// Building the page's elements. Every text goes in as a text node, so that a name with markup in it stays a name;
// no other module creates elements, and nothing in the dashboard assigns HTML.

/**
 * An element. Properties: `class`, `on` ({event: listener}), `data` (dataset), `text`; a boolean sets or leaves out the
 * attribute, null and undefined leave it out; everything else is an attribute. Children: nodes, strings, null, lists.
 */
export const h = (tag, properties, ...children) => made(document.createElement(tag), properties, children);

/** The same for a drawing: an element of SVG. */
export const svg = (tag, properties, ...children) => made(document.createElementNS(SVG, tag), properties, children);

const SVG = 'http://www.w3.org/2000/svg';

function made(element, properties, children) {
    for (const [key, value] of Object.entries(properties ?? {})) setProperty(element, key, value);
    element.append(...flatten(children));
    return element;
}

function setProperty(element, key, value) {
    if (value === null || value === undefined || value === false) return;
    if (key === 'on') listen(element, value);
    else if (key === 'data') Object.assign(element.dataset, value);
    else if (key === 'text') element.textContent = value;
    else element.setAttribute(key, value === true ? '' : String(value));
}

const listeners = new WeakMap();

/* These listeners in place of those that the element was built with. */
function listen(element, wanted = {}) {
    for (const [type, listener] of Object.entries(listeners.get(element) ?? {}))
        element.removeEventListener(type, listener);
    for (const [type, listener] of Object.entries(wanted)) element.addEventListener(type, listener);
    listeners.set(element, wanted);
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

/**
 * Brings the content of `element` to what fill() would put there, and changes only what differs: focus, selection,
 * scroll positions and open details survive. A child is brought up to date from the one with its `data-key`, or without
 * one from the next of its kind.
 */
export function patch(element, ...children) {
    const used = new Set();
    let at = element.firstChild;
    for (const child of flatten(children)) {
        const fresh = child instanceof Node ? child : document.createTextNode(child);
        const old = fresh.parentNode === element ? fresh : counterpart(element, at, fresh, used);
        used.add(old ?? fresh);
        if (!old) {
            element.insertBefore(fresh, at);
            continue;
        }
        if (fresh.dataset?.key === undefined || old === at) at = old.nextSibling;
        else element.insertBefore(old, at);
        bringUpToDate(old, fresh);
    }
    for (const child of [...element.childNodes]) if (!used.has(child)) child.remove();
}

function counterpart(element, at, fresh, used) {
    const alike = (node) => node.nodeName === fresh.nodeName && node.dataset?.key === fresh.dataset?.key;
    if (fresh.dataset?.key !== undefined) return [...element.children].find((node) => alike(node) && !used.has(node));
    let node = at;
    while (node && !alike(node)) node = node.nextSibling;
    return node;
}

function bringUpToDate(old, fresh) {
    if (old.nodeType === Node.TEXT_NODE) {
        if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
        return;
    }
    const own = (name) => name === 'open'; /* the reader has opened or closed it since */
    for (const { name } of [...old.attributes]) if (!own(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of [...fresh.attributes])
        if (!own(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    listen(old, listeners.get(fresh));
    patch(old, ...fresh.childNodes);
}

export const $ = (id) => document.getElementById(id);
