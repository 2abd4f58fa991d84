# SPDX-License-Identifier: MIT
"""What axe-core finds wrong with a page."""

from pathlib import Path

SOURCE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"


def violations(page):
    """[(rule, elements)] of the page as it stands, of WCAG 2.2 A and AA and of what axe calls good practice."""
    if page.run("return window.axe === undefined"):
        page.run(SOURCE.read_text() + "; window.axe = axe")
    found = page.call(
        """const { violations } = await window.axe.run();
        return violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 160))])"""
    )
    return [tuple(one) for one in found]
