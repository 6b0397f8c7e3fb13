// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/parallel_embedding.h"

#include <limits>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/capture.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/layers/linear.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "dist/tensor/parallel_region.h"
#include "kernels/contracts/cross_entropy.h"

namespace weft::dist {
namespace {

constexpr const char* kLoss = "parallel_cross_entropy";

/// The targets of rows [N] as this rank sees them.
struct OwnTargets {
  Tensor counts;  ///< bool: not ignored
  Tensor mine;    ///< bool: one of this rank's classes
  Tensor known;   ///< bool: one of all classes
  Tensor place;   ///< i64: the class among this rank's, 0 for others

  OwnTargets(const Tensor& t, const Partition::Share& share, int64_t classes, int64_t ignore_index) {
    const NoGrad no_grad;
    const Tensor own = t - share.first;
    counts = ne(t, ignore_index);
    known = ge(t, 0) & lt(t, classes);
    mine = ge(own, 0) & lt(own, share.count) & counts;
    place = where(mine, own, 0);
  }
};

Tensor reduced_in_place(const Tensor& x, ReduceOp op, const ProcessGroupPtr& group, const char* name) {
  if (group->backend() != "nccl") refuse_while_capturing("tensor parallelism over a host backend", x.device());
  group->all_reduce(x, op, {.name = name, .scale = {}, .at_once = true})->wait();
  return x;
}

/// The losses [N] by ops that can be differentiated twice.
Tensor losses_by_ops(const Tensor& x, const OwnTargets& targets, const ProcessGroupPtr& group) {
  const Tensor own = logsumexp(x, {1});
  const Tensor most = reduced_in_place(own.detach().clone(), ReduceOp::max, group, "maxima of the logits");
  const Tensor logit = gather(x, 1, targets.place.unsqueeze(1)).squeeze(1) - most;
  const Tensor sums = reduce_from_region(stack({exp(own - most), where(targets.mine, logit, 0.0)}, 0), group);
  return where(targets.counts, log(sums.select(0, 0)) - sums.select(0, 1), 0.0);
}

/// [N, C] with dense rows, as cross_entropy() takes them.
Tensor dense_rows(const Tensor& x) { return kernels::has_rows(x) ? x : x.contiguous(); }

}  // namespace

Tensor parallel_cross_entropy(const Tensor& logits, const Tensor& target, int64_t classes, const ProcessGroupPtr& group,
                              const CrossEntropyOptions& options) {
  WEFT_CHECK(group, kLoss, ": expected a group, got none");
  WEFT_CHECK(options.label_smoothing == 0 && !options.weight.defined(), kLoss,
             ": expected no label smoothing and no weights of classes");
  if (group->size() == 1) return cross_entropy(logits, target, options);
  const OpScope scope(kLoss);
  const Partition::Share share = Partition::share(classes, group->rank(), group->size());
  WEFT_CHECK(logits.defined() && logits.is_floating() && logits.dim() > 0 && logits.size(-1) == share.count, kLoss,
             ": expected logits of ", share.count, " of ", classes, " classes, got ", logits);
  Shape sizes;
  for (int d = 0; d + 1 < logits.dim(); ++d) sizes.push_back(logits.size(d));
  WEFT_CHECK(target.defined() && !target.is_floating() && target.sizes() == sizes, kLoss,
             ": expected one class per row, i64", sizes, ", got ", target);
  const int64_t N = target.numel(), C = share.count;
  const Tensor x = dense_rows(logits.reshape({N, C}));
  const Tensor t = target.to(DType::i64).reshape({N}).contiguous();
  const OwnTargets targets(t, share, classes, options.ignore_index);
  if (t.device().kind == DeviceKind::cpu)
    WEFT_CHECK(!any(targets.counts & logical_not(targets.known)).item(), kLoss, ": expected classes below ", classes,
               ", got others");

  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor loss = Tensor::empty({N}, dtype, x.device()), own = Tensor::empty({2, N}, dtype, x.device());
  kernels::cross_entropy_forward(x.queue(), loss, own, kernels::View::none(), x, targets.place, {});
  Tensor losses, total;  // total: the maximum and the log of the sum, of all classes
  {
    const NoGrad no_grad;
    const Tensor most = reduced_in_place(own.select(0, 0).clone(), ReduceOp::max, group, "maxima of the logits");
    const Tensor rest = own.select(0, 0) - most + own.select(0, 1);
    const Tensor sums = reduced_in_place(stack({exp(rest), where(targets.mine, rest - loss, 0.0)}, 0), ReduceOp::sum,
                                         group, "sums of the logits");
    total = stack({most, log(sums.select(0, 0))}, 0);
    const Tensor each =
        where(targets.known, total.select(0, 1) - sums.select(0, 1), std::numeric_limits<double>::quiet_NaN());
    losses = where(targets.counts, each, 0.0);
  }
  if (wants_gradient(x))
    losses = differentiable(
        losses, kLoss, {x},
        [x = Saved(x), total = Saved(total), targets, group, C](const Tensor& dy, BackwardContext& context) {
          const Tensor kept = x;
          if (grad_enabled())
            return gradients_by_ops(
                [&](const std::vector<Tensor>& in) { return losses_by_ops(in[0].to(dy.dtype()), targets, group); },
                {kept}, dy, context);
          const Tensor place = where(targets.counts, where(targets.mine, targets.place, C), -1);
          const bool in_place = context.is_last() && kept.storage()->owners() == 2;  // `x` and this view of it
          const Tensor dx =
              in_place
                  ? kept
                  : Tensor::empty({kept.size(0), kernels::row_pitch(kept)}, kept.dtype(), kept.device()).slice(1, 0, C);
          kernels::cross_entropy_backward(dx.queue(), dx, dy, kept, total, place,
                                          {.ignore_index = -1, .is_part = true});
          return Grads{dx};
        });
  if (options.reduction == Reduction::none) return losses.reshape(sizes);
  const Tensor all = sum(losses);
  return options.reduction == Reduction::sum ? all : div(all, sum(targets.counts.to(dtype)));
}

namespace {

const ProcessGroup& checked(const ProcessGroupPtr& group, const nn::Embedding& whole) {
  WEFT_CHECK(group, "ParallelEmbedding: expected a group, got none");
  WEFT_CHECK(dynamic_cast<const ParallelEmbedding*>(&whole) == nullptr,
             "ParallelEmbedding: expected a whole table, got one that is divided already");
  return *group;
}

}  // namespace

ParallelEmbedding::ParallelEmbedding(const nn::Embedding& whole, ProcessGroupPtr ranks)
    : nn::Embedding(parameter_part(whole.weight, {.dim = 0, .size = whole.weight.size(0)}, checked(ranks, whole))),
      group(std::move(ranks)),
      rows(whole.weight.size(0)) {
  WEFT_CHECK(whole.padding < 0, "ParallelEmbedding: expected no padding row, got ", whole.padding);
}

Tensor ParallelEmbedding::forward(const Tensor& x) const {
  WEFT_CHECK(!x.is_floating(), "Embedding: expected integers, got ", x);
  Tensor place, mine;
  {
    const NoGrad no_grad;
    const Tensor index = x.flatten();
    const auto [first, count] = Partition::share(rows, group->rank(), group->size());
    const Tensor own = index - first;
    WEFT_CHECK(index.device().kind != DeviceKind::cpu || !any(lt(index, 0) | ge(index, rows)).item(),
               "Embedding: expected rows of [0, ", rows, "), got ", min(index).item(), " to ", max(index).item());
    mine = ge(own, 0) & lt(own, count);
    // A number outside of the table is outside of each rank's rows: index_select() reports it on all of them.
    place = where(ge(index, 0) & lt(index, rows), where(mine, own, 0), index);
  }
  const Tensor y = index_select(weight, 0, place);
  Shape sizes = x.sizes();
  sizes.push_back(weight.size(1));
  return reduce_from_region(mul(y, mine.unsqueeze(1).to(y.dtype())), group).reshape(sizes);
}

Tensor ParallelEmbedding::tied_linear(const Tensor& x) const {
  const int64_t count = Partition::share(rows, group->rank(), group->size()).count;
  return with_hooks(x, [&] {
    return linear(copy_to_region(autocast_low(x), group), count == weight.size(0) ? weight : weight.slice(0, 0, count));
  });
}

Tensor ParallelEmbedding::tied_loss(const Tensor& x, const Tensor& targets,
                                    const LinearCrossEntropyOptions& options) const {
  return parallel_cross_entropy(tied_linear(x), targets, rows, group,
                                {.label_smoothing = options.label_smoothing,
                                 .ignore_index = options.ignore_index,
                                 .reduction = options.reduction});
}

void divide_vocabulary(nn::Gpt& model, const ProcessGroupPtr& group) {
  WEFT_CHECK(group, "divide_vocabulary: expected a group, got none");
  if (group->size() > 1) model.wte = std::make_shared<ParallelEmbedding>(*model.wte, group);
}

}  // namespace weft::dist
