// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// Elements from row to row of a matrix.
inline int64_t row_pitch(const View& x) { return x.sizes[0] > 1 ? x.strides[0] : x.sizes[1]; }
/// A matrix whose rows are dense and do not overlap.
inline bool has_rows(const View& x) {
  return x.rank == 2 && (x.sizes[1] <= 1 || x.strides[1] == 1) && row_pitch(x) >= x.sizes[1];
}

struct CrossEntropyArguments {
  double label_smoothing = 0;   ///< e: the target becomes (1 - e) t + e / C (Szegedy et al. 2016, section 7)
  int64_t ignore_index = -100;  ///< rows with this class give loss 0 and gradient 0
  bool is_part = false;  ///< backward: of classes that ranks divide; a class outside [0, C) is another rank's, not wrong
};

/// Per-row cross entropy of logits [N, C] (floating, rows dense and any distance apart) against `target`: classes i64
/// [N], or probabilities [N, C] of the logits' dtype. loss [N] and lse [2, N] are f32 (f64 for f64); lse: the rows'
/// maxima, then the logs of the sums of exp(logits - maximum); they are separate because their sum would round to the
/// precision of the logits' magnitude. weight [N] (f32/f64, for class targets) receives 1, or 0 where the row is
/// ignored; for probability targets, 1. A class outside [0, C) that is not ignore_index gives NaN in loss and, on a
/// device, a record (wrong_index.h); on the CPU the op has checked them. The probabilities are never stored.
WEFT_KERNEL(cross_entropy_forward, const Queue& queue, const View& loss, const View& lse, const View& weight,
            const View& logits, const View& target, CrossEntropyArguments arguments);

/// dlogits[n, c] = dloss[n] (softmax(logits)[n, c] * sum_c(t) - t[n, c]) with the smoothed target t; 0 on ignored rows.
/// dloss [N] has the dtype of lse, and any stride (0 if equal for all rows). dlogits is laid out as the logits, and may
/// be their memory.
WEFT_KERNEL(cross_entropy_backward, const Queue& queue, const View& dlogits, const View& dloss, const View& logits,
            const View& lse, const View& target, CrossEntropyArguments arguments);

}  // namespace weft::kernels
