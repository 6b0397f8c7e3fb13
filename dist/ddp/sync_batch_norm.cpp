// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/sync_batch_norm.h"

#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/binary.h"
#include "core/ops/rearrange.h"
#include "core/ops/rows.h"
#include "core/trace.h"
#include "kernels/contracts/batch_norm.h"
#include "nn/batch_norm.h"

namespace weft::dist {
namespace {

/// This rank's part, [2 C + 1] as in kernels/contracts/batch_norm.h.
Tensor own_statistics(const Tensor& x, const Tensor& known, bool stand_in) {
  const Shape sizes{2 * x.size(-1) + 1};
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  if (stand_in) return Tensor::zeros(sizes, dtype, x.device());
  if (known.defined()) return known;
  const Tensor part = Tensor::empty(sizes, dtype, x.device());
  kernels::batch_norm_statistics(x.queue(), part, rows_of(x));
  return part;
}

/// The statistics of all ranks, [ranks, 2 C + 1].
Tensor all_statistics(const Tensor& part, ProcessGroup& group) {
  const Tensor parts = Tensor::empty({group.size(), part.numel()}, part.dtype(), part.device());
  group.all_gather(parts, part, {.name = "batch statistics", .scale = {}, .at_once = true})->wait();
  return parts;
}

/// BatchNorm2d::training_norm of a converted norm.
struct SyncNorm {
  ProcessGroupPtr group;
  bool stand_in = false;

  Tensor operator()(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                    const Tensor& running_var, const BatchNormOptions& options) const {
    return sync_batch_norm(x, weight, bias, running_mean, running_var, options, group, stand_in);
  }
};

void for_each_norm(nn::Module& model, const std::function<void(nn::BatchNorm2d&)>& function) {
  model.apply([&](nn::Module& module) {
    if (auto* const norm = dynamic_cast<nn::BatchNorm2d*>(&module)) function(*norm);
  });
}

}  // namespace

Tensor sync_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                       const Tensor& running_var, const BatchNormOptions& options, const ProcessGroupPtr& group,
                       bool stand_in) {
  const OpScope scope("sync_batch_norm");
  check_batch_norm(input, weight, bias, running_mean, running_var, options);
  WEFT_CHECK(options.training, "sync_batch_norm: expected training; evaluation needs no statistics of other ranks");
  WEFT_CHECK(input.numel() > 0, "sync_batch_norm: expected at least one row on rank ", group->rank(), ", got ", input);
  const Tensor x = input.contiguous();
  const Tensor residual = options.residual.defined() ? options.residual.to(x.dtype()).contiguous() : Tensor();
  const kernels::BatchNormArguments arguments{options.eps, options.momentum, options.relu};
  const Tensor mask = options.mask_of(x, residual);
  const Tensor parts = all_statistics(own_statistics(x, options.statistics, stand_in), *group);
  const Tensor y = empty_like(x), mean = Tensor::empty({x.size(-1)}, parts.dtype(), x.device());
  const Tensor invstd = empty_like(mean), total = Tensor::empty({1}, parts.dtype(), x.device());
  const bool move = running_mean.defined() && !recomputing();
  const auto moving = [move](const Tensor& running) { return move ? running.view() : kernels::View::none(); };
  kernels::batch_norm_of_parts(y.queue(), rows_of(y), mean, invstd, total, moving(running_mean), moving(running_var),
                               rows_of(x), weight, bias, rows_of(residual), parts, rows_of(mask), arguments);
  if (move) {
    running_mean.storage()->bump_version();
    running_var.storage()->bump_version();
  }

  struct {
    bool x, weight, bias, residual;
  } const wanted{wants_gradient(x), wants_gradient(weight), wants_gradient(bias), wants_gradient(residual)};
  return differentiable(
      y, "sync_batch_norm", {x, weight, bias, residual},
      [arguments, wanted, group, stand_in, mask = Saved(mask), x = Saved(x), y = arguments.relu ? Saved(y) : Saved(),
       weight = Saved(weight), bias = arguments.relu && !residual.defined() ? Saved(bias) : Saved(), mean = Saved(mean),
       invstd = Saved(invstd), total = Saved(total)](const Tensor& gradient) {
        refuse_create_graph("sync_batch_norm");
        const Tensor dy = gradient.contiguous(), in = x, sign = mask ? mask.get() : y.get();
        const int64_t C = in.size(-1), rows = in.numel() / C;
        const auto M = static_cast<double>(rows);
        const kernels::View none = kernels::View::none();
        // Sums over this rank's rows: sum(dy xhat), sum(dy).
        const auto made = [&](const Tensor& like) { return stand_in ? zeros_like(like) : empty_like(like); };
        const Tensor sums = made(Tensor::empty({2 * C}, mean.dtype(), in.device()));
        const Tensor dweight = sums.slice(0, 0, C), dbias = sums.slice(0, C, C);
        if (!stand_in)
          kernels::batch_norm_backward(dy.queue(), none, none, dweight, dbias, rows_of(dy), rows_of(in), rows_of(sign),
                                       weight, bias, mean, invstd, arguments);
        Grads grads{wanted.x ? made(in) : Tensor(), wanted.weight ? dweight : Tensor(), wanted.bias ? dbias : Tensor(),
                    wanted.residual && arguments.relu ? made(in) : Tensor()};
        if (wanted.x || grads[3].defined()) {
          // The batch's loss is sum_r (M_r / total) loss_r, so sums of rank r weigh M_r / total in it. This rank's dx
          // is asked for without its own such factor: the means are over its own M rows.
          const Tensor weighted =
              mul(sums, div(Tensor::full({1}, M, sums.dtype(), sums.device()), maximum(total, ones_like(total.get()))));
          if (wanted.x)
            group
                ->all_reduce(weighted, ReduceOp::sum,
                             {.name = "batch statistics' gradients", .scale = {}, .at_once = true})
                ->wait();
          weighted.mul_(1 / M);
          if (!stand_in)
            kernels::batch_norm_backward_input(dy.queue(), rows_of(grads[0]), rows_of(grads[3]),
                                               weighted.slice(0, C, C), weighted.slice(0, 0, C), rows_of(dy),
                                               rows_of(in), rows_of(sign), weight, bias, mean, invstd, arguments);
        }
        if (wanted.residual && !arguments.relu) grads[3] = dy;
        return grads;
      });
}

int convert_sync_batch_norm(nn::Module& model, const ProcessGroupPtr& group) {
  int count = 0;
  for_each_norm(model, [&](nn::BatchNorm2d& norm) {
    ++count;
    norm.training_norm = {};
    if (group) norm.training_norm = SyncNorm{group};
  });
  return count;
}

std::string describe_norms(nn::Module& model) {
  int count = 0;
  for_each_norm(model, [&](nn::BatchNorm2d& norm) { count += norm.training_norm.target<SyncNorm>() != nullptr; });
  return count > 0 ? str(", ", count, " batch norms over all ranks") : "";
}

void set_stand_in(nn::Module& model, bool stand_in) {
  for_each_norm(model, [&](nn::BatchNorm2d& norm) {
    if (auto* const sync = norm.training_norm.target<SyncNorm>()) sync->stand_in = stand_in;
  });
}

}  // namespace weft::dist
