# SPDX-License-Identifier: Apache-2.0
"""What a profile of weft-emulate says, by kernel and source line.

Figures are facts of the program: PTX instructions of warps, and what their addresses cost. They hold on any GPU. What depends on the GPU
is computed from its data sheet (occupancy, roofline) and named as a bound."""
import math
import re
from collections import Counter
from dataclasses import dataclass, field

PLACE = re.compile(r"(/[^\s:,;()]+|[^\s:,;()/]+\.(?:cu|cuh|h|hpp|cpp)):(\d+)")
BANKS, LANES, SECTOR = 32, 32, 32
# FP32 lanes of a multiprocessor; FP64 lanes; dense f16 flops of its tensor cores in a clock. Source: NVIDIA's architecture white papers.
UNITS = {80: (64, 32, 2048), 86: (128, 2, 1024), 89: (128, 2, 1024), 90: (128, 64, 4096), 100: (128, 64, 8192)}


@dataclass
class Access:
    """The requests to one kind of memory: of a line, or of a kernel."""
    requests: int = 0
    cost: int = 0        # sectors of global and local memory, wavefronts of shared memory
    conflicts: int = 0   # wavefronts that bank conflicts add
    bytes: int = 0       # that lanes asked for
    collisions: int = 0  # of atomics: lanes that come to an address after another lane of their warp
    worst: dict = field(default_factory=dict)  # the most expensive request: cost, bytes of a lane, at (by lane)

    def add(self, raw):
        self.requests += raw["requests"]
        self.cost += raw.get("sectors", 0) + raw.get("wavefronts", 0)
        self.conflicts += raw.get("conflicts", 0)
        self.bytes += raw["bytes"]
        self.collisions += raw.get("collisions", 0)
        if raw["worst"]["cost"] > self.worst.get("cost", 0):
            self.worst = raw["worst"]

    def join(self, other):
        self.requests += other.requests
        self.cost += other.cost
        self.conflicts += other.conflicts
        self.bytes += other.bytes
        self.collisions += other.collisions
        if other.worst.get("cost", 0) > self.worst.get("cost", 0):
            self.worst = other.worst

    @property
    def each(self):
        return self.cost / self.requests if self.requests else 0.0

    @property
    def efficiency(self):
        """Of global memory: the bytes asked for by those of the sectors fetched (nvprof's gld_efficiency and gst_efficiency)."""
        return self.bytes / (self.cost * SECTOR) if self.cost else 0.0


KINDS = ("load", "store", "atomic", "shared_load", "shared_store", "shared_atomic", "local")


