// SPDX-License-Identifier: Apache-2.0
#include "core/check_gradient.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/autograd.h"
#include "core/random.h"

namespace weft {

void check_gradient(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                    const std::vector<Tensor>& inputs, CheckGradientOptions options) {
  std::mt19937_64 random(options.seed);
  std::vector<Tensor> leaves;
  bool any = false;
  for (const Tensor& x : inputs) {
    Tensor leaf = x.detach();
    if (x.requires_grad()) {
      WEFT_CHECK(x.dtype() == DType::f64 || x.dtype() == DType::f32,
                 "check_gradient: expected inputs of f64 or f32, got ", x);
      leaf.requires_grad_();
      any = true;
    }
    leaves.push_back(leaf);
  }
  WEFT_CHECK(any, "check_gradient: no input requires a gradient. Call requires_grad_() on those to look at");

  manual_seed(options.seed);
  const Tensor y = function(leaves);
  WEFT_CHECK(y.requires_grad(), "check_gradient: the result ", y,
             " does not depend on the inputs by any op that has a gradient");
  std::normal_distribution<double> normal;
  std::vector<double> weights(static_cast<size_t>(y.numel()));
  for (double& weight : weights) weight = normal(random);
  const Tensor dy = Tensor::from(weights, y.sizes()).to(y.dtype());
  weights = dy.to_vector<double>();
  y.backward(dy.to(y.device()));

  for (size_t i = 0; i < leaves.size(); ++i) {
    const Tensor& leaf = leaves[i];
    if (!leaf.requires_grad() || leaf.numel() == 0) continue;
    WEFT_CHECK(leaf.grad().defined(), "check_gradient: no gradient for input ", i);
    const bool wide = leaf.dtype() == DType::f64;
    const double step = wide ? 1e-6 : 4e-3, tolerance = wide ? 2e-6 : 2e-3;
    const std::vector<double> gradient = leaf.grad().to_vector<double>(), x = leaf.to_vector<double>();
    double largest = 0;
    for (const double g : gradient) largest = std::max(largest, std::abs(g));
    for (int probe = 0; probe < options.probes; ++probe) {
      std::vector<double> direction(x.size(), 0);
      if (probe >= 3)
        direction[random() % x.size()] = 1;
      else
        for (double& d : direction) d = random() % 2 ? 1 : -1;
      // The sum of y's elements by their weights, where input i has moved.
      const auto value_at = [&](double distance) {
        const NoGrad no_grad;
        std::vector<double> values = x;
        for (size_t k = 0; k < x.size(); ++k) values[k] += distance * direction[k];
        std::vector<Tensor> moved = leaves;
        moved[i] = Tensor::from(values, leaf.sizes()).to(leaf.dtype()).to(leaf.device());
        manual_seed(options.seed);
        const std::vector<double> result = function(moved).to_vector<double>();
        double total = 0;
        for (size_t k = 0; k < result.size(); ++k) total += result[k] * weights[k];
        return total;
      };
      const double slope = (value_at(step) - value_at(-step)) / (2 * step);
      double expected = 0, terms = 0;
      for (size_t k = 0; k < x.size(); ++k) {
        expected += gradient[k] * direction[k];
        terms += std::abs(gradient[k] * direction[k]);
      }
      WEFT_CHECK(std::abs(slope - expected) <= tolerance * (1 + terms + largest), "check_gradient: input ", i,
                 ", probe ", probe, ": expected a gradient of ", slope, " by differences, got ", expected);
    }
  }
}

}  // namespace weft
