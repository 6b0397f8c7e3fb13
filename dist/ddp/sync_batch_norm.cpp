// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/sync_batch_norm.h"

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/rows.h"
#include "core/trace.h"
#include "kernels/batch_norm.h"
#include "nn/batch_norm.h"

namespace weft::dist {
namespace {

/// Statistics of all ranks' rows.
struct Joined {
  Tensor mean, var, invstd, total;
};

Joined join_statistics(const Tensor& x, const Tensor& statistics, const Tensor& running_mean, const Tensor& running_var,
                       const kernels::BatchNormArguments& arguments, ProcessGroup& group) {
  const int64_t C = x.size(-1);
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor part = statistics.defined() ? statistics : Tensor::empty({2 * C + 1}, dtype, x.device());
  const Tensor parts = Tensor::empty({group.size(), 2 * C + 1}, dtype, x.device());
  if (!statistics.defined()) kernels::batch_norm_statistics(x.queue(), part, rows_of(x));
  group.all_gather(parts, part, {.name = "batch statistics", .scale = {}, .at_once = true})->wait();
  Joined joined{Tensor::empty({C}, dtype, x.device()), Tensor::empty({C}, dtype, x.device()),
                Tensor::empty({C}, dtype, x.device()), Tensor::empty({1}, dtype, x.device())};
  const bool move = running_mean.defined() && !recomputing();
  const kernels::View none = kernels::View::none();
  kernels::batch_norm_join(x.queue(), joined.mean, joined.var, joined.invstd, joined.total,
                           move ? running_mean.view() : none, move ? running_var.view() : none, parts, arguments);
  if (move) {
    running_mean.storage()->bump_version();
    running_var.storage()->bump_version();
  }
  return joined;
}

}  // namespace

Tensor sync_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                       const Tensor& running_var, const BatchNormOptions& options, const ProcessGroupPtr& group) {
  const OpScope scope("sync_batch_norm");
  check_batch_norm(input, weight, bias, running_mean, running_var, options);
  WEFT_CHECK(options.training, "sync_batch_norm: expected training; evaluation needs no statistics of other ranks");
  WEFT_CHECK(input.numel() > 0, "sync_batch_norm: expected at least one row on rank ", group->rank(), ", got ", input);
  const Tensor x = input.contiguous();
  const Tensor residual = options.residual.defined() ? options.residual.to(x.dtype()).contiguous() : Tensor();
  const kernels::BatchNormArguments arguments{options.eps, options.momentum, options.relu};
  const Joined all = join_statistics(x, options.statistics, running_mean, running_var, arguments, *group);
  const Tensor y = empty_like(x);
  kernels::batch_norm_inference(y.queue(), rows_of(y), rows_of(x), all.mean, all.var, weight, bias, rows_of(residual),
                                arguments);

  struct {
    bool x, weight, bias, residual;
  } const wanted{wants_gradient(x), wants_gradient(weight), wants_gradient(bias), wants_gradient(residual)};
  return differentiable(
      y, "sync_batch_norm", {x, weight, bias, residual},
      [arguments, wanted, group, x = Saved(x), y = arguments.relu ? Saved(y) : Saved(), weight = Saved(weight),
       bias = arguments.relu && !residual.defined() ? Saved(bias) : Saved(), mean = Saved(all.mean),
       invstd = Saved(all.invstd), total = Saved(all.total)](const Tensor& gradient) {
        const Tensor dy = gradient.contiguous(), in = x;
        const int64_t C = in.size(-1), rows = in.numel() / C;
        const auto M = static_cast<double>(rows);
        const kernels::View none = kernels::View::none();
        // Of this rank's rows: sum(dy xhat), sum(dy).
        const Tensor sums = Tensor::empty({2 * C}, mean.dtype(), in.device());
        const Tensor dweight = sums.slice(0, 0, C), dbias = sums.slice(0, C, C);
        kernels::batch_norm_backward(dy.queue(), none, none, dweight, dbias, rows_of(dy), rows_of(in), rows_of(y),
                                     weight, bias, mean, invstd, arguments);
        Grads grads{wanted.x ? empty_like(in) : Tensor(), wanted.weight ? dweight : Tensor(),
                    wanted.bias ? dbias : Tensor(), wanted.residual && arguments.relu ? empty_like(in) : Tensor()};
        if (wanted.x || grads[3].defined()) {
          // The batch's loss is sum_r (M_r / total) loss_r, so sums of rank r weigh M_r / total in it. This rank's dx
          // is asked for without its own such factor: the means are over its own M rows.
          const Tensor weighted = mul(sums, div(Tensor::full({1}, M, sums.dtype(), sums.device()), total.get()));
          if (wanted.x)
            group
                ->all_reduce(weighted, ReduceOp::sum,
                             {.name = "batch statistics' gradients", .scale = {}, .at_once = true})
                ->wait();
          weighted.mul_(1 / M);
          kernels::batch_norm_backward_input(dy.queue(), rows_of(grads[0]), rows_of(grads[3]), weighted.slice(0, C, C),
                                             weighted.slice(0, 0, C), rows_of(dy), rows_of(in), rows_of(y), weight,
                                             bias, mean, invstd, arguments);
        }
        if (wanted.residual && !arguments.relu) grads[3] = dy;
        return grads;
      });
}

int convert_sync_batch_norm(nn::Module& model, const ProcessGroupPtr& group) {
  int count = 0;
  model.apply([&](nn::Module& module) {
    auto* const norm = dynamic_cast<nn::BatchNorm2d*>(&module);
    if (!norm) return;
    ++count;
    norm->training_norm = {};
    if (group)
      norm->training_norm = [group](const Tensor& x, const Tensor& weight, const Tensor& bias,
                                    const Tensor& running_mean, const Tensor& running_var,
                                    const BatchNormOptions& options) {
        return sync_batch_norm(x, weight, bias, running_mean, running_var, options, group);
      };
  });
  return count;
}

}  // namespace weft::dist
