// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <unordered_map>
#include <vector>

#include "optim/optimizer.h"

namespace weft::optim {

struct SgdOptions {
  double lr = 1e-3, momentum = 0, dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool maximize = false;
};

/// d = g + weight_decay w; v = momentum v + (1 - dampening) d (v = d at first); w -= lr (nesterov ? d + momentum v : v)
/// (Sutskever et al. 2013, in PyTorch's form). Errors: nesterov without momentum or with dampening.
class SGD : public Optimizer {
 public:
  SGD(const ParameterGroups& parameters, const SgdOptions& options);

 private:
  void update(const Range& range) override;
  SgdOptions options_;
};

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool maximize = false;
  bool amsgrad = false;  ///< the largest v so far in v's place: no step grows because v shrank (Reddi et al. 2018)
};

/// m, v: moving averages of g + weight_decay w and its square, each divided by 1 - beta^step; w -= lr m / (sqrt(v) +
/// eps) (Kingma and Ba 2015). Errors: a beta outside [0, 1), eps below 0.
class Adam : public Optimizer {
 public:
  Adam(const ParameterGroups& parameters, const AdamOptions& options);

 protected:
  Adam(const char* name, const std::vector<ParameterGroup>& groups, const AdamOptions& options, bool decoupled);

 private:
  void update(const Range& range) override;
  AdamOptions options_;
  bool decoupled_;
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool maximize = false;
  bool amsgrad = false;  ///< the largest v so far in v's place: no step grows because v shrank (Reddi et al. 2018)
};

/// Adam whose weight decay acts on the weights alone: w -= lr weight_decay w (Loshchilov and Hutter 2019).
class AdamW : public Adam {
 public:
  AdamW(const ParameterGroups& parameters, const AdamWOptions& options);
};

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};

/// s += g^2; w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps) (Duchi et al. 2011); s begins with
/// initial_accumulator_value. Errors: a number below 0.
class Adagrad : public Optimizer {
 public:
  Adagrad(const ParameterGroups& parameters, const AdagradOptions& options);

 private:
  void update(const Range& range) override;
  AdagradOptions options_;
};

struct AdadeltaOptions {
  double lr = 1.0, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};

/// s = rho s + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(s + eps) g; u = rho u + (1 - rho) d^2; w -= lr d (Zeiler 2012).
/// Errors: rho outside [0, 1], eps below 0.
class Adadelta : public Optimizer {
 public:
  Adadelta(const ParameterGroups& parameters, const AdadeltaOptions& options);

 private:
  void update(const Range& range) override;
  AdadeltaOptions options_;
};

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
  bool maximize = false;
};

/// s = alpha s + (1 - alpha) g^2; v = momentum v + g / (sqrt(s) + eps); w -= lr v (Hinton 2012, in PyTorch's form).
/// Centered: the root of s - a^2, a the moving average of g (Graves 2013). Errors: alpha outside [0, 1], eps or
/// momentum below 0.
class RMSprop : public Optimizer {
 public:
  RMSprop(const ParameterGroups& parameters, const RMSpropOptions& options);

 private:
  void update(const Range& range) override;
  RMSpropOptions options_;
};

struct LionOptions {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  bool maximize = false;
};

/// w -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay w); m = beta2 m + (1 - beta2) g (Chen et al. 2023). Every
/// weight moves by lr: rates are 3 to 10 times below Adam's, decays as much above. Errors: a beta outside [0, 1).
class Lion : public Optimizer {
 public:
  Lion(const ParameterGroups& parameters, const LionOptions& options);

 private:
  void update(const Range& range) override;
  LionOptions options_;
};

/// The base of optimizers that move each parameter by its own norms: LARS and LAMB. The norms are of the whole
/// parameter, also if ranks hold parts of it (a gather per step then). Groups without weight decay (biases, norms)
/// move as they would without norms, as is usual, unless `always_adapt` is set.
class ByParameter : public Optimizer {
 protected:
  ByParameter(const char* name, const std::vector<ParameterGroup>& groups, double lr, double weight_decay,
              std::vector<std::string> states, bool always_adapt);

  bool adapts(int group) const { return always_adapt_ || weight_decay(group) != 0; }
  /// Squared norms of each parameter in each of these flat buffers: [buffers, parameters]; undefined where no group
  /// needs it.
  Tensor squares(const std::vector<Tensor>& buffers) const;
  /// Which elements belong to which parameter of a launch (kernels/contracts/optimizer.h).
  const Tensor& chunks(const Launch& launch) const {
    return chunks_.at(static_cast<size_t>(&launch - launches().data()));
  }

 private:
  void launches_changed() override;

  bool always_adapt_;
  Tensor all_chunks_, firsts_;  // chunks of the slices in their order
  std::vector<Tensor> chunks_;  // chunks by launch
};

struct LarsOptions {
  double lr = 1, momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 1e-4;
  double trust = 0.001, eps = 1e-8;
  bool always_adapt = false;  ///< parameters without weight decay too
  bool maximize = false;
};

/// SGD with momentum for large batches: each parameter's gradient is scaled by trust |w| / (|g| + weight_decay |w| +
/// eps), so that its step is a share of its weights (You et al. 2017). Errors: a momentum, trust or eps below 0.
class LARS : public ByParameter {
 public:
  LARS(const ParameterGroups& parameters, const LarsOptions& options);

 private:
  void update_all() override;
  LarsOptions options_;
};

struct LambOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 1e-2;
  bool clip_trust = false;    ///< no parameter moves faster than AdamW would
  bool always_adapt = false;  ///< parameters without weight decay too
  bool maximize = false;
};

/// AdamW for large batches: u = mhat / (sqrt(vhat) + eps) + weight_decay w; w -= lr |w| / |u| u for each parameter (You
/// et al. 2020). Clip the gradient by its norm before, as the paper's BERT does. Errors: a beta outside [0, 1), eps
/// below 0.
class LAMB : public ByParameter {
 public:
  LAMB(const ParameterGroups& parameters, const LambOptions& options);

 private:
  void update_all() override;
  LambOptions options_;
};

struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8;
  std::optional<double> eps1 = {};  ///< left out: the machine epsilon of the weights' dtype
  double eps2 = 1e-3, d = 1, weight_decay = 0;
  bool maximize = false;
};

/// Keeps averages of g^2 for rows and columns in place of elements (Shazeer and Stern 2018, in PyTorch's form). With
/// b = step^beta2_decay, over the last two dimensions: R += b (mean of g^2 over a row - R), C likewise over columns,
/// V = R C / max(mean of R, eps1); of parameters of at most one dimension V += b (g^2 - V). u = g / max(sqrt(V), eps1);
/// w -= lr weight_decay w + max(eps2, rms(w)) min(lr, 1 / sqrt(step)) u / max(1, rms(u) / d). A convolution's weight is
/// OHWI here, so its rows and columns are other ones than PyTorch's. Written in ops, parameter by parameter: beside the
/// averages a step needs memory for the largest parameter only. Errors: parameters that are divided among ranks (FSDP,
/// TensorParallel); beta2_decay above 0, an eps below 0, d below 1.
class Adafactor : public Optimizer {
 public:
  Adafactor(const ParameterGroups& parameters, const AdafactorOptions& options);

 private:
  void update_all() override;
  void added(int group, const NamedTensor& parameter) override;
  /// One parameter: where it lies, R and C; of at most one dimension V in C's place, and no R.
  struct Moments {
    FlatSlice slice;
    Tensor rows, columns;
  };
  AdafactorOptions options_;
  std::unordered_map<const TensorImpl*, Moments> moments_;
};

}  // namespace weft::optim
