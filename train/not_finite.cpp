// SPDX-License-Identifier: Apache-2.0
#include "train/not_finite.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/autograd.h"
#include "core/flat_parameters.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "dist/ddp/sync_batch_norm.h"
#include "kernels/runtime/kernel_trace.h"

namespace weft::train {
namespace {

// A sum of f32 may overflow where no element has.
bool is_finite(const Tensor& x) { return std::isfinite(sum(x.to(DType::f64)).item()); }

/// The first part of the gradient that is not finite, "" where all are.
std::string bad_gradient(FlatParameters& flat) {
  const Tensor all = flat.gradient();
  for (const FlatSlice& slice : flat.slices())
    if (slice.numel > 0 && !is_finite(all.slice(0, slice.offset, slice.numel))) return slice.name;
  return "";
}

std::string bad_weight(const std::vector<NamedTensor>& parameters) {
  for (const NamedTensor& parameter : parameters)
    if (!is_finite(parameter.tensor)) return parameter.name;
  return "";
}

/// `up to 3e+28 in 'fc.weight'`
std::string largest(const std::vector<NamedTensor>& parameters) {
  double most = -1;
  std::string name;
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.numel() == 0) continue;
    const double own = max(abs(parameter.tensor.detach())).item();
    if (own > most) most = own, name = parameter.name;
  }
  return str("up to ", most, " in '", name, "'");
}

/// The report on the first kernel with such an output; "" if there is none.
std::string under_watch(const std::function<void()>& step) {
  static std::mutex one_at_a_time;  // the checks are the process's, and ranks may be its threads
  const std::lock_guard lock(one_at_a_time);
  const kernels::KernelChecks before = kernels::kernel_checks();
  std::string found;
  try {
    kernels::set_kernel_checks({.synchronize = true, .not_finite = true});
    step();
  } catch (const Error& error) {
    found = error.what();
  }
  kernels::set_kernel_checks(before);
  return found;
}

/// The data are finite.
std::string explain(const std::vector<NamedTensor>& parameters, FlatParameters& flat, const BadSteps& bad) {
  const std::string slower = "Lower --lr, add --warmup or --clip-norm";
  const bool first_of_all = bad.of_this_process == 0 && bad.first == bad.last;
  std::string weights;
  {
    const NoGrad no_grad;
    const std::string weight = bad_weight(parameters);
    if (!weight.empty()) {
      const std::string they = "the weights are not finite, first in '" + weight + "'";
      if (bad.updated)
        return str(they, ", and the data are: the step with the bad loss or one ahead of it made them so. ", slower,
                   ". WEFT_CHECK_NAN=1 names the first kernel");
      if (first_of_all) return they + ", and were so before this first step: look at what they were loaded from";
      return str(they, ": the update of step ", bad.last - 1, " made them so. ", slower);
    }
    weights = largest(parameters);
  }
  std::string text = "the data and the weights are finite (" + weights + ")";
  if (bad.gradient) text += ", the gradient is not, first in '" + bad_gradient(flat) + "'";
  const std::function<void()>& again = bad.gradient ? bad.backward : bad.forward;
  if (!again) return text + ". One rank, or --parallel ddp for a loss, can tell more";
  std::string found;
  if (bad.gradient) {
    found = under_watch(again);
  } else {
    const NoGrad no_grad;
    found = under_watch(again);
  }
  text += found.empty() ? ", and so is the same step when it is repeated: dropout decides" : "; it begins in " + found;
  if (bad.f16) text += ". f16 ends at 65504, bf16 and f32 do not";
  return first_of_all ? text : text + ". " + slower;
}

}  // namespace

std::string not_finite_in(const std::vector<Tensor>& batch, const ValueName& name) {
  for (size_t number = 0; number < batch.size(); ++number) {
    const Tensor& tensor = batch[number];
    if (!tensor.is_floating() || tensor.numel() == 0 || is_finite(tensor)) continue;
    const std::vector<double> values = tensor.detach().to(Device{}).to(DType::f64).contiguous().to_vector<double>();
    const auto bad = [](double value) { return !std::isfinite(value); };
    const auto first = std::find_if(values.begin(), values.end(), bad);
    if (first == values.end()) continue;  // the sum alone is too large
    const auto count = std::count_if(first, values.end(), bad);
    Shape place = tensor.sizes();
    int64_t at = first - values.begin();
    for (int d = place.rank(); d-- > 0;) {
      const int64_t size = place[d];
      place[d] = at % size;
      at /= size;
    }
    return str(*first, " in ", name(number, place), count > 1 ? str(", the first of ", count, " such values") : "");
  }
  return "";
}

bool gradient_is_finite(FlatParameters& flat) {
  const NoGrad no_grad;
  return std::isfinite(sum(flat.gradient()).item()) || bad_gradient(flat).empty();
}

void fail_not_finite(const dist::World& world, nn::Module& model, Strategy& strategy,
                     const std::shared_ptr<FlatParameters>& flat, const BadSteps& bad) {
  const std::string what = bad.gradient ? "gradient that is not finite" : "loss that is not finite";
  // Every rank looks at its data: any rank's data has reached all gradients.
  std::string reason = bad.data();
  if (!reason.empty()) reason = "the data are not finite: " + reason + ". Correct them, or leave such samples out";
  std::vector<std::string> reasons = world.texts(reason, what);
  if (std::all_of(reasons.begin(), reasons.end(), [](const std::string& text) { return text.empty(); })) {
    if (bad.here) {
      // The forward of this rank alone: what asks other ranks would wait for them.
      dist::convert_sync_batch_norm(model, nullptr);
      reason = explain(strategy.parameters(), *flat, bad);
    }
    reasons = world.texts(reason, what);
  }
  std::string where;
  for (size_t rank = reasons.size(); rank-- > 0;)
    if (!reasons[rank].empty()) {
      reason = reasons[rank];
      where = world.size() > 1 ? str(" on rank ", rank) : "";
    }
  fail(bad.gradient ? str("gradient is not finite, though the loss is (", bad.loss, ")")
                    : str("loss is not finite (", bad.loss, ")"),
       where, " at epoch ", bad.epoch, ", step ", bad.first < bad.last ? str(bad.first, " to ") : "", bad.last, ": ",
       reason, ". The last good checkpoint is kept");
}

}  // namespace weft::train
