// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/cnn.h"

#include "nn/activation.h"
#include "nn/conv.h"

namespace weft::nersc {
namespace {

std::shared_ptr<nn::Sequential> block(int64_t in, int64_t out) {
  return nn::sequential(std::make_shared<nn::Conv2d>(in, out, Size2d{3, 3}, Conv2dOptions{.padding = {1, 1}}),
                        std::make_shared<nn::LeakyReLU>(0.01));
}

}  // namespace

Cnn::Cnn(const CnnOptions& options) {
  WEFT_CHECK(options.depth >= 2, "cnn: expected a depth of at least 2, got ", options.depth);
  conv_in = block(options.in, options.width);
  conv_hidden = std::make_shared<nn::Sequential>();
  for (int64_t i = 0; i < options.depth - 2; ++i) conv_hidden->add(block(options.width, options.width));
  conv_out = block(options.width, options.out);
}

void Cnn::fields(nn::Visitor& v) {
  v("conv_in", conv_in);
  v("conv_hidden", conv_hidden);
  v("conv_out", conv_out);
}

}  // namespace weft::nersc
