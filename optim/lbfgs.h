// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/flat_parameters.h"
#include "optim/line_search.h"

namespace weft::optim {

struct LbfgsOptions {
  int64_t max_iterations = 1000;
  int history = 10;                  ///< pairs of steps and gradient changes to keep
  double gradient_tolerance = 1e-8;  ///< ends if no element of the gradient is larger
  double loss_tolerance = 1e-12;     ///< ends if an iteration lowers the loss by less than this share; 0: never
  LineSearchOptions line_search{};
};

/// Why minimize() ended.
enum class LbfgsEnd : uint8_t { gradient, loss, iterations, line_search };
/// `gradient`, `loss`, `iterations`, `line_search`.
const char* name(LbfgsEnd end);

struct LbfgsResult {
  double loss = 0;
  double largest_gradient = 0;  ///< of any element
  int64_t iterations = 0, evaluations = 0;
  LbfgsEnd end = LbfgsEnd::iterations;
};

/// L-BFGS: each step goes along -H g, where H approximates the inverse Hessian by the last steps s and changes y of the
/// gradient (Nocedal 1980; Nocedal and Wright 2006, algorithm 7.4, first H = s'y / y'y), with the length from a line
/// search with the strong Wolfe conditions. For deterministic losses (all examples, no dropout). The parameters are
/// moved into flat buffers, as by any optimizer; f64 reaches smaller tolerances.
class Lbfgs {
 public:
  /// Errors: no parameter requires a gradient, no history, a tolerance below 0.
  explicit Lbfgs(const std::vector<NamedTensor>& parameters, const LbfgsOptions& options = {});

  /// Lowers `loss` from where the parameters are until a tolerance is met. `loss` runs the backward pass and returns
  /// the value; the gradients are zero before. On several ranks it reduces values and gradients (flat()->gradient()),
  /// and all ranks take the same steps. Errors: a loss or gradient that is not finite at the start.
  LbfgsResult minimize(const std::function<double()>& loss);

  const std::shared_ptr<FlatParameters>& flat() const { return flat_; }

 private:
  struct Pair {
    Tensor step, change;  // of the parameters; of the gradient
    double product;       // step · change, above 0
  };

  double evaluate(const std::function<double()>& loss, LbfgsResult& result);
  void move_to(const Tensor& start, const Tensor& direction, double step);
  Tensor direction(const Tensor& gradient) const;
  void remember(const Tensor& step, const Tensor& change);

  LbfgsOptions options_;
  std::shared_ptr<FlatParameters> flat_;
  std::deque<Pair> pairs_;  // the newest last
};

}  // namespace weft::optim
