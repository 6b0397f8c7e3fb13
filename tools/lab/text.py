# SPDX-License-Identifier: Apache-2.0
"""A profile in the terminal."""
import itertools
from pathlib import Path

from . import counts

COLUMNS = [
    ("instr.", lambda l: l.executed, "{:,}"), ("lanes", lambda l: l.lanes, "{:.1f}"), ("load", lambda l: l.of("load").each, "{:.1f}"),
    ("store", lambda l: l.of("store").each, "{:.1f}"), ("sh.load", lambda l: l.of("shared_load").each, "{:.1f}"),
    ("sh.store", lambda l: l.of("shared_store").each, "{:.1f}"), ("conflicts", lambda l: l.conflicts, "{:,}"),
    ("atomics", lambda l: l.of("atomic").requests + l.of("shared_atomic").requests, "{:,}"), ("local", lambda l: l.of("local").each, "{:.1f}"),
    ("branches", lambda l: l.branches, "{:,}"), ("split", lambda l: l.splits, "{:,}"), ("tensor", lambda l: l.tensor, "{:,}"),
    ("TMA bytes", lambda l: l.bulk_bytes, "{:,}")]
FAR = 6  # lines
LEGEND = ("instr.: PTX instructions of warps; lanes: active ones of 32; load, store, local: sectors of 32 bytes per request; sh.load, sh.store: "
          "wavefronts per request; conflicts: wavefronts that bank conflicts add; split: branches after which a warp's lanes went apart")


def amount(value, unit):
    for prefix in ("", "K", "M", "G", "T", "P"):
        if abs(value) < 1000:
            return f"{value:.3g} {prefix}{unit}"
        value /= 1000
    return f"{value:.3g} E{unit}"


def facts(kernel, gpu):
    """Lines about the whole kernel."""
    raw, total, room, roof = kernel.raw, kernel.total, kernel.occupancy, kernel.roofline
    registers = f"{kernel.registers} registers{'' if kernel.spills is not None else ' (estimated)'}"
    if kernel.spills:
        registers += f", {kernel.spills} bytes of them spilled"
    yield (f"{registers}, {raw['static_shared'] + raw['dynamic_shared']:,} bytes of shared memory: {room.blocks} blocks a multiprocessor, "
           f"{room.share:.0%} of its warps, limited by {room.by}; the grid is {room.waves:.2f} waves")
    text = f"{total.executed:,} warp instructions of {total.lanes:.1f} lanes"
    for kind in ("load", "store"):
        access = total.of(kind)
        if access.requests:
            text += f"; global {kind}s: {access.each:.2f} sectors per request, {access.efficiency:.0%} of their bytes used"
    yield text
    text = []
    for kind in ("shared_load", "shared_store"):
        access = total.of(kind)
        if access.requests:
            text.append(f"{counts.NAMES[kind]}s: {access.each:.2f} wavefronts per request")
    if text:
        yield f"{'; '.join(text)}; {total.conflicts:,} wavefronts by bank conflicts"
    once, least = roof.bound(roof.once)
    every, most = roof.bound(roof.all)
    if roof.flops:
        yield (f"{amount(roof.flops, 'flop')} on {roof.units}; each sector once: {amount(roof.once, 'B')}, {once:.2f} flop/B, at most "
               f"{amount(least, 'flop/s')}; without caches: {amount(roof.all, 'B')}, {every:.2f} flop/B, at most {amount(most, 'flop/s')}")
    else:
        yield f"global memory: {amount(roof.once, 'B')} when each sector moves once, {amount(roof.all, 'B')} without caches"
    yield f"lower bound on {gpu['key']}: {roof.seconds * 1e6:.3g} µs"
    if kernel.prediction:
        largest = kernel.prediction.largest()
        parts = ", ".join(f"{name} {seconds / kernel.prediction.seconds:.0%}" for name, seconds in largest)
        yield f"predicted, not measured: {kernel.prediction.seconds * 1e6:.3g} µs a launch; if nothing overlapped: {parts}"
        yield f"next step, as {largest[0][0]} takes most: {counts.NEXT[largest[0][0]]}"


def span(first, last):
    return f"{first}" if first == last else f"{first} to {last}"


