"""A picture of one turn's trace: `python -m tests.benchmarks.trace_picture [FILE]`, by default examples/trace.svg.

An AssistantAgent with memory at a served engine, a scripted model, every span recorded. Needs the extra `dev`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import anyio
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind

from tests.packs.frameworks import AgentChat
from tests.services.in_process import served_in_process
from tests.tracing.recorder import PROVIDER, RECORDER, names

PICTURE = Path(__file__).parent.parent.parent / "examples" / "trace.svg"
TURN, ROW, LEFT, WIDTH = "invoke_agent helper", 26, 380, 400
TURNS = 12
"""The shortest of so many is drawn."""
COLOURS = {"framework": "#94a3b8", "client": "#2563eb", "server": "#7c3aed", "engine": "#059669"}


async def turns(url: str) -> list[list[ReadableSpan]]:
    """The spans of each turn: the first ones load what later ones find loaded, and the machine is not always free."""
    memory, found = AgentChat("ada", url, 30.0), list[list[ReadableSpan]]()
    for _ in range(TURNS):
        RECORDER.clear()
        await memory.turn("Please book the dinner.", ("remember", {"content": "Ada is allergic to peanuts"}), "Booked.")
        spans = RECORDER.wait(lambda spans: TURN in names(spans))
        found.append(under(next(one for one in spans if one.name == TURN), spans))
    await memory.close()
    return found


def under(span: ReadableSpan, spans: Sequence[ReadableSpan]) -> list[ReadableSpan]:
    """A span and all below it, parents before children, in the order of their starts."""
    children = [one for one in spans if one.parent and one.parent.span_id == span.context.span_id]
    ordered = sorted(children, key=lambda one: one.start_time or 0)
    return [span, *(inner for child in ordered for inner in under(child, spans))]


def depth(span: ReadableSpan, by_id: dict[int, ReadableSpan]) -> int:
    """How many spans stand above it."""
    parent = by_id.get(span.parent.span_id) if span.parent else None
    return 0 if parent is None else 1 + depth(parent, by_id)


def layer(span: ReadableSpan) -> str:
    """Who made it."""
    if span.instrumentation_scope is None or span.instrumentation_scope.name != "kronmem":
        return "framework"
    return {SpanKind.SERVER: "server", SpanKind.CLIENT: "client"}.get(span.kind, "engine")


def drawn(spans: Sequence[ReadableSpan]) -> str:
    """The trace as bars under each other, each from its start to its end."""
    began, ended = spans[0].start_time or 0, max(one.end_time or 0 for one in spans)
    scale = WIDTH / (ended - began)
    by_id = {one.context.span_id: one for one in spans}
    rows: list[str] = []
    for at, span in enumerate(spans):
        start, end = (span.start_time or 0) - began, (span.end_time or 0) - began
        y, x = 40 + ROW * at, LEFT + start * scale
        rows.append(
            f'<text x="{12 + 16 * depth(span, by_id)}" y="{y + 13}">{escape(span.name)}</text>'
            f'<rect x="{x:.1f}" y="{y}" width="{max(2.0, (end - start) * scale):.1f}" height="17" rx="3"'
            f' fill="{COLOURS[layer(span)]}"/>'
            f'<text x="{LEFT + WIDTH + 8}" y="{y + 13}">{(end - start) / 1e6:.1f} ms</text>'
        )
    height = 52 + ROW * len(spans)
    legend = "".join(
        f'<rect x="{12 + 120 * at}" y="12" width="12" height="12" rx="2" fill="{colour}"/>'
        f'<text x="{30 + 120 * at}" y="22">{name}</text>'
        for at, (name, colour) in enumerate(COLOURS.items())
    )
    size = f'viewBox="0 0 {LEFT + WIDTH + 80} {height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{legend}{"".join(rows)}</svg>\n'
    )


def main() -> None:
    """Run the turn, write the picture and print the tree."""
    os.environ["KRONMEM_HOME"] = tempfile.mkdtemp()
    trace.set_tracer_provider(PROVIDER)
    with served_in_process() as url:
        spans = min(anyio.run(turns, url), key=lambda one: (one[0].end_time or 0) - (one[0].start_time or 0))
    picture = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    picture.write_text(drawn(spans), "utf-8")
    by_id = {one.context.span_id: one for one in spans}
    for span in spans:
        print(f"{'  ' * depth(span, by_id)}{span.name} ({layer(span)})")
    print(f"wrote {picture}")


if __name__ == "__main__":
    main()
