#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_programs.py [--device cpu] [--dtype f32] [--programs 400] [--seed 1] COMMAND…: random programs of views, ops and gradients give PyTorch's
numbers. COMMAND is build/bin/run_programs, perhaps behind weft-emulate. A program that differs is printed, with its seed; ends with 77
where Python has no PyTorch."""
import argparse
import os
import random
import subprocess
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    if python := os.environ.pop("WEFT_TORCH_PYTHON", None):
        os.execv(python, [python, *sys.argv])
    print("SKIPPED: random_programs: no PyTorch here. pip install torch, and name its python in WEFT_TORCH_PYTHON")
    sys.exit(77)

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import torch_calls as calls  # pylint: disable=wrong-import-position

# Rows of kernels/contracts/unary_table.h without jumps, whose results stay small.
UNARY = "neg abs sin cos relu sigmoid tanh erf silu softplus mish gelu".split()
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": lambda a, b: a / (b.abs() + 1.5), "maximum": torch.maximum,
          "minimum": torch.minimum}
REDUCTIONS = {"sum": calls.sum, "mean": calls.mean, "max": calls.max, "min": calls.min, "logsumexp": calls.logsumexp, "norm": calls.norm,
              "var": lambda x, dims, keep: x.var(dims, unbiased=False, keepdim=keep)}
MOST_ELEMENTS = 3000


class Drawn:
    """What is drawn and runs with PyTorch, in f64. `lines` are what the C++ program reads, `expected` what it has to print."""

    def __init__(self, seed, dtype):
        self.random, self.tensors, self.leaves, self.lines, self.expected = random.Random(seed), {}, [], [f"program {seed}"], {}
        self.dtype, self.twice = dtype, False
        self.type = torch.float64
        torch.manual_seed(seed)

    def keep(self, x):
        self.tensors[len(self.tensors) + 1] = x
        return len(self.tensors)

    def given(self, kind, x):
        if x.is_floating_point():
            x = (x.float() if self.dtype == "f32" else x).to(self.type).requires_grad_(kind == "leaf")
        number = self.keep(x)
        counted = [x.dim(), *x.shape, x.numel(), *x.detach().flatten().tolist()]
        self.lines.append(f"{kind} {number} " + " ".join(map(repr, counted)))
        return number

    def leaf(self, shape=None, kind="leaf"):
        if shape is None:
            shape = [self.random.choice([1, 1, 2, 3, 4, 5]) for _ in range(self.random.randint(0, 4))]
        number = self.given(kind, torch.randn(list(shape), dtype=torch.float64))
        if kind == "leaf":
            self.leaves.append(number)
        return number

    def positions(self, shape, size):
        return self.given("integers", torch.randint(0, size, list(shape)))

    def op(self, name, result, tensors, numbers=()):
        number = self.keep(result)
        words = [name, number, len(tensors), *tensors, len(numbers), *(x if isinstance(x, float) else int(x) for x in numbers)]
        self.lines.append(" ".join(map(str, words)))
        self.expected[f"value {number}"] = result
        return number

    def backward(self, number, gradient, twice=False):
        """`twice`: of the sum of the squared gradients."""
        y, dy = self.tensors[number], self.tensors[gradient]
        self.twice |= twice
        if twice:
            first = torch.autograd.grad(y, [self.tensors[leaf] for leaf in self.leaves], dy, create_graph=True, allow_unused=True)
            y, dy = sum((g.square().sum() for g in first if g is not None), torch.zeros((), dtype=self.type)), None
        if y.requires_grad:
            y.backward(dy)
        self.lines.append(f"backward {int(twice)} 2 {number} {gradient}")
        self.expected |= {f"gradient {leaf}": self.tensors[leaf].grad for leaf in self.leaves}
        self.leaves.clear()

    def allowed(self, _label, expected):
        """The largest error of an element."""
        scale = max(1.0, expected.abs().max().item() if expected.numel() else 0)
        return scale * (1e-9 if self.dtype == "f64" else 3e-4)

    def wrong(self, label, got):
        """What is wrong with a result, None where there is none of it; or None."""
        if label not in self.expected:
            return f"{label}: not expected"
        expected = self.expected[label]
        if self.twice and got is None and expected is not None and not expected.any():
            return None  # straight lines, as relu's, have no second derivative; PyTorch's is 0
        if got is None or expected is None:
            return f"{label}: {'defined' if expected is None else 'none'}" if got is not expected else None
        expected = expected.detach().double()
        if got.shape != expected.shape:
            return f"{label}: sizes {list(got.shape)}, expected {list(expected.shape)}"
        allowed, error = self.allowed(label, expected), (got - expected).abs()
        if not bool((error <= allowed).all()):
            return f"{label}: differs by {error.max().item():.3g}, allowed are {allowed:.3g}"
        return None

    def difference(self, printed):
        """What is wrong with the lines that the C++ program printed, or None."""
        seen = set()
        for line in printed:
            what, name, *words = line.split()
            if what == "error":
                return line
            label, got = f"{what} {name}", None
            if words != ["none"]:
                rank = int(words[0])
                got = torch.tensor([float(w) for w in words[1 + rank:]], dtype=torch.float64).reshape([int(w) for w in words[1:1 + rank]])
            if said := self.wrong(label, got):
                return said
            seen.add(label)
        missing = self.expected.keys() - seen
        return f"{len(missing)} results are missing: {min(missing)}" if missing else None


class Program(Drawn):
    """A program of views, ops and gradients."""

    def __init__(self, seed, dtype):
        super().__init__(seed, dtype)
        for _ in range(self.random.randint(1, 3)):
            self.leaf()
        makers = [getattr(self, name) for name in dir(self) if name.startswith("draw_")]
        for _ in range(self.random.randint(3, 25)):
            number = self.pick()
            self.random.choice(makers)(number, self.tensors[number])
        results = [n for n, x in self.tensors.items() if x.requires_grad and n not in self.leaves]
        if results:
            # checkpoint() has no second derivative.
            twice = dtype == "f64" and seed % 3 == 0 and not any(line.startswith("checkpoint ") for line in self.lines)
            self.backward(results[-1], self.leaf(self.tensors[results[-1]].shape, "constant"), twice)

    def pick(self, fits=lambda x: True):
        found = [n for n, x in self.tensors.items() if x.is_floating_point() and x.numel() <= MOST_ELEMENTS and x.dim() <= 5 and fits(x)]
        return self.random.choice(found[-12:] if self.random.random() < 0.8 else found)

    def dim(self, x):
        """One of x's dimensions, and the same perhaps counted from the end."""
        d = self.random.randrange(x.dim())
        return d, self.random.choice([d, d, d - x.dim()])

    def some_ones(self, shape):
        return [1 if self.random.random() < 0.4 else n for n in shape]

    # Ops. Each draws nothing where x does not suit it.

    def draw_unary(self, n, x):
        name = self.random.choice(UNARY)
        self.op(name, calls.value(f"{name}(x[0])", [x]), [n])

    def draw_binary(self, n, x):
        def fits(y):
            return all(a == b or 1 in (a, b) for a, b in zip(reversed(x.shape), reversed(y.shape)))
        shape = self.some_ones(x.shape)[self.random.randint(0, x.dim()):]
        other = self.pick(fits) if self.random.random() < 0.5 else self.leaf(shape, self.random.choice(["leaf", "leaf", "constant"]))
        a, b = self.random.sample([n, other], 2)
        name = self.random.choice(list(BINARY))
        self.op(name, BINARY[name](self.tensors[a], self.tensors[b]), [a, b])

    def draw_product(self, n, x):
        if x.dim() >= 1:
            k, columns = x.shape[-1], self.random.randint(1, 4)
            if self.random.random() < 0.5:
                w = self.leaf(self.random.choice([[k], [k, columns], [*x.shape[:-2], k, columns]]) if x.dim() > 1 else [k, columns])
                self.op("matmul", x @ self.tensors[w], [n, w])
            else:
                w, b = self.leaf([columns, k]), self.leaf([columns])
                y = F.linear(x, self.tensors[w], self.tensors[b])
                self.op(*self.random.choice([("linear", y), ("linear_gelu", F.gelu(y))]), [n, w, b])

    def draw_einsum(self, n, x):
        if x.dim() >= 1:
            a, b = self.leaf(x.shape), self.leaf([2])
            self.op("inner", (x * self.tensors[a]).sum(0), [n, a])
            if x.dim() == 1:
                self.op("outer", torch.einsum("a,b->ba", x, self.tensors[b]), [n, b])

    def draw_order(self, n, x):
        if x.dim() >= 1:
            order = self.random.sample(range(x.dim()), x.dim())
            self.op("permute", x.permute(order), [n], order)
            (_, a), (_, b) = self.dim(x), self.dim(x)
            self.op("transpose", x.transpose(a, b), [n], [a, b])

    def draw_shape(self, n, x):
        left, sizes = x.numel(), []
        for factor in (2, 3, 5):
            if left and left % factor == 0 and self.random.random() < 0.5:
                sizes.append(factor)
                left //= factor
        sizes.append(-1 if x.numel() and self.random.random() < 0.3 else left)
        self.random.shuffle(sizes)
        self.op("reshape", x.reshape(sizes), [n], sizes)
        if x.dim() >= 2:
            first = self.random.randrange(x.dim())
            last = self.random.randrange(first, x.dim())
            self.op("flatten", x.flatten(first, last), [n], [first, last])

    def draw_part(self, n, x):
        if x.dim() >= 1:
            d, named = self.dim(x)
            start, step = self.random.randint(0, x.shape[d]), self.random.choice([1, 1, 2, 3])
            most = (x.shape[d] - start + step - 1) // step
            length = self.random.randint(min(1, most), most)
            self.op("slice", x[(slice(None),) * d + (slice(start, start + length * step, step),)], [n], [named, start, length, step])
            if x.shape[d]:
                at = self.random.randint(-x.shape[d], x.shape[d] - 1)
                self.op("select", x.select(d, at), [n], [named, at])
                count = self.random.randint(1, 3)
                name, all_parts = self.random.choice([("chunk", x.chunk(count, d)), ("split", x.split(count, d))])
                which = self.random.randrange(len(all_parts))
                self.op(name, all_parts[which], [n], [named, count, which])

    def draw_ones(self, n, x):
        sizes = [self.random.randint(1, 3) if size == 1 else size for size in x.shape]
        if x.dim() < 4 and self.random.random() < 0.5:
            sizes.insert(0, self.random.randint(1, 3))
        self.op("expand", x.expand(sizes), [n], sizes)
        at = self.random.randint(-x.dim() - 1, x.dim())
        self.op("unsqueeze", x.unsqueeze(at), [n], [at])
        if 1 in x.shape:
            self.op("squeeze", x.squeeze(x.shape.index(1)), [n], [x.shape.index(1)])

    def draw_copy(self, n, x):
        self.op(*self.random.choice([("contiguous", x.contiguous()), ("clone", x.clone()), ("detach", x.detach())]), [n])

    def draw_join(self, n, x):
        if x.dim() >= 1:
            d, named = self.dim(x)
            sizes = list(x.shape)
            sizes[d] = self.random.randint(0, 3)
            all_parts = self.random.sample([n, self.leaf(sizes), n], 3)
            self.op("concat", torch.cat([self.tensors[p] for p in all_parts], d), all_parts, [named])
            before, after = self.random.randint(0, 2), self.random.randint(0, 2)
            self.op("pad", F.pad(x, [0, 0] * (x.dim() - 1 - d) + [before, after]), [n], [named, before, after])
        other, at = self.leaf(x.shape), self.random.randint(0, x.dim())
        self.op("stack", torch.stack([x, self.tensors[other], x], at), [n, other, n], [at])

    def draw_rearranged(self, n, x):
        if x.dim() >= 1:
            dims = self.random.sample(range(x.dim()), self.random.randint(1, x.dim()))
            self.op("flip", x.flip(dims), [n], dims)
            (d, named), shift = self.dim(x), self.random.randint(-4, 4)
            self.op("roll", x.roll(shift, d), [n], [named, shift])
        counts = [self.random.randint(1, 2) for _ in range(x.dim() + self.random.randint(0, 1))]
        self.op("repeat", x.repeat(counts), [n], counts)

    def draw_gathered(self, n, x):
        if x.dim() >= 1 and x.numel():
            d, named = self.dim(x)
            shape = [self.random.randint(1, size) for size in x.shape]
            shape[d] = self.random.randint(1, 4)
            where, source, rows = self.positions(shape, x.shape[d]), self.leaf(shape), self.positions([3], x.shape[d])
            self.op("gather", x.gather(d, self.tensors[where]), [n, where], [named])
            self.op("scatter_add", x.scatter_add(d, self.tensors[where], self.tensors[source]), [n, where, source], [named])
            self.op("index_select", x.index_select(d, self.tensors[rows]), [n, rows], [named])

    def draw_indexed(self, n, x):
        at, numbers, tensors, together = [], [], [n], self.random.choice([[2], [3], [2, 2], [2, 1]])
        for size in x.shape:
            kind = self.random.randrange(8)
            first = self.random.randint(0, size)
            if kind == 0 and size:
                at.append(self.random.randint(-size, size - 1))
                numbers += [0, at[-1], 0]
            elif kind in (1, 2):
                at.append(slice(first, self.random.randint(first, size), kind))
                numbers += [kind, at[-1].start, at[-1].stop]
            elif kind == 3 and x.dim() < 5:
                at += [None, slice(None)]
                numbers += [3, 0, 0, 6, 0, 0]
            elif kind == 4:
                at.append(Ellipsis)
                numbers += [4, 0, 0]
                break
            elif kind in (5, 7) and size:
                tensors.append(self.positions(self.random.choice([together, together, [1]]), size))
                at.append(self.tensors[tensors[-1]])
                numbers += [5, 0, 0]
            else:
                at.append(slice(None))
                numbers += [6, 0, 0]
        if at:
            self.op("index", x[tuple(at)], tensors, numbers)

    def draw_put(self, n, x):
        if x.dim() >= 1 and x.shape[0]:
            accumulate = self.random.random() < 0.5
            rows = torch.randint(0, x.shape[0], [3]) if accumulate else torch.randperm(x.shape[0])[:3]
            at, values = self.given("integers", rows), self.leaf(x.shape[1:])
            full = self.tensors[values].expand([len(rows), *x.shape[1:]])
            self.op("index_put", x.index_put((rows,), full, accumulate=accumulate), [n, at, values], [accumulate])

    def draw_masked(self, n, x):
        if x.dim() >= 1:
            mask, whole, other = self.leaf(self.some_ones(x.shape), "constant"), self.leaf(x.shape, "constant"), self.leaf(self.some_ones(x.shape))
            chosen = self.tensors[mask] > 0
            self.op("masked_fill", x.masked_fill(chosen, 0.5), [n, mask])
            self.op("where", torch.where(chosen, x, self.tensors[other]), [n, mask, other])
            self.op("masked_select", x.masked_select(self.tensors[whole] > 0), [n, whole])
        if x.dim() >= 2:
            diagonal = self.random.randint(-2, 2)
            self.op(*self.random.choice([("tril", x.tril(diagonal)), ("triu", x.triu(diagonal))]), [n], [diagonal])

    def draw_along(self, n, x):
        if x.dim() >= 1 and x.numel():
            d, named = self.dim(x)
            self.op("cumsum", x.cumsum(d), [n], [named])
            self.op(*self.random.choice([("softmax", x.softmax(d)), ("log_softmax", x.log_softmax(d))]), [n], [named])
            down, k = self.random.random() < 0.5, self.random.randint(1, x.shape[d])
            self.op("sort", calls.sort(x, d, down).values, [n], [named, down])
            self.op("topk", calls.topk(x, k, d).values, [n], [named, k])

    def draw_reduced(self, n, x):
        if x.dim() >= 1 and x.numel():
            dims, keep = self.random.sample(range(x.dim()), self.random.randint(1, x.dim())), self.random.random() < 0.5
            name = self.random.choice(list(REDUCTIONS))
            self.op(name, REDUCTIONS[name](x, dims, keep), [n], [keep, *(self.random.choice([d, d - x.dim()]) for d in dims)])

    def draw_norm(self, n, x):
        if x.dim() >= 1 and x.numel() and x.shape[-1] > 1:
            w, b = self.leaf(x.shape[-1:]), self.leaf(x.shape[-1:])
            self.op("layer_norm", calls.layer_norm(x, self.tensors[w], self.tensors[b]), [n, w, b])
            self.op("rms_norm", calls.rms_norm(x, self.tensors[w]), [n, w])

    def draw_image(self, n, x):
        if x.dim() == 4 and x.numel() and min(x.shape[1:3]) >= 2:
            stride, padding = self.random.randint(1, 2), self.random.randint(0, 1)
            w = self.leaf([self.random.randint(1, 3), 2, 2, x.shape[3]])
            b = self.leaf(self.tensors[w].shape[:1])
            self.op("conv2d", calls.conv(F.conv2d, x, self.tensors[w], self.tensors[b], stride, padding), [n, w, b], [stride, padding])
            self.op("max_pool2d", calls.images(F.max_pool2d, x, 2, stride), [n], [stride])
            self.op("avg_pool2d", calls.images(F.avg_pool2d, x, 2, stride), [n], [stride])

    def draw_attention(self, n, x):
        if x.dim() == 4 and x.numel():
            k, v, causal = self.leaf(x.shape), self.leaf(x.shape), self.random.random() < 0.5
            self.op("attention", calls.attention(x, self.tensors[k], self.tensors[v], causal=causal), [n, k, v], [causal])

    def draw_loss(self, n, x):
        if x.dim() == 2 and x.numel():
            labels = self.positions(x.shape[:1], x.shape[1])
            self.op("cross_entropy", F.cross_entropy(x, self.tensors[labels]), [n, labels])

    def draw_checkpoint(self, n, x):
        w = self.leaf(self.some_ones(x.shape))
        self.op("checkpoint", torch.tanh(x * self.tensors[w]) + x, [n, w])

    def draw_hooked(self, n, x):
        y = x * 1.0
        if y.requires_grad:
            y.register_hook(lambda gradient: gradient * 2)
        self.op("hooked", y, [n])

    def draw_written(self, n, x):
        """In place, through a view, from what is broadcast."""
        if x.dim() >= 1:
            d, named = self.dim(x)
            start = self.random.randint(0, x.shape[d])
            length = self.random.randint(0, x.shape[d] - start)
            y = x.detach().clone()
            part = y.narrow(d, start, length).transpose(0, -1)
            source = self.leaf(self.some_ones(part.shape))
            part.copy_(self.tensors[source].detach()).add_(self.tensors[source].detach(), alpha=0.5).mul_(2)
            self.op("written", y, [n, source], [named, start, length])


