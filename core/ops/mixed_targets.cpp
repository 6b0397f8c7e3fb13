// SPDX-License-Identifier: Apache-2.0
#include "core/ops/mixed_targets.h"

#include "core/trace.h"
#include "kernels/mixed_targets.h"
#include "kernels/wrong_index.h"

namespace weft {

Tensor mixed_targets(const Tensor& labels, int64_t classes, double own) {
  const OpScope scope("mixed_targets");
  WEFT_CHECK(labels.defined() && labels.dtype() == DType::i64 && labels.dim() == 1,
             "mixed_targets: expected labels i64[N], got ", labels);
  WEFT_CHECK(classes >= 1, "mixed_targets: expected at least one class, got ", classes);
  WEFT_CHECK(own >= 0 && own <= 1, "mixed_targets: expected a share of the image's own label from 0 to 1, got ", own);
  const Tensor whole = labels.contiguous();
  if (labels.device().kind == DeviceKind::cpu)
    for (int64_t n = 0; n < labels.size(0); ++n) {
      const int64_t label = whole.data<int64_t>()[n];
      if (label < 0 || label >= classes)
        throw Error(kernels::text_of({.text = kernels::WrongIndex::Text::label,
                                      .op = "mixed_targets",
                                      .value = label,
                                      .at = n,
                                      .limit = classes},
                                     {}));
    }
  const Tensor targets = Tensor::empty({labels.size(0), classes}, DType::f32, labels.device());
  kernels::mixed_targets(targets.queue(), targets, whole, own);
  return targets;
}

}  // namespace weft
