// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/optimizer.h"

namespace weft::optim {

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool maximize = false;
  bool amsgrad = false;  ///< the largest v so far in v's place: no step grows because v shrank (Reddi et al. 2018)
};

/// m, v: moving averages of g + weight_decay w and its square, each divided by 1 - beta^step; w -= lr m / (sqrt(v) +
/// eps) (Kingma and Ba 2015). Errors: a beta outside [0, 1), eps below 0.
class Adam : public Optimizer {
 public:
  Adam(const std::vector<NamedTensor>& parameters, const AdamOptions& options);
  Adam(const std::vector<ParameterGroup>& groups, const AdamOptions& options);

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
  AdamW(const std::vector<NamedTensor>& parameters, const AdamWOptions& options);
  AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options);
};

}  // namespace weft::optim
