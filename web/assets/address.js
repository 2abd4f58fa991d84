// SPDX-License-Identifier: MIT
// The choices made in a view, as the query of its address after the #: a link to the page leads to the same picture.

const parts = () => {
    const [path, query = ''] = location.hash.slice(1).split('?');
    return { path, query: new URLSearchParams(query) };
};

/** The value of `name` in the address; null where it is not there. */
export const chosen = (name) => parts().query.get(name);

/** Whether the view is for the wall, by the query of the page ("/?present") or by the view's own. */
export const onTheWall = () => new URLSearchParams(location.search).has('present') || chosen('present') !== null;

/** Takes both out of the address. */
export function leaveTheWall() {
    choose({ present: null });
    const query = new URLSearchParams(location.search);
    query.delete('present');
    history.replaceState(null, '', `${location.pathname}${query.size ? `?${query}` : ''}${location.hash}`);
}

/** All of the address' choices as [name, value]. */
export const choices = () => [...parts().query];

/** Writes choices {name: value} into the address, in place of the entry that the history has; null takes one out. */
export function choose(values) {
    const { path, query } = parts();
    for (const [name, value] of Object.entries(values))
        if (value === null || value === undefined) query.delete(name);
        else query.set(name, value);
    const address = addressOf(path, query);
    if (address !== (location.hash || '#')) history.replaceState(null, '', address);
}

/** The address of a view with these choices. */
export function addressOf(path, values) {
    const query = new URLSearchParams(values).toString().replace(/=(?=&|$)/g, '');
    return `#${path}${query ? `?${query}` : ''}`;
}
