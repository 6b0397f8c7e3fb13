// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/flat_parameters.h"

namespace weft::optim {

/// A point on a line: its distance from the start, the loss and its slope along the line.
struct LinePoint {
  double step = 0, loss = 0, slope = 0;
};

struct LineSearchOptions {
  double decrease = 1e-4;   ///< c1: the loss must fall by this share of the decrease that the start's slope predicts
  double curvature = 0.9;   ///< c2: the slope must shrink to this share
  double rounding = 1e-14;  ///< relative rounding error of a loss
  int evaluations = 50;     ///< at most
};

struct LineSearchResult {
  LinePoint point;
  bool found = false;  ///< false: the best point seen, which may be the start itself
  int evaluations = 0;
};

namespace detail {
/// A step along a line that satisfies the strong Wolfe conditions: loss <= start.loss + c1 step start.slope; |slope| <=
/// c2 |start.slope| (Nocedal and Wright 2006, algorithms 3.5 and 3.6, interpolation 3.59). Where two losses
/// differ by no more than their rounding, the slopes decide: slope <= (2 c1 - 1) start.slope replaces the first
/// condition (Hager and Zhang 2005, section 3). `start.step` is 0 and `start.slope` below 0; `at(step)` evaluates a
/// point; `first` is tried first. A NaN loss counts as too far. Errors: a start that does not slope downwards, options
/// outside 0 < c1 < c2 < 1.
LineSearchResult strong_wolfe(const LinePoint& start, double first, const std::function<LinePoint(double step)>& at,
                              const LineSearchOptions& options = {});
}  // namespace detail

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
  double largest_gradient = 0;  ///< largest absolute element of the gradient
  int64_t iterations = 0, evaluations = 0;
  LbfgsEnd end = LbfgsEnd::iterations;
};

/// L-BFGS: each step goes along -H g, where H approximates the inverse Hessian by the last steps s and changes y of the
/// gradient (Nocedal 1980; Nocedal and Wright 2006, algorithm 7.4, first H = s'y / y'y), with the length from a line
/// search with the strong Wolfe conditions. For deterministic losses (all examples, no dropout). The parameters are
/// moved into flat buffers, as by any optimizer; f64 reaches smaller tolerances.
class Lbfgs {
 public:
  /// Errors: no parameter requires a gradient, one that ranks divide (FSDP, TensorParallel, Pipeline), no history, a
  /// tolerance below 0.
  explicit Lbfgs(const std::vector<NamedTensor>& parameters, const LbfgsOptions& options = {});

  /// Lowers `loss` from where the parameters are until a tolerance is met. `loss` runs the backward pass and returns
  /// the value; the gradients are zero before. On several ranks it reduces values and gradients (flat()->gradient()),
  /// and all ranks take the same steps. Errors: a loss or gradient that is not finite at the start.
  LbfgsResult minimize(const std::function<double()>& loss);

  const std::shared_ptr<FlatParameters>& flat() const { return flat_; }

 private:
  struct Pair {
    Tensor step, change;  // step along the parameters; change of the gradient
    double product;       // step · change, above 0
  };

  /// The parameters that are trained now.
  void bind();
  /// A copy of the trained parameters' gradient; 0 elsewhere in the flat buffers.
  Tensor gradient();
  double evaluate(const std::function<double()>& loss, LbfgsResult& result);
  void move_to(const Tensor& start, const Tensor& direction, double step);
  Tensor direction(const Tensor& gradient) const;
  void remember(const Tensor& step, const Tensor& change);

  std::vector<NamedTensor> parameters_;
  LbfgsOptions options_;
  std::shared_ptr<FlatParameters> flat_;
  std::vector<FlatRange> ranges_;
  std::vector<Pair> pairs_;  // the newest last
};

}  // namespace weft::optim
