// SPDX-License-Identifier: Apache-2.0
#include "apps/ml_dist/net.h"

#include "core/ops/pool2d.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"

namespace weft::ml_dist {

Tensor Net::forward(const Tensor& x) const {
  Tensor y = relu(conv2(relu(conv1(x))));
  y = dropout1(max_pool2d(y, {.kernel = {2, 2}, .stride = {2, 2}}));
  y = dropout2(relu(fc1(flatten(y))));
  return log_softmax(fc2(y));
}

void Net::fields(nn::Visitor& v) {
  v("conv1", conv1);
  v("conv2", conv2);
  v("dropout1", dropout1);
  v("dropout2", dropout2);
  v("flatten", flatten);
  v("fc1", fc1);
  v("fc2", fc2);
}

}  // namespace weft::ml_dist
