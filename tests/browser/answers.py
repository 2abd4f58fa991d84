# SPDX-License-Identifier: MIT
"""Answers in the daemon's stead: documents of its routes, with bodies that a test has made up, which are also in the
document that has several of them, GET /host."""

import json

# Runs before the page's own code. A target is a path with its query, or without one for any.
ANSWER = """(() => {
    const given = %s;
    const real = window.fetch;
    window.requests = [];
    const found = (path) => given[path] ?? given[path.split('?')[0]];
    window.fetch = async (target, options = {}) => {
        requests.push([options.method ?? 'GET', target, options.body ?? null]);
        const answer = found(target);
        if (answer === undefined) {
            const response = await real(target, options);
            if (!['/openapi.json', '/host'].includes(target)) return response;
            const document = await response.json();
            if (target === '/host') {
                const parts = Object.keys(document).filter((name) => found(`/${name}`));
                for (const name of parts) document[name] = found(`/${name}`).body;
                return new Response(JSON.stringify(document), { status: response.status });
            }
            for (const [path, names] of Object.entries(given.routes ?? {})) {
                const get = document.paths[path]?.get ?? {};
                const parameters = [...(get.parameters ?? []), ...names.map((name) => ({ name }))];
                document.paths[path] = { ...document.paths[path], get: { ...get, parameters } };
            }
            return new Response(JSON.stringify(document));
        }
        const { status = 200, body } = answer;
        return new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } });
    };
})()"""


class Answers:
    """What a driver's pages are given from the next load on, until remove()."""

    def __init__(self, driver, routes, **answers):
        self.driver = driver
        given = {target: answer if "body" in answer else {"body": answer} for target, answer in answers.items()}
        source = ANSWER % json.dumps(given | {"routes": routes})
        self.script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})["identifier"]

    def remove(self):
        self.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": self.script})
