// SPDX-License-Identifier: MIT
// The routes that the daemon serves, by its own description: a view without its route is left out, in place of a
// request that is refused.

import { once } from './machine.js';

/** Whether there is a route, such as "/experiments/{id}/findings"; with `parameter`, one that takes this in its query. */
export async function serves(path, parameter = null) {
    const { paths } = await once('/openapi.json');
    const operations = Object.values(paths[path] ?? {});
    if (!operations.length || parameter === null) return operations.length > 0;
    return operations.some((one) => one.parameters?.some(({ name }) => name === parameter));
}
