// SPDX-License-Identifier: Apache-2.0
#include "nn/mlp.h"

#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace weft::nn {

Mlp::Mlp(int64_t width, int64_t hidden)
    : fc1(width, hidden, {.init = Init::transformer}), fc2(hidden, width, {.init = Init::transformer}) {}

Tensor Mlp::forward(const Tensor& x) const { return fc2(fc1.forward_gelu(x)); }

void Mlp::fields(Visitor& v) {
  v("fc1", fc1);
  v("fc2", fc2);
}

SwiGlu::SwiGlu(int64_t width, int64_t hidden)
    : w12(width, 2 * hidden, {.init = Init::transformer}), w3(hidden, width, {.init = Init::transformer}) {}

Tensor SwiGlu::forward(const Tensor& x) const {
  const Tensor both = w12(x);
  const int64_t hidden = both.size(-1) / 2;
  const Tensor a = both.slice(-1, 0, hidden), b = both.slice(-1, hidden, hidden);
  return w3(a * sigmoid(a) * b);
}

void SwiGlu::fields(Visitor& v) {
  v("w12", w12);
  v("w3", w3);
}

}  // namespace weft::nn
