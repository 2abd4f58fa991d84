// SPDX-License-Identifier: MIT
// The views beyond the first page: one bundle, loaded with the first of them. It imports the page itself, which is there
// already, so that the bundler leaves what both need in one file with the page.

import './app.js';

export { showBaselines, showHistory } from './compare/baselines.js';
export { showCompare } from './compare/compare.js';
export { Detail } from './experiment/detail.js';
export { Form } from './form/form.js';
export { rankedButtons } from './home/ranked.js';
