// SPDX-License-Identifier: Apache-2.0
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/einsum.h"
#include "core/ops/gather.h"
#include "core/ops/index.h"
#include "core/ops/layers/attention.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/layer_norm.h"
#include "core/ops/layers/linear.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/pool2d.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"
#include "tests/support/random_programs.h"

// Usage: run_programs DEVICE f32|f64 < PROGRAMS
// Runs the programs of ops that random_programs.py draws and prints every result and gradient.

namespace {

using namespace weft;
using tests::Numbers, tests::shape_of, tests::Tensors;

/// Parts of an index, three numbers each: 0 i -: a position; 1 first last (every second place: 2); 3: a new dimension;
/// 4: an ellipsis; 5: the next tensor; 6: all of a dimension.
std::vector<Index> parts(const Tensors& t, const Numbers& n) {
  std::vector<Index> at;
  size_t next = 1;
  for (size_t i = 0; i < n.size(); i += 3) {
    switch (n.at(i)) {
      case 0:
        at.emplace_back(n.at(i + 1));
        break;
      case 1:
      case 2:
        at.emplace_back(Slice{n.at(i + 1), n.at(i + 2), n.at(i)});
        break;
      case 3:
        at.emplace_back(new_axis);
        break;
      case 4:
        at.emplace_back(ellipsis);
        break;
      case 5:
        at.emplace_back(t.at(next++));
        break;
      default:
        at.emplace_back(Slice{});
    }
  }
  return at;
}

/// "abc,abc->bc" of 3.
std::string inner(int rank) {
  const std::string letters = std::string("abcdefgh").substr(0, static_cast<size_t>(rank));
  return letters + "," + letters + "->" + letters.substr(1);
}

/// x, whose gradient counts twice.
Tensor hooked(const Tensor& x) {
  const Tensor y = x * 1.0;
  if (y.requires_grad()) y.register_hook([](const Tensor& gradient) { return gradient * 2.0; });
  return y;
}

/// A copy of x, into a transposed part of which another tensor and then its own double are written.
Tensor written(const Tensor& x, const Tensor& source, const Numbers& n) {
  const Tensor y = x.detach().clone();
  const Tensor part = y.slice(n.at(0), n.at(1), n.at(2)).transpose(0, -1);
  part.copy_(source.detach());
  part.add_(source.detach(), 0.5);
  part.mul_(2);
  return y;
}

#define OP WEFT_PROGRAM_OP

/// A reduction: whether its dimensions stay, then which dimensions.
#define REDUCTION(name, function) OP(name, function(t[0], n.from(1), n.at(0) != 0))

const std::map<std::string, tests::Op> kOps = {
    OP("add", t[0] + t[1]),
    OP("sub", t[0] - t[1]),
    OP("mul", t[0] * t[1]),
    OP("div", t[0] / (abs(t[1]) + 1.5)),
    OP("maximum", maximum(t[0], t[1])),
    OP("minimum", minimum(t[0], t[1])),
#define UNARY(name, ...) OP(#name, name(t[0])),
    WEFT_UNARY_TABLE(UNARY, WEFT_NO_ROW)
#undef UNARY
        OP("gelu", gelu(t[0])),
    OP("matmul", matmul(t[0], t[1])),
    OP("linear", linear(t[0], t[1], t[2])),
    OP("linear_gelu", linear_gelu(t[0], t[1], t[2])),
    OP("permute", t[0].permute(shape_of(n.from(0)))),
    OP("transpose", t[0].transpose(n.at(0), n.at(1))),
    OP("reshape", t[0].reshape(shape_of(n.from(0)))),
    OP("flatten", t[0].flatten(n.at(0), n.at(1))),
    OP("slice", t[0].slice(n.at(0), n.at(1), n.at(2), n.at(3))),
    OP("select", t[0].select(n.at(0), n.at(1))),
    OP("expand", t[0].expand(shape_of(n.from(0)))),
    OP("squeeze", t[0].squeeze(n.at(0))),
    OP("unsqueeze", t[0].unsqueeze(n.at(0))),
    OP("contiguous", t[0].contiguous()),
    OP("clone", t[0].clone()),
    OP("detach", t[0].detach()),
    OP("concat", concat(t, n.at(0))),
    OP("stack", stack(t, n.at(0))),
    OP("pad", pad(t[0], n.at(0), n.at(1), n.at(2))),
    OP("flip", flip(t[0], n.from(0))),
    OP("roll", roll(t[0], n.at(1), n.at(0))),
    OP("repeat", repeat(t[0], n.from(0))),
    OP("chunk", chunk(t[0], n.at(1), n.at(0)).at(static_cast<size_t>(n.at(2)))),
    OP("split", split(t[0], n.at(1), n.at(0)).at(static_cast<size_t>(n.at(2)))),
    OP("gather", gather(t[0], n.at(0), t[1])),
    OP("index_select", index_select(t[0], n.at(0), t[1])),
    OP("scatter_add", scatter_add(t[0], n.at(0), t[1], t[2])),
    OP("index", t[0].index(parts(t, n))),
    OP("index_put", index_put(t[0], {t[1]}, t[2], n.at(0) != 0)),
    OP("masked_fill", masked_fill(t[0], gt(t[1], 0.0), 0.5)),
    OP("masked_select", masked_select(t[0], gt(t[1], 0.0))),
    OP("where", where(gt(t[1], 0.0), t[0], t[2])),
    OP("tril", tril(t[0], n.at(0))),
    OP("triu", triu(t[0], n.at(0))),
    OP("cumsum", cumsum(t[0], n.at(0))),
    OP("softmax", softmax(t[0], n.at(0))),
    OP("log_softmax", log_softmax(t[0], n.at(0))),
    REDUCTION("sum", sum),
    REDUCTION("mean", mean),
    REDUCTION("max", max),
    REDUCTION("min", min),
    REDUCTION("norm", norm),
    REDUCTION("logsumexp", logsumexp),
    OP("var", var(t[0], {.dims = n.from(1), .correction = 0, .keep_dims = n.at(0) != 0})),
    OP("sort", sort(t[0], n.at(0), n.at(1) != 0).values),
    OP("topk", topk(t[0], n.at(1), n.at(0)).values),
    OP("layer_norm", layer_norm(t[0], t[1], t[2])),
    OP("rms_norm", rms_norm(t[0], t[1])),
    OP("conv2d", conv2d(t[0], t[1], t[2], {.stride = {n.at(0), n.at(0)}, .padding = {n.at(1), n.at(1)}})),
    OP("max_pool2d", max_pool2d(t[0], {.kernel = {2, 2}, .stride = {n.at(0), n.at(0)}})),
    OP("avg_pool2d", avg_pool2d(t[0], {.kernel = {2, 2}, .stride = {n.at(0), n.at(0)}})),
    OP("attention", attention(t[0], t[1], t[2], {.causal = n.at(0) != 0})),
    OP("cross_entropy", cross_entropy(t[0], t[1])),
    OP("checkpoint", checkpoint([](const Tensors& x) { return tanh(x[0] * x[1]) + x[0]; }, t)),
    OP("hooked", hooked(t[0])),
    OP("written", written(t[0], t[1], n)),
    OP("inner", einsum(inner(t[0].dim()), t)),
    OP("outer", einsum("a,b->ba", t)),
};

struct Program : tests::RandomProgram {
  Program(Device device, DType dtype) : RandomProgram(device, dtype, kOps) {}
};

}  // namespace

int main(int argc, char** argv) { return tests::run_random_programs<Program>(argc, argv); }