def wave_name(wave, timeline):
    tail = ", the tail" if wave.first > 1 and wave.blocks < timeline.slots else ""
    return f"wave{'s' if wave.last > wave.first else ''} {span(wave.first, wave.last)}{tail}"


def on_sms(wave, timeline):
    """How the blocks of a wave lie on the multiprocessors, in words."""
    loads = wave.loads(timeline.processors)
    said = ", ".join(f"{each} on each SM" if sms == timeline.processors else f"{each} on each of SMs {span(first, first + sms - 1)}" if sms > 1
                     else f"{each} on SM {first}" for first, sms, each in loads)
    idle = timeline.processors - sum(sms for _, sms, _ in loads)
    return said + (f"; {idle} idle" if idle else "")


BAR = 24  # characters: all SMs


def timeline_table(timeline):
    """A line for each wave: predicted begin and end, a bar of the SMs that have a block, and the blocks."""
    yield (f"waves, predicted, µs from the launch; a bar of {BAR} is all {timeline.processors} SMs; "
           f"of the SMs' time {timeline.idle:.0%} has no block")
    for wave in timeline.apart(3):
        busy = min(1, wave.blocks / timeline.processors)
        last = wave.block + (wave.last - wave.first + 1) * wave.blocks - 1
        yield (f"{wave.begin * 1e6:9.4g} to {wave.end * 1e6:<9.4g} {'#' * max(1, round(BAR * busy)):<{BAR}}  {wave_name(wave, timeline)}: "
               f"block{'s' if last > wave.block else ''} {span(wave.block, last)}, {on_sms(wave, timeline)}")


def shown_lines(kernel):
    """(file, first, last) of the source around the executed lines; far ones apart."""
    pieces = []
    for file, line in sorted(place for place in kernel.lines if place[1]):
        if pieces and pieces[-1][0] == file and line - pieces[-1][2] <= FAR:
            pieces[-1][2] = line
        else:
            pieces.append([file, line, line])
    return pieces


def source_of(file):
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def table(kernel, names=()):
    columns = [c for c in COLUMNS if any(c[1](line) for line in kernel.lines.values()) and (not names or c[0] in names)]
    head = f"{'line':>5} " + " ".join(f"{name:>9}" for name, _, _ in columns) + "  source"
    for file, first, last in shown_lines(kernel):
        source = source_of(file)
        yield f"{Path(file).name}"
        yield head
        for number in range(first, last + 1):
            line = kernel.lines.get((file, number))
            cells = [form.format(get(line)) if line and get(line) else "" for _, get, form in columns]
            text = source[number - 1] if number <= len(source) else ""
            yield (f"{number:>5} " + " ".join(f"{cell:>9}" for cell in cells) + "  " + text).rstrip()
            for kind, finding, places in kernel.findings:
                if (file, number) in places:
                    yield f"      ^ {kind}: {finding.splitlines()[0]}"


