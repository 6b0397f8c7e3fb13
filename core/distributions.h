// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

// Distributions over elements of tensors. Parameters broadcast, and have gradients through log_prob, entropy,
// kl_divergence and, where there is one, rsample. Numbers are drawn from the device's generator (core/random.h).
// Errors: parameters that are not floating, or of different dtypes or devices; on the CPU (a GPU is not waited for)
// impossible ones: std <= 0, low >= high, NaN, a row of logits without a finite largest one.
namespace weft::distributions {

/// N(mean, std^2).
class Normal {
 public:
  Normal(Tensor mean, Tensor std);
  Tensor rsample() const;                  ///< mean + std * normal: gradients reach the parameters
  Tensor sample() const;                   ///< rsample() without gradients
  Tensor log_prob(const Tensor& x) const;  ///< natural logarithm of the density
  Tensor entropy() const;
  const Tensor& mean() const { return mean_; }
  const Tensor& std() const { return std_; }

 private:
  Tensor mean_, std_;
};

/// Uniform in [low, high).
class Uniform {
 public:
  Uniform(Tensor low, Tensor high);
  Tensor rsample() const;
  Tensor sample() const;
  Tensor log_prob(const Tensor& x) const;  ///< -infinity outside
  Tensor entropy() const;

 private:
  Tensor low_, high_;
};

/// 1 with probability sigmoid(logit), else 0.
class Bernoulli {
 public:
  explicit Bernoulli(Tensor logits);
  Tensor sample() const;
  Tensor log_prob(const Tensor& x) const;
  Tensor entropy() const;
  const Tensor& logits() const { return logits_; }

 private:
  Tensor logits_;
};

/// A class of each row of `logits` [..., classes], with the probabilities softmax(logits).
class Categorical {
 public:
  explicit Categorical(const Tensor& logits);
  Tensor sample() const;                         ///< i64 [...]
  Tensor log_prob(const Tensor& classes) const;  ///< integers [samples..., ...]
  Tensor entropy() const;                        ///< [...]
  const Tensor& log_probabilities() const { return log_probabilities_; }

 private:
  Tensor log_probabilities_;
};

/// The expectation under p of log p - log q, for each element (Categorical: for each row).
Tensor kl_divergence(const Normal& p, const Normal& q);
Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q);
Tensor kl_divergence(const Categorical& p, const Categorical& q);

}  // namespace weft::distributions

namespace weft {

struct GumbelSoftmaxOptions {
  double tau = 1;     ///< temperature
  bool hard = false;  ///< one-hot rows with the gradients of soft ones
};

/// Samples of a relaxed categorical distribution along the last dimension (Jang et al., Maddison et al., ICLR 2017):
/// softmax((logits + Gumbel noise) / tau). Errors: not floating, a temperature that is not above 0.
Tensor gumbel_softmax(const Tensor& logits, GumbelSoftmaxOptions options = {});

}  // namespace weft
