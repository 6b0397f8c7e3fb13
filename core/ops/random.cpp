// SPDX-License-Identifier: Apache-2.0
#include "core/ops/random.h"

#include <cmath>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/broadcast.h"
#include "core/ops/compare.h"
#include "core/ops/index.h"
#include "core/ops/reduce.h"
#include "core/ops/sort.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "core/trace.h"
#include "kernels/contracts/copy.h"
#include "kernels/contracts/cumsum.h"
#include "kernels/contracts/random.h"

namespace weft {
namespace {

/// Takes as many Philox blocks from the device's generator as `n` elements of `dtype` use (kernels/contracts/random.h).
kernels::RandomArguments draw(Device device, int64_t n, DType dtype) {
  const uint64_t per_block = dtype == DType::f64 || dtype == DType::i64 ? 2 : 4;
  return {generator(device).take((static_cast<uint64_t>(n) + per_block - 1) / per_block)};
}

/// Fills x by `kernel(view, state, arguments)`; the kernels want dense memory.
template <class Kernel>
const Tensor& fill_randomly(const char* op, const Tensor& x, Kernel&& kernel) {
  const OpScope scope(op);
  WEFT_CHECK(x.defined(), op, ": expected a tensor, got none");
  WEFT_CHECK(!wants_gradient(x), op, ": ", x,
             " needs a gradient and cannot be changed in place while gradients are recorded. "
             "Wrap the change in weft::NoGrad");
  check_own_elements(op, x);
  const Tensor dense = x.is_contiguous() ? x : empty_like(x);
  kernel(dense, random_state(x.device()), draw(x.device(), x.numel(), x.dtype()));
  if (!dense.is_same(x)) kernels::copy(x.queue(), x, dense);
  x.storage()->bump_version();
  return x;
}

}  // namespace

const Tensor& uniform_(const Tensor& x, double low, double high) {
  WEFT_CHECK(x.defined() && x.is_floating(), "uniform: expected a floating tensor, got ", x);
  const kernels::UniformRange range = kernels::uniform_range(x.dtype(), low, high);
  return fill_randomly("uniform", x, [&](const Tensor& y, const Tensor& state, kernels::RandomArguments random) {
    kernels::random_uniform(y.queue(), y, state, random, range);
  });
}

const Tensor& normal_(const Tensor& x, double mean, double std) {
  WEFT_CHECK(x.defined() && x.is_floating(), "normal: expected a floating tensor, got ", x);
  WEFT_CHECK(std >= 0 && std::isfinite(std) && std::isfinite(mean),
             "normal: expected a finite mean and a finite std of at least 0, got ", mean, " and ", std);
  return fill_randomly("normal", x, [&](const Tensor& y, const Tensor& state, kernels::RandomArguments random) {
    kernels::random_normal(y.queue(), y, state, random, mean, std);
  });
}

Tensor uniform(const Shape& sizes, double low, double high, DType dtype, Device device) {
  return uniform_(Tensor::empty(sizes, dtype, device), low, high);
}

Tensor normal(const Shape& sizes, double mean, double std, DType dtype, Device device) {
  return normal_(Tensor::empty(sizes, dtype, device), mean, std);
}

Tensor randint(const Shape& sizes, Integer least, Integer end, Device device) {
  const int64_t low = least, high = end;
  WEFT_CHECK(low < high, "randint: expected low < high, got ", low, " and ", high);
  const NoGrad no_grad;
  const uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  WEFT_CHECK(count <= uint64_t{1} << 53, "randint: expected at most 2^53 numbers to draw from, got ", count, " from ",
             low, " to ", high);
  return fill_randomly("randint", Tensor::empty(sizes, DType::i64, device),
                       [&](const Tensor& y, const Tensor& state, kernels::RandomArguments random) {
                         kernels::random_integers(y.queue(), y, state, random, low, static_cast<int64_t>(count));
                       });
}

Tensor multinomial(const Tensor& weights, Integer count, bool replacement) {
  WEFT_CHECK(weights.defined() && weights.is_floating() && weights.dim() >= 1 && weights.size(-1) > 0,
             "multinomial: expected floating weights [..., classes], got ", weights);
  WEFT_CHECK(count >= 1, "multinomial: expected a count of at least 1, got ", count);
  WEFT_CHECK(replacement || count <= weights.size(-1), "multinomial: expected at most ", weights.size(-1),
             " classes without replacement, got ", count);
  const NoGrad no_grad;
  const int64_t C = weights.size(-1);
  if (replacement || count == 1) {  // where a draw falls among the sums of the weights, which are f64
    const Tensor sums = Tensor::empty(weights.sizes(), DType::f64, weights.device());
    kernels::cumsum(sums.queue(), sums, weights.contiguous(), false);
    const Tensor total = sums.slice(-1, C - 1, 1);
    Shape sizes = weights.sizes();
    sizes[sizes.rank() - 1] = count;
    const Tensor fine = logical_and(isfinite(total.squeeze(-1)), gt(total.squeeze(-1), 0.0));
    const Tensor classes = searchsorted(sums, mul(uniform(sizes, 0, 1, DType::f64, weights.device()), total), true);
    kernels::check_weights(fine.queue(), logical_and(fine, ge(min(weights, {-1}), 0.0)).contiguous(), 1);
    return classes;
  }
  // The largest of log w + g, g of Gumbel's distribution, is class c with probability w_c / sum (Gumbel 1954). The
  // second largest is the largest among the other classes, and so on (Vieira 2014). No draw is 0, whose g is -infinity:
  // a class of weight 0 would be as likely then.
  const Tensor draws = clamp(uniform(weights.sizes(), 0, 1, DType::f32, weights.device()), 0x1p-25, 1);
  const Tensor logits = log(weights.dtype() == DType::f64 ? weights : weights.to(DType::f32)).to(DType::f32);
  const auto [values, classes] = topk(sub(logits, log(neg(log(draws)))), count);
  // The logarithm of a weight that is none is NaN or infinity, and NaN wins; that of 0 is -infinity.
  const Tensor fine = logical_and(isfinite(max(logits, {-1})), isfinite(min(values, {-1})));
  kernels::check_weights(fine.queue(), fine.contiguous(), int64_t{count});
  return classes;
}

Tensor bernoulli(const Shape& sizes, double p, DType dtype, Device device) {
  WEFT_CHECK(p >= 0 && p <= 1, "bernoulli: expected p in [0, 1], got ", p);
  return fill_randomly("bernoulli", Tensor::empty(sizes, dtype, device),
                       [&](const Tensor& y, const Tensor& state, kernels::RandomArguments random) {
                         kernels::random_bernoulli(y.queue(), y, state, random, p);
                       });
}

Tensor permutation(Integer n, Device device) {
  const OpScope scope("permutation");
  WEFT_CHECK(n >= 0, "permutation: expected n of at least 0, got ", n);
  const Tensor y = Tensor::empty({n}, DType::i64, device);
  kernels::random_permutation(y.queue(), y, random_state(device), {generator(device).take(1)});
  return y;
}

namespace {

Tensor masked(const Tensor& x, const Tensor& state, kernels::RandomArguments random, double p) {
  const Tensor dense = x.contiguous(), y = empty_like(x);
  kernels::dropout(y.queue(), y, dense, state, random, p);
  return differentiable(y, "dropout", {x}, [=](const Tensor& dy) { return Grads{masked(dy, state, random, p)}; });
}

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training) {
  const OpScope scope("dropout");
  WEFT_CHECK(x.defined() && x.is_floating(), "dropout: expected a floating tensor, got ", x);
  WEFT_CHECK(p >= 0 && p <= 1, "dropout: expected p in [0, 1], got ", p);
  if (!training || p == 0) return x;
  if (p == 1) return affine(x, 0, 0);
  const Tensor state = dropout_state(x.device());
  return masked(x, state, draw(x.device(), x.numel(), x.dtype()), p);
}

Tensor feature_dropout(const Tensor& x, double p, bool training) {
  const OpScope scope("feature_dropout");
  WEFT_CHECK(x.defined() && x.is_floating() && x.dim() >= 2,
             "feature_dropout: expected a floating tensor [N, ..., C], got ", x);
  WEFT_CHECK(p >= 0 && p <= 1, "feature_dropout: expected p in [0, 1], got ", p);
  if (!training || p == 0) return x;
  Shape sizes = x.sizes();
  for (int d = 1; d + 1 < sizes.rank(); ++d) sizes[d] = 1;
  return mul(x, dropout(Tensor::ones(sizes, x.dtype(), x.device()), p));
}

}  // namespace weft
