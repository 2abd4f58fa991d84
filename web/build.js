// SPDX-License-Identifier: MIT
// Makes the files that the daemon serves: `node build.js OUTPUT` writes index.html and assets/ into that directory,
// each text beside its gzip form. The names of the assets hold a hash of their content, so that a browser may keep them
// for ever. OUTPUT/web.d names the sources for ninja.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const source = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2];
const LICENCE = 'node_modules/uplot/LICENSE';
const ICON = 'assets/icon.svg';
const BUNDLES = ['app.css', 'app.js'];

const read = (name) => readFileSync(join(source, name));

function write(name, content) {
    writeFileSync(join(output, name), content);
    writeFileSync(join(output, `${name}.gz`), gzipSync(content, { level: 9 }));
}

const { metafile, outputFiles } = await build({
    absWorkingDir: source,
    entryPoints: BUNDLES.map((name) => `assets/${name}`),
    outdir: 'assets',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    minify: true,
    target: 'es2022',
    metafile: true,
    write: false,
    logLevel: 'warning',
});

rmSync(join(output, 'assets'), { recursive: true, force: true });
mkdirSync(join(output, 'assets'), { recursive: true });
outputFiles.forEach(({ path, contents }) => write(join('assets', path.slice(dirname(path).length + 1)), contents));
writeFileSync(join(output, 'assets/uPlot.LICENSE.txt'), read(LICENCE));

/* The page names the bundles as they are called in the source tree; the icon goes into it. */
const named = new Map(
    Object.entries(metafile.outputs)
        .filter(([, { entryPoint }]) => BUNDLES.some((bundle) => entryPoint === `assets/${bundle}`))
        .map(([name, { entryPoint }]) => [`/${entryPoint}`, `/${name}`]),
);
named.set(`/${ICON}`, `data:image/svg+xml;base64,${read(ICON).toString('base64')}`);
let page = read('index.html').toString();
for (const [name, built] of named) {
    if (!page.includes(`"${name}"`)) throw new Error(`index.html does not load ${name}`);
    page = page.replace(`"${name}"`, `"${built}"`);
}
write('index.html', page);

const sources = [...Object.keys(metafile.inputs), 'index.html', ICON, LICENCE].map((name) => resolve(source, name));
writeFileSync(
    join(output, 'web.d'),
    `${join(output, 'index.html')}: ${sources.map((name) => name.replaceAll(' ', '\\ ')).join(' ')}\n`,
);