def main(draw, doc, programs, what):
    """Draws programs by draw(seed, dtype), runs the command and compares; the number of those that differ decides."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="f32", choices=["f32", "f64"])
    parser.add_argument("--programs", type=int, default=programs)
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.backends.cuda.enable_flash_sdp(False)  # PyTorch has no second derivative of that attention, on a CPU neither
    programs = {seed: draw(seed, options.dtype) for seed in range(options.seed, options.seed + options.programs)}
    done = subprocess.run([*options.command, options.device, options.dtype], capture_output=True, text=True, check=False,
                          input="".join("\n".join(p.lines) + "\n" for p in programs.values()))
    if done.returncode != 0:
        sys.exit(f"{options.command[-1]} ended with {done.returncode}: {done.stderr[-2000:]}")
    printed, seed = {}, 0
    for line in done.stdout.splitlines():
        if line.startswith("program "):
            seed = int(line.split()[1])
            printed[seed] = []
        else:
            printed[seed].append(line)
    wrong = 0
    for seed, program in programs.items():
        if said := program.difference(printed.get(seed, [])):
            wrong += 1
            print(f"program {seed}: {said}", *(line[:400 if line.startswith("model") else 110] for line in program.lines[1:]), sep="\n  ")
    lines = sum(len(p.lines) for p in programs.values())
    print(f"{len(programs)} {what} of {lines} lines on {options.device} in {options.dtype}, PyTorch {torch.__version__}: {wrong} differ")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main(Program, __doc__, 400, "programs"))
