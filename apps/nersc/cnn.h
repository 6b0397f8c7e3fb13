// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/module.h"
#include "nn/sequential.h"

namespace weft::nersc {

struct CnnOptions {
  int64_t in = 1, out = 1;
  int64_t depth = 5;   ///< convolutions in all, at least 2
  int64_t width = 64;  ///< channels between them
};

/// Convolutions of 3 x 3 that keep the size, each followed by a leaky ReLU (0.01): [N, H, W, in] -> [N, H, W, out].
/// Names: conv_in.0.weight, conv_hidden.0.0.weight, …, conv_out.0.weight.
struct Cnn : nn::Module {
  std::shared_ptr<nn::Sequential> conv_in, conv_hidden, conv_out;

  /// Errors: a depth below 2.
  explicit Cnn(const CnnOptions& options = {});
  Tensor forward(const Tensor& x) const override { return (*conv_out)((*conv_hidden)((*conv_in)(x))); }
  void fields(nn::Visitor& v) override;
};

}  // namespace weft::nersc
