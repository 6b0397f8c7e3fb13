// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/init.h"
#include "nn/module.h"

namespace weft::nn {

/// y [..., size] = the rows of weight [count, size] at the integers x [...]. Errors: an integer outside of the table
/// (on the CPU; NaN on other devices).
struct Embedding : Module {
  Tensor weight;
  int64_t padding;  ///< the row of this number is 0 at first and gets no gradient; -1: none

  /// Rows from a normal distribution of standard deviation `std`.
  Embedding(int64_t count, int64_t size, double std = 0.02, int64_t padding_row = -1);
  Tensor forward(const Tensor& x) const override;
  /// x [..., size] weight^T, [..., count]: an output layer with the weight of this table (Press and Wolf 2017). The
  /// module is called a second time by it: hooks see x, and sharding gathers the weight for it.
  Tensor tied_linear(const Tensor& x) const;
  void fields(Visitor& v) override;
};

}  // namespace weft::nn
