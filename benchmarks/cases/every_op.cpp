// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "benchmarks/cases/cases.h"
#include "core/autograd.h"
#include "include/weft/weft.h"

// The suite ops: one call of each common op. benchmarks/peers/pytorch_ops.py has the same cases in PyTorch, by the same
// names: a comparison shows each op that is much slower there or here.

namespace weft::benchmarks {
namespace {

struct Inputs {
  Tensor x, y, row, images, mask, rows, positions, labels;
  Inputs(const Target& target, DType dtype) {
    const int64_t m = target.size(512, 8), n = target.size(768, 12), edge = target.size(56, 6);
    const auto random = [&](const Shape& sizes) { return normal(sizes, 0, 1, DType::f32, target.device).to(dtype); };
    x = random({m, n}), y = random({m, n}), row = random({n});
    images = random({target.size(8, 2), edge, edge, target.size(64, 8)});
    mask = gt(x, 0.0);
    rows = randint({m}, 0, m, target.device);
    positions = randint({m, n}, 0, m, target.device);
    labels = randint({m}, 0, n, target.device);
  }
};

struct EveryOp {
  const char* name;
  void (*run)(const Inputs& in);
};

#define WEFT_OP(name, call)                      \
  {                                              \
    name, [](const Inputs& in) { (void)(call); } \
  }
const EveryOp kOps[] = {
    // ops on one tensor
    WEFT_OP("exp", exp(in.x)), WEFT_OP("log", log(in.x)), WEFT_OP("sqrt", sqrt(in.x)), WEFT_OP("sin", sin(in.x)),
    WEFT_OP("tanh", tanh(in.x)), WEFT_OP("erf", erf(in.x)), WEFT_OP("sigmoid", sigmoid(in.x)),
    WEFT_OP("relu", relu(in.x)), WEFT_OP("gelu", gelu(in.x)), WEFT_OP("gelu_tanh", gelu(in.x, Gelu::tanh)),
    WEFT_OP("silu", silu(in.x)), WEFT_OP("softplus", softplus(in.x)), WEFT_OP("elu", elu(in.x)),
    WEFT_OP("clamp", clamp(in.x, -1, 1)), WEFT_OP("pow_2", pow(in.x, 2)), WEFT_OP("pow_3", pow(in.x, 3)),
    WEFT_OP("to_f16", in.x.to(DType::f16)), WEFT_OP("to_f64", in.x.to(DType::f64)),
    WEFT_OP("to_other", in.x.to(in.x.dtype() == DType::f32 ? DType::bf16 : DType::f32)),
    // ops on two
    WEFT_OP("add", add(in.x, in.y)), WEFT_OP("add_row", add(in.x, in.row)),
    WEFT_OP("mul_column", mul(in.x, in.x.slice(1, 0, 1))), WEFT_OP("gt", gt(in.x, in.y)),
    WEFT_OP("where", where(in.mask, in.x, in.y)), WEFT_OP("masked_fill", masked_fill(in.x, in.mask, 0)),
    // reductions
    WEFT_OP("sum", sum(in.x)), WEFT_OP("sum_rows", sum(in.x, {1})), WEFT_OP("sum_columns", sum(in.x, {0})),
    WEFT_OP("mean_rows", mean(in.x, {1})), WEFT_OP("max", max(in.x)), WEFT_OP("max_rows", max(in.x, {1})),
    WEFT_OP("max_columns", max(in.x, {0})), WEFT_OP("norm", norm(in.x)), WEFT_OP("var_rows", var(in.x, {.dims = {1}})),
    WEFT_OP("logsumexp_rows", logsumexp(in.x, {1})), WEFT_OP("argmax_rows", argmax(in.x, 1)),
    WEFT_OP("argmax_columns", argmax(in.x, 0)), WEFT_OP("cumsum_rows", cumsum(in.x, 1)),
    WEFT_OP("cumsum_columns", cumsum(in.x, 0)), WEFT_OP("softmax_rows", softmax(in.x, 1)),
    WEFT_OP("softmax_columns", softmax(in.x, 0)), WEFT_OP("log_softmax_rows", log_softmax(in.x, 1)),
    WEFT_OP("sort_rows", sort(in.x, 1)), WEFT_OP("topk_rows", topk(in.x, 5)),
    // ops that move elements
    WEFT_OP("transpose", in.x.transpose(0, 1).contiguous()),
    WEFT_OP("channels_first", in.images.permute({0, 3, 1, 2}).contiguous()),
    WEFT_OP("concat_rows", concat({in.x, in.y}, 0)), WEFT_OP("concat_columns", concat({in.x, in.y}, 1)),
    WEFT_OP("stack", stack({in.x, in.y}, 0)), WEFT_OP("pad", pad(in.x, 1, 1, 1)), WEFT_OP("flip", flip(in.x, {1})),
    WEFT_OP("roll", roll(in.x, 3, 1)), WEFT_OP("tril", tril(in.x)), WEFT_OP("repeat", repeat(in.x, {2, 1})),
    WEFT_OP("index_select_rows", index_select(in.x, 0, in.rows)),
    WEFT_OP("index_select_columns", index_select(in.x, 1, in.rows)), WEFT_OP("gather", gather(in.x, 0, in.positions)),
    WEFT_OP("scatter_add", scatter_add(in.x, 0, in.positions, in.y)),
    WEFT_OP("masked_select", masked_select(in.x, in.mask)), WEFT_OP("nonzero", nonzero(in.mask)),
    WEFT_OP("one_hot", one_hot(in.labels, in.x.size(1))),
    // ops of networks
    WEFT_OP("layer_norm", layer_norm(in.x)), WEFT_OP("rms_norm", rms_norm(in.x)),
    WEFT_OP("group_norm", group_norm(in.images, 8)), WEFT_OP("cross_entropy", cross_entropy(in.x, in.labels)),
    WEFT_OP("mse_loss", mse_loss(in.x, in.y)), WEFT_OP("bce_with_logits", bce_with_logits(in.x, in.y)),
    WEFT_OP("max_pool2d", max_pool2d(in.images, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}})),
    WEFT_OP("avg_pool2d", avg_pool2d(in.images)), WEFT_OP("adaptive_avg_pool2d", adaptive_avg_pool2d(in.images)),
    WEFT_OP("resize2d", resize2d(in.images, {2 * in.images.size(1), 2 * in.images.size(2)})),
    // random numbers
    WEFT_OP("normal", normal(in.x.sizes(), 0, 1, DType::f32, in.x.device())),
    WEFT_OP("uniform", uniform(in.x.sizes(), 0, 1, DType::f32, in.x.device())), WEFT_OP("dropout", dropout(in.x, 0.1)),
    WEFT_OP("permutation", permutation(in.x.numel() / 8, in.x.device()))};
#undef WEFT_OP

}  // namespace

void add_every_op(Cases& cases, const Target& target) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const EveryOp& op : kOps)
      cases.push_back({str(op.name, "_", name(dtype)), "us", [target, dtype, run = op.run] {
                         const auto inputs = std::make_shared<const Inputs>(target, dtype);
                         return work_on(target, [inputs, run] {
                           const NoGrad no_grad;
                           run(*inputs);
                         });
                       }});
}

}  // namespace weft::benchmarks
