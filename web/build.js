// SPDX-License-Identifier: MIT
// Makes the files that the daemon serves: `node build.js OUTPUT` writes index.html and assets/ into that directory,
// each text beside its gzip form, and report.html, with its style and its script inside, of which reports are made.
// The names of the assets hold a hash of their content, so that a browser may keep them for ever. OUTPUT/web.d names
// the sources for ninja.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
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

/* An entry of which all is in a chunk: it only imports that. */
const isEntryAlone = ({ entryPoint, inputs }) => entryPoint !== undefined && !(entryPoint in inputs);

rmSync(join(output, 'assets'), { recursive: true, force: true });
mkdirSync(join(output, 'assets'), { recursive: true });
outputFiles
    .filter(({ path }) => !isEntryAlone(metafile.outputs[relative(source, path)]))
    .forEach(({ path, contents }) => write(join('assets', basename(path)), contents));
writeFileSync(join(output, 'assets/uPlot.LICENSE.txt'), read(LICENCE));

/*
 * The page names the bundles as they are called in the source tree; the icon goes into it. app.js and what it shares with
 * later.js are in one chunk, since later.js imports it: the page loads that chunk, and the entry, which only imports it,
 * is not written.
 */
const chunkOf = (source) => Object.keys(metafile.outputs).find((name) => source in metafile.outputs[name].inputs);
const named = new Map(BUNDLES.map((bundle) => [`/assets/${bundle}`, `/${chunkOf(`assets/${bundle}`)}`]));
named.set(`/${ICON}`, `data:image/svg+xml;base64,${read(ICON).toString('base64')}`);
let page = read('index.html').toString();
for (const [name, built] of named) {
    if (!page.includes(`"${name}"`)) throw new Error(`index.html does not load ${name}`);
    page = page.replace(`"${name}"`, `"${built}"`);
}
write('index.html', page);

/* The policy of a report permits what the build put into it, and nothing else. */
const report = await build({
    absWorkingDir: source,
    entryPoints: ['assets/report.css', 'assets/report.js'],
    outdir: 'assets',
    bundle: true,
    format: 'iife',
    minify: true,
    target: 'es2022',
    metafile: true,
    write: false,
    logLevel: 'warning',
});
const [style, script] = ['.css', '.js'].map(
    (ending) => report.outputFiles.find(({ path }) => path.endsWith(ending)).text,
);
if (/<\/(style|script)|<!--/i.test(style + script)) throw new Error("the report's script or style would end early");
const hashed = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const inside = {
    style,
    script,
    policy: [
        "default-src 'none'",
        `script-src ${hashed(script)}`,
        `style-src ${hashed(style)}`,
        'img-src data:',
        "base-uri 'none'",
        "form-action 'none'",
    ].join('; '),
};
writeFileSync(
    join(output, 'report.html'),
    read('report.html')
        .toString()
        .replace(/<!--build:(\w+)-->/g, (mark, name) => inside[name]),
);

const inputs = [metafile, report.metafile].flatMap((file) => Object.keys(file.inputs));
const sources = [...new Set(inputs), 'report.html', 'index.html', ICON, LICENCE].map((name) => resolve(source, name));
writeFileSync(
    join(output, 'web.d'),
    `${join(output, 'index.html')}: ${sources.map((name) => name.replaceAll(' ', '\\ ')).join(' ')}\n`,
);