def grid(access, kind):
    """The worst request: a row for each lane, a column for each bank, or for each sector that is touched."""
    worst, shared = access.worst, kind.startswith("shared")
    at = worst["at"]
    if shared:
        yield "lane  bank 0               16             31"
        for lane, address in enumerate(at):
            row = ["."] * counts.BANKS
            for word in range(max(1, worst["bytes"] // 4)) if address is not None else []:
                row[(address // 4 + word) % counts.BANKS] = "#"
            yield f"{lane:>4}  {''.join(row)}" + (f"  byte {address}" if address is not None else "  -")
        return
    sectors = sorted({(a + b) // counts.SECTOR for a in at if a is not None for b in range(worst["bytes"])})
    yield f"lane  {len(sectors)} sectors of 32 bytes, by address"
    for lane, address in enumerate(at):
        mine = {(address + b) // counts.SECTOR for b in range(worst["bytes"])} if address is not None else set()
        yield f"{lane:>4}  {''.join('#' if s in mine else '.' for s in sectors)}" + (f"  byte {address}" if address is not None else "  -")


def details(kernel, number):
    """A line's PTX, machine code and worst requests."""
    for (file, line), found in kernel.lines.items():
        if line != number:
            continue
        yield f"{Path(file).name}:{line}"
        for executed, ptx in found.ptx:
            yield f"{executed:>9,}  {ptx}"
        for text in kernel.sass.get((file, line), []):
            yield f"     SASS  {text}"
        for kind, access in found.access.items():
            unit = "wavefronts" if kind.startswith("shared") else "sectors"
            yield (f"{counts.NAMES[kind]}: {access.requests:,} requests of {access.each:.2f} {unit}; the worst one of {access.worst['cost']}:")
            yield from grid(access, kind)


def report(profile, kernels, lines=(), columns=()):
    """The whole text of `weft-lab profile --text`; `lines`: whose details are added; `columns`: those of the table, if not all."""
    for kernel in kernels:
        launches = f"{kernel.raw['launches']} launches" if kernel.raw["launches"] != 1 else "one launch"
        yield f"{kernel.raw['name']} {kernel.launch}: {launches} on {profile['gpu']['name']}"
        for fact in facts(kernel, profile["gpu"]):
            yield f"  {fact}"
        if kernel.prediction:
            yield from (f"  {line}" for line in timeline_table(kernel.prediction.timeline))
        yield ""
        yield from table(kernel, columns)
        for (file, number), line in sorted(kernel.lines.items()):
            for said in counts.advice(line):
                yield f"  {Path(file).name}:{number}: {said}"
        for number in lines:
            yield ""
            yield from details(kernel, number)
        yield ""
    yield LEGEND
    if profile.get("error"):
        yield f"predictions: {profile['error']}"
    if profile["findings"]:
        yield ""
        yield from (f"{told['kind']}: {counts.without_folders(told['text'])}" for told in profile["findings"])


def compared(pair):
    """(kernel of the first or None, of the second or None, [(what, of the first, of the second)]): two lists of kernels, paired in order."""
    def cells(kernel):
        if kernel is None:
            return {}
        total, raw = kernel.total, kernel.raw
        made = {"warp instructions": f"{total.executed:,}", "mean active lanes": f"{total.lanes:.1f}"}
        for kind, unit in (("load", "sectors"), ("store", "sectors"), ("atomic", "sectors"), ("shared_load", "wavefronts"),
                           ("shared_store", "wavefronts"), ("local", "sectors")):
            access = total.of(kind)
            made[f"{counts.NAMES[kind]}: requests"] = f"{access.requests:,}" if access.requests else "-"
            made[f"{counts.NAMES[kind]}: {unit} per request"] = f"{access.each:.2f}" if access.requests else "-"
            if kind in ("load", "store"):
                made[f"{counts.NAMES[kind]}: bytes used"] = f"{access.efficiency:.0%}" if access.requests else "-"
        made["wavefronts by bank conflicts"] = f"{total.conflicts:,}"
        made["branches"] = f"{total.branches:,}"
        made["branches that split a warp"] = f"{total.splits:,}"
        made["barriers (of warps)"] = f"{total.barriers:,}"
        made["flops"] = f"{total.flops + total.tensor_flops:,.0f}"
        made["registers"] = str(kernel.registers)
        made["shared memory of a block"] = f"{raw['static_shared'] + raw['dynamic_shared']:,}"
        made["occupancy"] = f"{kernel.occupancy.share:.0%} ({kernel.occupancy.by})"
        made["bytes, each sector once"] = f"{kernel.roofline.once:,}"
        made["bytes of all requests"] = f"{kernel.roofline.all:,}"
        if kernel.prediction:
            made["predicted µs"] = f"{kernel.prediction.seconds * 1e6:.3g} ({kernel.prediction.largest()[0][0]})"
        made["findings"] = str(len(kernel.findings))
        return made
    for left, right in itertools.zip_longest(*pair):
        a, b = cells(left), cells(right)
        rows = [(row, a.get(row, "-"), b.get(row, "-")) for row in a or b]
        yield left, right, [row for row in rows if any(value not in ("-", "0") for value in row[1:])]


def comparison(names, pair, gpu):
    """Two lists of kernels side by side."""
    for left, right, rows in compared(pair):
        yield f"{'on ' + gpu['key']:<36} {names[0]:>24} {names[1]:>24}"
        yield f"{'kernel':<36} {left.name if left else '-':>24} {right.name if right else '-':>24}"
        yield f"{'launch':<36} {left.launch if left else '-':>24} {right.launch if right else '-':>24}"
        for row, first, second in rows:
            yield f"{row:<36} {first:>24} {second:>24}" + ("" if first == second else "  *")
        yield ""
