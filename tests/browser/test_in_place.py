# SPDX-License-Identifier: MIT
"""What is drawn anew every second stays the same elements: focus, selection and scrolling are the reader's."""

from test_dashboard import open_experiment


def test_the_results_grow_in_place(page, daemon):
    """Focus, selection and scrolling stay where the reader has them while rows are measured."""
    sizes = [64, 1024, 4096, 65536]
    spec = {"duration_seconds": 1, "warmup_seconds": 0, "rate": 100}
    experiment = daemon.submit(name="Grows", message_size=sizes, repetitions=2, **spec)
    open_experiment(page, experiment)
    page.wait_for("#results tbody tr")
    page.run("document.querySelector('#results').style.width = '250px'")  # less than the table is wide
    before = page.run(
        """const region = document.querySelector('#results .table');
        region.focus();
        region.scrollLeft = 40;
        getSelection().selectAllChildren(document.querySelector('#results th'));
        window.before = { region, row: document.querySelector('#results tbody tr') };
        return { runs: document.querySelector('#results tbody').textContent, scroll: region.scrollLeft,
            selected: String(getSelection()) }"""
    )
    assert before["scroll"] > 0 and before["selected"]
    page.wait(lambda: page.text("main .meta .state") == "done", "the end")
    page.wait(
        lambda: page.run("return document.querySelectorAll('#results tbody tr').length") == len(sizes), "all rows"
    )
    after = page.run(
        """const region = document.querySelector('#results .table');
        return { focused: document.activeElement === region, region: region === before.region,
            row: document.querySelector('#results tbody tr') === before.row, scroll: region.scrollLeft,
            runs: document.querySelector('#results tbody').textContent, selected: String(getSelection()) }"""
    )
    assert after.pop("runs") != before["runs"]
    assert after == {
        "focused": True,
        "region": True,
        "row": True,
        "scroll": before["scroll"],
        "selected": before["selected"],
    }


def test_patch_changes_what_differs_and_nothing_else(page):
    answer = page.call(
        """const { h, patch } = await import('/assets/dom.js');
        const clicks = [];
        const row = (name, value) => h('tr', { data: { key: name } }, h('td', { text: name }), h('td', {}, value));
        const draw = (words, rows, more) => [
            words && h('p', { class: 'caption', title: words }, words),
            h('details', {}, h('summary', {}, 'more'), h('table', {}, rows.map((one) => row(...one)))),
            more && h('button', { type: 'button', on: { click: () => clicks.push(more) } }, more),
        ];
        const parent = h('div', {});
        patch(parent, draw(null, [['a', '1'], ['b', '2']], 'first'));
        const [details, button] = parent.children;
        const [a, b] = parent.querySelectorAll('tr');
        details.open = true;
        patch(parent, draw('words', [['c', '0'], ['b', '3'], ['a', '1']], 'second'));
        button.click();
        const same = [...parent.children].slice(1);
        const rows = [...parent.querySelectorAll('tr')];
        const sameNodes = same[0] === details && same[1] === button && rows[1] === b && rows[2] === a && details.open;
        const text = parent.textContent;
        patch(parent, draw(null, [], null));
        return [sameNodes, text, clicks, parent.innerHTML]"""
    )
    html = '<details open=""><summary>more</summary><table></table></details>'
    assert answer == [True, "wordsmorec0b3a1second", ["second"], html]
