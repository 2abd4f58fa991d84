// SPDX-License-Identifier: MIT
// What is loaded with the first drawing: one bundle, so that the page before it shares one chunk with it and no more.

export { showCompare } from './compare.js';
export { Figure } from './figure.js';
