"""Curves as a picture in SVG: one line an engine, the lower axis spread towards its end, the other one logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 130, 40, 50
COLOURS = ("#c0392b", "#2471a3", "#27882c", "#8e5aa8", "#b9770e")
SHARES = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
"""Where the lower axis has marks."""

Line = Sequence[tuple[float, float]]
Place = Callable[[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Axes:
    title: str
    lower: str
    left: str


def svg(axes: Axes, lines: Mapping[str, Line]) -> str:
    """`lines`: by name, points of a share below 1 and a number above 0."""
    points = [point for line in lines.values() for point in line]
    first, last = _spread(min(x for x, _ in points)), _spread(max(x for x, _ in points))
    least, most = (math.log10(pick(y for _, y in points)) for pick in (min, max))

    def place(share: float, number: float) -> tuple[float, float]:
        across = (_spread(share) - first) / ((last - first) or 1)
        up = (math.log10(number) - least) / ((most - least) or 1)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [*_frame(axes), *_marks(place, (first, last), (least, most))]
    for number, (name, line) in enumerate(lines.items()):
        parts.extend(_curve(name, [place(x, y) for x, y in line], COLOURS[number % len(COLOURS)], number))
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"


def _spread(share: float) -> float:
    """Equal steps for 0.9, 0.99, 0.999."""
    return -math.log10(1.0005 - share)


def _frame(axes: Axes) -> Iterable[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    yield f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="black"/>'
    yield _text(LEFT, 20, axes.title, "start", 'font-weight="bold"')
    yield _text((LEFT + right) / 2, HEIGHT - 10, axes.lower)
    yield _text(0, 0, axes.left, "middle", f'transform="translate(16 {(TOP + bottom) / 2:.0f}) rotate(-90)"')


def _marks(place: Place, shares: tuple[float, float], numbers: tuple[float, float]) -> Iterable[str]:
    for share in SHARES:
        if shares[0] <= _spread(share) <= shares[1]:
            x, _ = place(share, 10 ** numbers[0])
            yield f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
            yield _text(x, HEIGHT - BOTTOM + 16, f"{share:g}")
    for power in range(math.floor(numbers[0]), math.ceil(numbers[1]) + 1):
        for step in (1, 2, 5):
            number = step * 10.0**power
            if numbers[0] <= math.log10(number) <= numbers[1]:
                _, y = place(0.9, number)
                yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                yield _text(LEFT - 6, y + 4, f"{number:,.0f}", "end")


def _curve(name: str, points: Sequence[tuple[float, float]], colour: str, number: int) -> Iterable[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    yield _text(WIDTH - RIGHT + 12, TOP + 20 + 18 * number, name, "start", f'fill="{colour}"')


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'
