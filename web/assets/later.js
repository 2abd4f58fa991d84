// SPDX-License-Identifier: MIT
// The views beyond the first page: one bundle, loaded with the first of them, so that the first page shares only one
// chunk with it.

export { showBaselines, showHistory } from './baselines.js';
export { showCompare } from './compare.js';
export { Detail } from './detail.js';
export { Form } from './form.js';
export { rankedButtons } from './ranked.js';
