# SPDX-License-Identifier: Apache-2.0
"""A profile as one HTML page that needs nothing else."""
import math
from html import escape
from pathlib import Path

from . import counts, text

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5em auto; max-width: 1500px; padding: 0 1em; color: #1b1f24; background: #fff; }
.wide { overflow-x: auto; } .advice, .finding { max-width: 62em; }
h1 { font-size: 1.4em; } h2 { font-size: 1.15em; margin-top: 2em; } h2 small { font-weight: normal; color: #57606a; }
table.source { border-collapse: collapse; width: 100%; } .source th { text-align: right; font-weight: 600; font-size: 12px; color: #57606a;
border-bottom: 1px solid #d0d7de; padding: 2px 8px; vertical-align: bottom; } .source th:last-child { text-align: left; }
.source td { text-align: right; padding: 0 8px; font: 12.5px/1.5 ui-monospace, monospace; vertical-align: top; white-space: nowrap; }
.source td.code { text-align: left; white-space: normal; width: 100%; } .code summary, .code code, .inside pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; } .source tr:hover { background: #f6f8fa; }
td.bad { background: #ffd8d3; font-weight: 600; } td.good { background: #dafbe1; } .number { color: #8c959f; }
summary { cursor: pointer; } .inside { padding: 4px 0 10px 2em; } .inside pre { margin: 4px 0; color: #0550ae; } .sass { color: #6639ba !important; }
table.pair { width: auto; } .pair td:first-child { text-align: left; } .pair th:last-child { text-align: right; } td.differs { background: #fff3c4; }
.sides { display: flex; gap: 2em; } .sides > div { flex: 1 1 0; min-width: 0; }
.finding { color: #a40e26; white-space: normal; font-family: system-ui, sans-serif; } .advice { color: #7d4e00; white-space: normal;
font-family: system-ui, sans-serif; } .charts { display: flex; flex-wrap: wrap; gap: 2em; align-items: flex-start; } ul.facts { padding-left: 1.2em; }
svg text { font: 11px system-ui, sans-serif; fill: #57606a; } .legend { color: #57606a; font-size: 12px; }
@media (prefers-color-scheme: dark) { body { background: #0d1117; color: #e6edf3; } .source tr:hover { background: #161b22; }
td.differs { background: #4d3b00; } td.bad { background: #67060c; } td.good { background: #033a16; } .inside pre { color: #79c0ff; } .sass { color: #d2a8ff !important; }
.finding { color: #ff7b72; } .advice { color: #e3b341; } svg text { fill: #8b949e; } }
"""
CELL, LEFT, TOP = 11, 34, 18
COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#9c755f", "#86bcb6"]
CELLS = (f"<defs><pattern id='cells' width='{CELL}' height='{CELL}' patternUnits='userSpaceOnUse'>"
         f"<rect width='{CELL - 1}' height='{CELL - 1}' fill='#eaeef2'/></pattern></defs>")


def grid_svg(access, kind):
    """The worst request as lanes (rows) by banks or sectors (columns)."""
    worst, shared = access.worst, kind.startswith("shared")
    at = worst["at"]
    if shared:
        columns = list(range(counts.BANKS))
        touched = [[((a // 4 + w) % counts.BANKS, a // 4 + w) for w in range(max(1, worst["bytes"] // 4))] if a is not None else [] for a in at]
        by_bank = {}
        for row in touched:
            for bank, word in row:
                by_bank.setdefault(bank, set()).add(word)
        crowded = {bank for bank, words in by_bank.items() if len(words) > max(1, worst["bytes"] // 4)}
    else:
        spans = [range(a // counts.SECTOR, (a + worst["bytes"] - 1) // counts.SECTOR + 1) if a is not None else () for a in at]
        columns = sorted({s for span in spans for s in span})
        touched = [[(columns.index(s), s) for s in span] for span in spans]
        crowded = set()
    width, height = CELL * len(columns), CELL * 32
    title = "bank" if shared else "sector of 32 bytes, by address"
    out = [f'<svg width="{LEFT + max(width, 200) + 8}" height="{TOP + height + 6}" role="img" aria-label="lanes by {title}">',
           f'<text x="{LEFT}" y="11">{title} →</text><text x="0" y="11">lane</text>',
           f'<g transform="translate({LEFT},{TOP})"><rect width="{width}" height="{height}" fill="url(#cells)"/>']
    cells = {}  # keys: colours; a path each
    for lane in range(32):
        for column, word in touched[lane]:
            colour = "#cf222e" if column in crowded else COLOURS[word // (counts.BANKS if shared else 1) % len(COLOURS)]
            cells.setdefault(colour, []).append(f"M{CELL * column} {CELL * lane}h{CELL - 1}v{CELL - 1}h{1 - CELL}z")
    out += [f'<path fill="{colour}" d="{"".join(dict.fromkeys(path))}"/>' for colour, path in cells.items()]
    out.append("</g>" + "".join(f'<text x="4" y="{TOP + CELL * lane + 9}">{lane}</text>' for lane in range(0, 32, 4)))
    if shared:
        out += [f'<text x="{LEFT + CELL * bank}" y="11">{bank}</text>' for bank in (8, 16, 24, 31)]
    return "".join(out) + "</svg>"


def image(drawing):
    """A drawing as an SVG file of its own."""
    style = "<style>text { font: 11px sans-serif; fill: #57606a; }</style>"
    head, rest = drawing.split(">", 1)
    return f'<svg xmlns="http://www.w3.org/2000/svg"{head.removeprefix("<svg")}>{style}{CELLS}{rest}\n'


def roofline_svg(kernel):
    roof = kernel.roofline
    width, height, left, bottom = 464, 250, 70, 30
    low_x, high_x = -3.0, 4.0
    top = math.ceil(math.log10(roof.peak))
    low_y = top - 6

    def x(intensity):
        return left + (min(max(math.log10(max(intensity, 1e-9)), low_x), high_x) - low_x) / (high_x - low_x) * (width - left - 14)

    def y(rate):
        return height - bottom - (min(max(math.log10(max(rate, 1.0)), low_y), top) - low_y) / (top - low_y) * (height - bottom - 12)

    ridge = roof.peak / roof.bandwidth
    out = [f'<svg width="{width}" height="{height}" role="img" aria-label="roofline">']
    for power in range(int(low_x), int(high_x) + 1):
        out.append(f'<text x="{x(10.0 ** power)}" y="{height - 14}" text-anchor="middle">{"1" if power == 0 else f"1e{power}"}</text>')
    for power in range(low_y, top + 1):
        out.append(f'<text x="2" y="{y(10.0 ** power) + 4}">{text.amount(10.0 ** power, "flop/s")}</text>')
    out.append(f'<text x="{width - 90}" y="{height - 2}">flop per byte</text>')
    points = f"{x(10 ** low_x)},{y(10 ** low_x * roof.bandwidth)} {x(ridge)},{y(roof.peak)} {x(10 ** high_x)},{y(roof.peak)}"
    out.append(f'<polyline points="{points}" fill="none" stroke="#57606a" stroke-width="2"/>')
    out.append(f'<text x="{width - 10}" y="{height - bottom - 42}" text-anchor="end">{escape(roof.units)}: {text.amount(roof.peak, "flop/s")}; '
               f'{text.amount(roof.bandwidth, "B/s")}</text>')
    for moved, colour, name in ((roof.once, "#1a7f37", "each sector once"), (roof.all, "#cf222e", "without caches")):
        intensity, rate = roof.bound(moved)
        out.append(f'<circle cx="{x(intensity)}" cy="{y(rate)}" r="5" fill="{colour}"><title>{name}: {intensity:.3g} flop/B, at most '
                   f'{text.amount(rate, "flop/s")}</title></circle>')
    out.append(f'<text x="{width - 130}" y="{height - bottom - 26}" style="fill:#1a7f37">● each sector once</text>'
               f'<text x="{width - 130}" y="{height - bottom - 12}" style="fill:#cf222e">● without caches</text>')
    return "".join(out) + "</svg>"


def occupancy_svg(kernel):
    room = kernel.occupancy
    out = [f'<svg width="420" height="{24 * len(room.limits) + 24}" role="img" aria-label="occupancy">',
           '<text x="0" y="12">blocks a multiprocessor that each resource allows</text>']
    most = max(room.limits.values()) or 1
    for row, (name, blocks) in enumerate(room.limits.items()):
        y = 22 + 24 * row
        out.append(f'<text x="0" y="{y + 13}">{name}</text><rect x="100" y="{y}" width="{max(2, 270 * blocks / most):.0f}" height="17" '
                   f'fill="{"#cf222e" if name == room.by else "#afb8c1"}"/><text x="{106 + max(2, 270 * blocks / most):.0f}" y="{y + 13}">{blocks}</text>')
    return "".join(out) + "</svg>"


def timeline_svg(kernel):
    """The blocks of the first launch: a row for each SM, predicted time to the right."""
    line = kernel.prediction.timeline
    left, top, width, row = 52, 20, 560, max(2, 264 // line.processors)
    height = row * line.processors

    def x(seconds):
        return left + width * seconds / line.end

    out = [f'<svg width="{left + width + 50}" height="{top + height + 34}" role="img" aria-label="timeline">',
           f'<text x="0" y="12">SM</text><text x="{left}" y="12">predicted: which blocks run when; {line.idle:.0%} of the SMs&#39; time has no block</text>',
           f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#afb8c1"/>',
           f'<rect x="{left}" y="{top}" width="{x(line.launch) - left:.1f}" height="{height}" fill="#afb8c1"><title>launch</title></rect>']
    out += [f'<text x="4" y="{top + row * sm + 9}">{sm}</text>' for sm in range(0, line.processors, max(1, line.processors // 6))]
    waves = list(line.apart(8))
    for number, wave in enumerate(waves):
        begin, end = x(wave.begin), x(wave.end)
        for first, sms, each in wave.loads(line.processors):
            name = text.wave_name(wave, line)
            if wave.last == wave.first:
                name += f", SMs {text.span(first, first + sms - 1)}: SM s runs block {f'{wave.block} + ' if wave.block else ''}s" + (
                    f" + {line.processors} k, k = {text.span(0, each - 1)}" if each > 1 else "")
            out.append(f'<rect x="{begin:.1f}" y="{top + row * first}" width="{max(0.5, end - begin - 0.7):.1f}" height="{row * sms}" '
                       f'fill="{COLOURS[number % len(COLOURS)]}"><title>{name}; {wave.begin * 1e6:.3g} to {wave.end * 1e6:.3g} µs</title></rect>')
        if end - begin > 60:
            out.append(f'<text x="{begin + 4:.1f}" y="{top + height + 12}">{text.wave_name(wave, line)}</text>')
    # Ends of waves, without labels that would overlap.
    free = 0.0
    for seconds in [0.0, *(wave.begin for wave in waves), line.end]:
        if x(seconds) >= free:
            out.append(f'<text x="{x(seconds):.1f}" y="{top + height + 26}">{seconds * 1e6:.3g}</text>')
            free = x(seconds) + 36
    return "".join(out) + f'<text x="{left + width + 26}" y="{top + height + 12}">µs</text></svg>'


CHARTS = {"occupancy": occupancy_svg, "roofline": roofline_svg, "timeline": timeline_svg}


def judged(kind, line):
    """The class of a cell of sectors or wavefronts per request."""
    access = line.of(kind)
    if not access.requests:
        return ""
    least = counts.ideal(kind, access.worst["bytes"])
    return "bad" if access.each > 2 * least else "good" if access.each <= 1.001 * least else ""


JUDGED = {"load": "load", "store": "store", "sh.load": "shared_load", "sh.store": "shared_store"}


def source_table(kernel):
    columns = [c for c in text.COLUMNS if any(c[1](line) for line in kernel.lines.values())]
    for file, first, last in text.shown_lines(kernel):
        source = text.source_of(file)
        yield f"<h3>{escape(Path(file).name)}</h3><div class='wide'><table class='source'><tr><th>line</th>"
        yield "".join(f"<th>{escape(name)}</th>" for name, _, _ in columns) + "<th>source (a click shows PTX and the worst request)</th></tr>"
        for number in range(first, last + 1):
            line = kernel.lines.get((file, number))
            code = escape(source[number - 1] if number <= len(source) else "") or " "
            yield f"<tr><td class='number'>{number}</td>"
            for name, get, form in columns:
                value = form.format(get(line)) if line and get(line) else ""
                kind = judged(JUDGED[name], line) if line and name in JUDGED else "bad" if value and name in ("conflicts", "split", "local") else ""
                yield f"<td class='{kind}'>{value}</td>"
            if line is None:
                yield f"<td class='code'><code>{code}</code></td></tr>"
                continue
            yield f"<td class='code'><details><summary>{code}</summary><div class='inside'>"
            yield "<pre>" + "\n".join(escape(f"{executed:>9,}  {ptx}") for executed, ptx in line.ptx) + "</pre>"
            if sass := kernel.sass.get((file, number)):
                yield "<pre class='sass'>" + "\n".join(escape(one) for one in sass) + "</pre>"
            for kind, access in line.access.items():
                unit = "wavefronts" if kind.startswith("shared") else "sectors"
                yield (f"<p class='legend'>{counts.NAMES[kind]}: {access.requests:,} requests of {access.each:.2f} {unit}; "
                       f"the worst one, of {access.worst['cost']}:</p>{grid_svg(access, kind)}")
            yield "</div></details>"
            for said in counts.advice(line):
                yield f"<div class='advice'>{escape(said)}</div>"
            for kind, finding, places in kernel.findings:
                if (file, number) in places:
                    yield f"<div class='finding'>{escape(kind)}: {escape(finding)}</div>"
            yield "</td></tr>"
        yield "</table></div>"


def head(profile, title):
    """The beginning of a page, with what was found in the runs of all of it."""
    cells = f"<svg width='0' height='0' style='position:absolute'>{CELLS}</svg>"
    yield f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>{escape(title)}</title><style>{STYLE}</style>{cells}"
    yield f"<h1>{escape(title)} on {escape(profile['gpu']['name'])}</h1>"
    yield ("<p class='legend'>Counts of an emulated run: facts of the program. Occupancy and roofline follow from the GPU's data sheet; they bound its "
           f"time. Predictions are those of a model of time{': ' + escape(profile['error']) if profile.get('error') else ''}.</p>")


FOOT = f"<p class='legend'>{escape(text.LEGEND)}. Red: more than twice what the request needs at least; green: the least.</p></html>"


def page(profile, kernels, title):
    """The text of the page."""
    gpu, out = profile["gpu"], list(head(profile, title))
    if profile["findings"]:
        out.append("<h2>Findings</h2><ul>" + "".join(f"<li class='finding'>{escape(told['kind'])}: {escape(counts.without_folders(told['text']))}</li>"
                                                    for told in profile["findings"]) + "</ul>")
    for kernel in kernels:
        times = f"{kernel.raw['launches']} launches" if kernel.raw["launches"] != 1 else "one launch"
        out.append(f"<h2>{escape(kernel.name)} <small>{escape(kernel.launch)}, {times}</small></h2><ul class='facts'>")
        out += [f"<li>{escape(fact)}</li>" for fact in text.facts(kernel, gpu)]
        out.append(f"</ul><div class='charts'>{occupancy_svg(kernel)}{roofline_svg(kernel) if kernel.roofline.flops else ''}"
                   f"{timeline_svg(kernel) if kernel.prediction else ''}</div>")
        out += source_table(kernel)
    return "\n".join([*out, FOOT])


def comparison(profile, names, pair):
    """The text of a page with two programs' kernels side by side, in pairs by their order: counts, what differs of them marked, then the sources."""
    out = list(head(profile, f"{names[0]} and {names[1]}"))
    for left, right, rows in text.compared(pair):
        both = [kernel for kernel in (left, right) if kernel]
        out.append(f"<h2>{escape(' and '.join(dict.fromkeys(kernel.name for kernel in both)))}</h2><table class='source pair'><tr><th></th>"
                   + "".join(f"<th>{escape(name)}</th>" for name in names) + "</tr>")
        for row, *values in [("kernel", *(kernel.name if kernel else "-" for kernel in (left, right))),
                             ("launch", *(kernel.launch if kernel else "-" for kernel in (left, right))), *rows]:
            mark = "" if values[0] == values[1] else " class='differs'"
            out.append(f"<tr><td>{escape(row)}</td>" + "".join(f"<td{mark}>{escape(value)}</td>" for value in values) + "</tr>")
        out.append("</table><div class='sides'>")
        for kernel in both:
            out += ["<div>", *source_table(kernel), "</div>"]
        out.append("</div>")
    return "\n".join([*out, FOOT])
