// SPDX-License-Identifier: Apache-2.0
#include "core/ops/one_hot.h"

#include <algorithm>

#include "core/ops/compare.h"

namespace weft {

Tensor one_hot(const Tensor& labels, int64_t classes, DType dtype) {
  WEFT_CHECK(labels.defined() && !labels.is_floating() && labels.dtype() != DType::boolean,
             "one_hot: expected integer labels, got ", labels);
  WEFT_CHECK(classes > 0, "one_hot: expected at least one class, got ", classes);
  if (labels.device().kind == DeviceKind::cpu)
    for (const int64_t label : labels.to_vector<int64_t>())
      WEFT_CHECK(label >= 0 && label < classes, "one_hot: expected labels from 0 to ", classes - 1, ", got ", label);
  return eq(labels.unsqueeze(-1), Tensor::arange(classes, labels.dtype(), labels.device())).to(dtype);
}

}  // namespace weft