@dataclass
class Line:
    """One source line, or the sum of all lines of a kernel."""
    executed: int = 0   # warp instructions
    active: int = 0     # lanes of them
    branches: int = 0   # conditional ones
    splits: int = 0     # of them, those after which lanes of the warp went apart
    barriers: int = 0   # of warps
    tensor: int = 0     # mma and wgmma
    flops: float = 0
    tensor_flops: float = 0
    bulk_bytes: int = 0  # moved by TMA
    open_waits: int = 0  # cp.async.wait_group that leave groups under way
    operations: Counter = field(default_factory=Counter)  # executions by opcode: `shfl`, `cp.async.cg`
    access: dict = field(default_factory=dict)  # keys: KINDS
    ptx: list = field(default_factory=list)     # (executed, text)

    def add(self, row):
        executed = row["executed"]
        op = row["op"].split(".")
        self.executed += 0 if row.get("free") else executed
        self.active += row.get("active", 0)
        self.bulk_bytes += row.get("bulk_bytes", 0)
        if op[0] in ("bra", "brx") and (op[0] == "brx" or row["ptx"].lstrip("{ ").startswith("@")):
            self.branches += executed
            self.splits += row.get("splits", 0)
        if op[0] in ("bar", "barrier") and "warp" not in op:
            self.barriers += executed
        self.operations[".".join(op[:3]) if op[0] == "cp" else op[0]] += executed
        if row["op"] == "cp.async.wait_group" and not re.search(r"wait_group\s+0;", row["ptx"]):
            self.open_waits += executed
        flops, on_tensor_cores = flops_of(op, row)
        if on_tensor_cores:
            self.tensor += executed
            self.tensor_flops += flops
        else:
            self.flops += flops
        for space in ("global", "shared", "local"):
            if space in row:
                self.access.setdefault(kind_of(space, row[space]), Access()).add(row[space])
        self.ptx.append((executed, row["ptx"]))

    def join(self, other):
        for name in ("executed", "active", "branches", "splits", "barriers", "tensor", "flops", "tensor_flops", "bulk_bytes",
                     "open_waits"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.operations.update(other.operations)
        for kind, access in other.access.items():
            self.access.setdefault(kind, Access()).join(access)

    @property
    def lanes(self):
        return self.active / self.executed if self.executed else 0.0

    def of(self, kind):
        return self.access.get(kind, Access())

    @property
    def conflicts(self):
        return sum(access.conflicts for access in self.access.values())


def kind_of(space, raw):
    if space == "local":
        return "local"
    what = "atomic" if raw["atomic"] else "store" if raw["write"] else "load"
    return what if space == "global" else f"shared_{what}"


def flops_of(op, row):
    """(floating point operations, whether tensor cores do them) of all executions of one PTX instruction."""
    name, executed, lanes = op[0], row["executed"], row.get("lanes", 0)
    if name in ("mma", "wmma", "wgmma") and "mma" in (name, op[1] if len(op) > 1 else "", "mma" if "mma_async" in op else ""):
        for word in op:
            if match := re.fullmatch(r"m(\d+)n(\d+)k(\d+)", word):
                m, n, k = (int(size) for size in match.groups())
                return 2.0 * m * n * k * executed / (4 if name == "wgmma" else 1), True  # a wgmma is counted by each of 4 warps
        return 0.0, False
    types = {"f32": 1, "f64": 1, "f16": 1, "bf16": 1, "f16x2": 2, "bf16x2": 2, "f32x2": 2}
    values = next((types[word] for word in op[1:] if word in types), 0)
    each = {"fma": 2, "mad": 2, "add": 1, "sub": 1, "mul": 1, "div": 1, "sqrt": 1, "rsqrt": 1, "rcp": 1, "ex2": 1, "lg2": 1, "sin": 1,
            "cos": 1, "tanh": 1, "max": 1, "min": 1}.get(name, 0)
    return float(each * values * lanes), False


@dataclass
class Occupancy:
    blocks: int       # of one multiprocessor
    warps: int
    most_warps: int
    limits: dict      # blocks that each resource allows
    by: str           # the resource that limits
    waves: float      # of the grid over the whole GPU

    @property
    def share(self):
        return self.warps / self.most_warps


def occupancy(gpu, threads, registers, shared, blocks):
    """Source: CUDA's occupancy calculator: registers are given to warps in units of 256, of which each quarter of a multiprocessor has a
    quarter; shared memory to blocks in units of 128 bytes, and 1 KiB more for the system."""
    warps = math.ceil(threads / LANES)
    per_warp = math.ceil(max(registers, 1) * LANES / 256) * 256
    limits = {
        "warps": gpu["threads_per_processor"] // LANES // warps,
        "blocks": gpu["blocks_per_processor"],
        "registers": 65536 // 4 // per_warp * 4 // warps,
        "shared memory": gpu["shared_per_processor"] // (math.ceil(shared / 128) * 128 + 1024),
    }
    by = min(limits, key=limits.get)
    resident = limits[by]
    return Occupancy(resident, resident * warps, gpu["threads_per_processor"] // LANES, limits, by,
                     blocks / (resident * gpu["processors"]) if resident else math.inf)


@dataclass
class Roofline:
    peak: float       # flops/s of the units that the kernel uses
    bandwidth: float  # bytes/s of device memory
    units: str
    flops: float
    once: int         # bytes when each sector that is touched moves once: the least
    all: int          # bytes of all requests: the most, when nothing is cached

    def bound(self, moved):
        """(flop per byte, flops/s at most)."""
        if not moved:
            return math.inf, self.peak
        return self.flops / moved, min(self.peak, self.flops / moved * self.bandwidth)

    @property
    def seconds(self):
        """No GPU of this kind can be faster: the larger of arithmetic and of memory that moves each sector once."""
        return max(self.flops / self.peak, self.once / self.bandwidth)


# Next steps for a kernel that a resource limits.
NEXT = {
    "issue": "start fewer instructions: vectors of 16 bytes, unrolled loops, indices computed once",
    "FP32": "this is the arithmetic itself: only an algorithm with less of it, or tensor cores, go further",
    "integer": "compute indices less often: move them out of loops, or step pointers",
    "FP16": "this is the arithmetic itself: tensor cores go further",
    "FP64": "use float where its digits suffice",
    "MUFU": "call exp, division and square root less often, or their fast forms",
    "tensor": "this is the arithmetic itself: types of fewer bits, or wgmma instead of mma on Hopper, go further",
    "load/store units": "load more bytes with each instruction: 8 or 16 a lane",
    "shared memory": "remove bank conflicts, and keep more values in registers",
    "L2": "use each value more often once it has been loaded: larger tiles in shared memory or registers",
    "DRAM": "move fewer bytes: full sectors, smaller types, fuse kernels that read the same",
    "atomics": "let fewer atomic operations meet: add up in registers and shared memory first, then once for a block",
    "latency": "have more in flight: more warps on a multiprocessor, independent loads before the first use, fewer barriers",
    "idle SMs": "the last wave leaves multiprocessors idle: smaller blocks, or a grid that is a multiple of a wave",
    "launch": "the launch costs more than the work: fuse launches, or use a graph",
}


@dataclass
class Wave:
    """Blocks that run at one time: of the wave `first`, or of each of the waves `first` to `last`, which are alike."""
    first: int    # from 1
    last: int
    block: int    # the first one's number
    blocks: int   # of one wave
    begin: float  # seconds from the launch
    end: float

    def loads(self, processors):
        """[(first SM, SMs, blocks of each)] of the SMs that have any. Blocks go to the SMs in turn: SM s has `block` + s, + `processors`, …"""
        each, more = divmod(self.blocks, processors)
        return [load for load in ((0, more, each + 1), (more, processors - more, each)) if load[1] and load[2]]


@dataclass
class Timeline:
    """Which blocks run at which time, as the model of time has it: waves of as many blocks as fit into the GPU, then what is left."""
    processors: int
    resident: int  # blocks of one multiprocessor at a time
    slots: int     # blocks of a full wave
    launch: float  # seconds before the first block
    waves: list    # the full ones as one, and the last, if it is not full

    @property
    def end(self):
        return self.waves[-1].end

    def apart(self, most):
        """The waves one by one; of more than `most` full ones the first, and the others as one."""
        for wave in self.waves:
            each = (wave.end - wave.begin) / (wave.last - wave.first + 1)
            cuts = [*range(wave.first, wave.last + 1)] if wave.last - wave.first < most else [wave.first, wave.first + 1]
            for first, after in zip(cuts, [*cuts[1:], wave.last + 1]):
                yield Wave(first, after - 1, wave.block + (first - wave.first) * wave.blocks, wave.blocks,
                           wave.begin + (first - wave.first) * each, wave.begin + (after - wave.first) * each)

    @property
    def idle(self):
        """The share of the SMs' time, the launch left out, in which an SM has no block."""
        idle = sum((wave.end - wave.begin) * max(0, self.processors - wave.blocks) for wave in self.waves)
        return idle / (self.processors * (self.end - self.launch))


def timeline(processors, work, seconds, limits):
    """From a launch's prediction and its line of --time-table: `idle SMs` is what the last wave takes beyond its share of a full one
    (emulator/machine/time_model.h), which gives the length of both."""
    blocks, resident, cluster = (int(float(work[name])) for name in ("blocks", "resident_blocks", "cluster_blocks"))
    slots = max(1, resident * processors // cluster) * cluster
    full, rest = divmod(blocks, slots)
    each = (seconds - limits["launch"] - limits["idle SMs"]) / (full + rest / slots)
    waves, begin = [], limits["launch"]
    if full:
        waves.append(Wave(1, full, 0, slots, begin, begin + full * each))
        begin = waves[-1].end
    if rest:
        waves.append(Wave(full + 1, full + 1, full * slots, rest, begin, seconds))
    return Timeline(processors, resident, slots, limits["launch"], waves)


@dataclass
class Prediction:
    """By weft-emulate's model of time: a launch, on average."""
    seconds: float
    limits: dict      # seconds that each resource alone would take
    timeline: Timeline  # of the first launch

    def largest(self, count=3):
        return sorted(self.limits.items(), key=lambda item: -item[1])[:count]


@dataclass
class Kernel:
    raw: dict
    lines: dict       # (file, line): Line
    total: Line
    occupancy: Occupancy
    roofline: Roofline
    registers: int
    spills: int       # bytes; None when ptxas was not there
    findings: list    # (kind, text, [(file, line)])
    sass: dict        # (file, line): [text]
    prediction: Prediction = None  # None: not predicted

    @property
    def name(self):
        return self.raw["name"].split("(")[0].removeprefix("void ")

    @property
    def launch(self):
        def sizes(values):
            return "x".join(str(v) for v in values[: max((i for i in range(3) if values[i] != 1), default=0) + 1])
        cluster = f", clusters of {sizes(self.raw['cluster'])}" if self.raw["cluster"] != [1, 1, 1] else ""
        return f"<<<{sizes(self.raw['grid'])}, {sizes(self.raw['block'])}{cluster}>>>"


def place_of(row, source):
    """The source line that an instruction counts for: the innermost in the program's own folder, else the outermost."""
    places = [(file, line) for file, line in row["at"]]
    own = [place for place in places if place[0].startswith(str(source.parent))]
    return own[0] if own else places[-1] if places else ("", 0)


def places_in(text):
    return list(dict.fromkeys((file, int(line)) for file, line in PLACE.findall(text)))


def without_folders(text):
    """A finding's text with the names of its files alone."""
    return re.sub(r"/[^\s:]*/([^\s/:]+:\d+)", r"\1", text)


def bounds(gpu, total, raw):
    scalar, _, tensor = UNITS.get(gpu["capability"], (128, 2, 1024))
    clocks = gpu["processors"] * gpu["clock_khz"] * 1e3
    on_tensor_cores = total.tensor_flops > total.flops
    moved = sum(total.of(kind).cost for kind in ("load", "store", "atomic")) * SECTOR + total.bulk_bytes
    return Roofline(tensor * clocks if on_tensor_cores else 2 * scalar * clocks, gpu["memory_clock_khz"] * 1e3 * 2 * gpu["memory_bus_bits"] / 8,
                    "tensor cores (f16)" if on_tensor_cores else "FP32 units", total.tensor_flops + total.flops,
                    raw["read_bytes"] + raw["written_bytes"], moved)


def kernels_of(profile, source):
    """The kernels of a profile as Kernel, in the order of their first launches."""
    gpu, found = profile["gpu"], []
    findings = [(told["kind"], without_folders(told["text"]), places_in(told["text"])) for told in profile["findings"]]
    for raw in profile["kernels"]:
        lines, total = {}, Line()
        for row in raw["instructions"]:
            lines.setdefault(place_of(row, source), Line()).add(row)
        for line in lines.values():
            total.join(line)
        registers, spills = profile["registers"].get(raw["mangled"], (raw["registers_estimate"], None))
        threads = math.prod(raw["block"])
        sass = {place[1:]: text for place, text in profile["sass"].items() if place[0] == raw["mangled"]}
        own = [f for f in findings if f[1].startswith(raw["name"] + " <<<") or any(place in lines for place in f[2])]
        launches = profile.get("times", {}).get((raw["mangled"], math.prod(raw["grid"]), math.ceil(threads / LANES)), [])
        limits = {name: sum(launch[1][name] for launch in launches) / len(launches) for name in launches[0][1]} if launches else {}
        prediction = Prediction(sum(launch[0] for launch in launches) / len(launches), limits,
                                timeline(gpu["processors"], launches[0][2], *launches[0][:2])) if launches else None
        found.append(Kernel(raw, lines, total, occupancy(gpu, threads, registers, raw["static_shared"] + raw["dynamic_shared"],
                                                         math.prod(raw["grid"])),
                            bounds(gpu, total, raw), registers, spills, own, sass, prediction))
    return found


def ideal(kind, worst_bytes):
    """What a full warp's request costs at least when every lane wants other bytes."""
    if kind.startswith("shared"):
        return max(1, worst_bytes * LANES // (BANKS * 4))
    return max(1, worst_bytes * LANES // SECTOR)


NAMES = {"load": "load", "store": "store", "atomic": "atomic operation", "shared_load": "shared load", "shared_store": "shared store",
         "shared_atomic": "shared atomic operation", "local": "local memory"}


def bank_lanes(access):
    """The lanes of the worst request that meet in its fullest bank."""
    by_bank = {}
    for lane, at in enumerate(access.worst["at"]):
        if at is not None:
            by_bank.setdefault(at // 4 % BANKS, {}).setdefault(at // 4, lane)
    return max(by_bank.items(), key=lambda item: len(item[1]), default=(0, {}))


def advice(line):
    """What a line's figures say, in words, each with the next thing to try."""
    said = []
    for kind in ("load", "store"):
        access = line.of(kind)
        if access.each >= 2 and access.efficiency <= 0.5:
            at = [a for a in access.worst["at"] if a is not None]
            steps = {b - a for a, b in zip(at, at[1:])}
            apart = f": neighbouring lanes are {abs(steps.pop())} bytes apart" if len(steps) == 1 else ""
            said.append(f"{kind}: {access.each:.1f} sectors per request, of whose bytes {access.efficiency:.0%} are used{apart}. "
                        "Let neighbouring lanes touch neighbouring addresses, through shared memory if need be.")
    for kind in ("shared_load", "shared_store"):
        access = line.of(kind)
        if access.requests and access.conflicts >= access.requests:
            bank, lanes = bank_lanes(access)
            listed = " ".join(str(lane) for lane in list(lanes.values())[:4]) + (" …" if len(lanes) > 4 else "")
            said.append(f"{NAMES[kind]}: {access.each:.1f} wavefronts per request: lanes {listed} want different words of bank {bank}. "
                        "Pad the rows by one word, or swizzle.")
    for kind in ("atomic", "shared_atomic"):
        access = line.of(kind)
        if access.collisions >= 4 * access.requests > 0:
            said.append(f"{NAMES[kind]}: of each warp's lanes {access.collisions / access.requests:.1f} come to an address after another one. "
                        "Add in registers or over the warp first.")
    if line.splits and line.splits * 4 > line.branches:
        said.append(f"{line.splits} of {line.branches} branches send the lanes of a warp two ways. Let whole warps decide alike.")
    local = line.of("local")
    if local.requests:
        said.append(f"local memory: {local.requests} requests: an array with indices unknown to the compiler, or registers that were spilled. "
                    "Unroll the loop that indexes it.")
    return said
