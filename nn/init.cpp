// SPDX-License-Identifier: Apache-2.0
#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/autograd.h"
#include "core/ops/random.h"

namespace weft::nn {
namespace {

thread_local bool skipping = false;

/// gain / sqrt(fan); a weight without inputs or outputs gets 0 elements, whatever the scale.
double kaiming_std(const Tensor& weight, KaimingOptions options) {
  const Fans fans = fans_of(weight);
  const double fan = static_cast<double>(std::max<int64_t>(options.fan == Fan::in ? fans.in : fans.out, 1));
  return std::sqrt(2 / (1 + options.slope * options.slope) / fan);
}

}  // namespace

Fans fans_of(const Tensor& weight) {
  WEFT_CHECK(weight.dim() >= 2, "fans_of: expected a weight of at least 2 dimensions, got ", weight);
  int64_t receptive = 1;
  for (int d = 1; d < weight.dim() - 1; ++d) receptive *= weight.size(d);
  return {weight.size(-1) * receptive, weight.size(0) * receptive};
}

SkipInit::SkipInit() : outer_(std::exchange(skipping, true)) {}
SkipInit::~SkipInit() { skipping = outer_; }

void kaiming_uniform_(const Tensor& weight, KaimingOptions options) {
  const NoGrad no_grad;
  const double bound = std::sqrt(3.0) * kaiming_std(weight, options);
  uniform_(weight, -bound, bound);
}

void kaiming_normal_(const Tensor& weight, KaimingOptions options) {
  const NoGrad no_grad;
  normal_(weight, 0, kaiming_std(weight, options));
}

void init_weight_(const Tensor& weight, Init init) {
  if (skipping) return;
  if (init == Init::transformer)
    init_normal_(weight, 0.02);
  else if (init == Init::kaiming_uniform)
    kaiming_uniform_(weight, {.slope = std::sqrt(5.0)});
  else
    kaiming_normal_(weight, {.fan = init == Init::kaiming_normal ? Fan::in : Fan::out});
}

void bias_uniform_(const Tensor& bias, const Tensor& weight) {
  const NoGrad no_grad;
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(fans_of(weight).in, 1)));
  uniform_(bias, -bound, bound);
}

void init_bias_(const Tensor& bias, const Tensor& weight, Init init) {
  if (skipping) return;
  const NoGrad no_grad;
  if (init == Init::transformer)
    bias.zero_();
  else
    bias_uniform_(bias, weight);
}

void init_normal_(const Tensor& x, double std) {
  if (skipping) return;
  const NoGrad no_grad;
  normal_(x, 0, std);
}

}  // namespace weft::nn
