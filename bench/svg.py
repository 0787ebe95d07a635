"""This module draws the benchmark's two plots as SVG: bars of ratios, and lines of the cost along the stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#33658a", "#f26419", "#2f7f4f", "#8d6a9f", "#c0392b", "#7a7a7a", "#b8860b", "#1b998b")
WIDTH = 720
LEFT = 170
FONT = 'font-family="sans-serif" font-size="12"'


def _svg(height: int, body: Sequence[str]) -> str:
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>'
    return "\n".join([opening, f'<rect width="{WIDTH}" height="{height}" fill="white"/>', *body, "</svg>\n"])


def _text(x: float, y: float, text: str, anchor: str = "start", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(text)}</text>'


def bars(title: str, values: Mapping[str, float], aim: float) -> str:
    """One bar for each value, with a line at the aim; what is far beyond it is cut off and says so."""
    most = min(max([*values.values(), aim]) * 1.1, aim * 4)
    scale = (WIDTH - LEFT - 70) / most
    height = 40 + 22 * len(values) + 24
    body = [_text(10, 22, title, extra=' font-weight="bold"')]
    for k, (name, value) in enumerate(values.items()):
        y = 40 + 22 * k
        width = min(value, most) * scale
        colour = COLOURS[0] if value <= aim else COLOURS[1]
        body.append(_text(LEFT - 8, y + 12, name, "end"))
        body.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="16" fill="{colour}"/>')
        body.append(_text(LEFT + width + 5, y + 12, f"{value:.1f}" if value < 100 else f"{value:,.0f}"))
    at = LEFT + aim * scale
    body.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="32" y2="{height - 22}" stroke="#555" stroke-dasharray="4 3"/>')
    body.append(_text(at, height - 8, f"aim: {aim:g}", "middle"))
    return _svg(height, body)


def lines(title: str, series: Mapping[str, Sequence[float]], unit: str) -> str:
    """One line for each series, all over the same width."""
    most = max((max(values, default=0.0) for values in series.values()), default=0.0) * 1.05 or 1.0
    top, bottom, right = 40, 300, WIDTH - 220
    body = [_text(10, 22, title, extra=' font-weight="bold"')]
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * (bottom - top)
        body.append(f'<line x1="50" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        body.append(_text(45, y + 4, f"{share * most:.2g}", "end"))
    body.append(_text(50, bottom + 18, f"begin of the stream ({unit})"))
    body.append(_text(right, bottom + 18, "end", "end"))
    for k, (name, values) in enumerate(series.items()):
        colour = COLOURS[k % len(COLOURS)]
        dashes = ("", ' stroke-dasharray="5 3"', ' stroke-dasharray="2 2"')[k // len(COLOURS) % 3]
        step = (right - 50) / max(len(values) - 1, 1)
        points = " ".join(
            f"{50 + step * n:.1f},{bottom - min(v / most, 1.0) * (bottom - top):.1f}" for n, v in enumerate(values)
        )
        body.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>')
        y = top + 16 * k
        body.append(
            f'<line x1="{right + 10}" x2="{right + 28}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"{dashes}/>'
        )
        body.append(_text(right + 33, y + 4, name))
    return _svg(max(bottom + 30, top + 16 * len(series)), body)
