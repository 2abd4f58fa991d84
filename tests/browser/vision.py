# SPDX-License-Identifier: MIT
"""Colours as people see them: colour vision deficiency simulated, and how far two colours are apart."""

from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
VISIONS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)  # D65


def linear(colour):
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def product(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def lab(colour, vision="normal"):
    """CIELAB of "#rrggbb" as that vision sees it."""
    seen = [min(max(c, 0), 1) for c in product(VISIONS[vision], linear(colour))]
    ratios = [part / white for part, white in zip(product(XYZ, seen), WHITE, strict=True)]
    x, y, z = (r ** (1 / 3) if r > 216 / 24389 else (24389 / 27 * r + 16) / 116 for r in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def delta_e(one, other):
    """CIEDE2000 of two CIELAB colours (Sharma, Wu and Dalal, 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * sqrt(mean**7 / (mean**7 + 25**7))
    a1, a2 = a1 * stretch, a2 * stretch
    c1, c2 = hypot(a1, b1), hypot(a2, b2)
    h1, h2 = degrees(atan2(b1, a1)) % 360, degrees(atan2(b2, a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0
    dl, dc, dh = l2 - l1, c2 - c1, 2 * sqrt(c1 * c2) * sin(radians(turn / 2))
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    hue = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = 1 - 0.17 * cos(radians(hue - 30)) + 0.24 * cos(radians(2 * hue))
    t += 0.32 * cos(radians(3 * hue + 6)) - 0.2 * cos(radians(4 * hue - 63))
    sl = 1 + 0.015 * (lightness - 50) ** 2 / sqrt(20 + (lightness - 50) ** 2)
    sc, sh = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    rotation = -2 * sqrt(chroma**7 / (chroma**7 + 25**7)) * sin(radians(60 * exp(-(((hue - 275) / 25) ** 2))))
    return sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rotation * dc / sc * dh / sh)
