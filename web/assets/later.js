// SPDX-License-Identifier: MIT
// The views beyond the first page: one bundle, loaded with the first of them. It imports the page itself, which is there
// already, so that the bundler leaves what both need in one file with the page.

import './app.js';

export { showBaselines, showHistory } from './baselines.js';
export { showCompare } from './compare.js';
export { Detail } from './detail.js';
export { Form } from './form.js';
export { rankedButtons } from './ranked.js';
