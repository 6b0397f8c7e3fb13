// SPDX-License-Identifier: Apache-2.0
#include "kernels/mixed_targets.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/wrong_index.cuh"

// Grid-stride, 256 threads a block, one element of the targets per thread, no barrier. A batch has few of them (256
// images of 1000 classes: 1 MB); the launch dominates the cost.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kThreads = 256;

__global__ void mixed_targets_kernel(float* targets, const int64_t* labels, int64_t N, int64_t C, float own,
                                     float other, const WrongIndexReport report) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < N * C; i += step) {
    const int64_t n = i / C, c = i - n * C, label = labels[n], before = labels[n == 0 ? N - 1 : n - 1];
    const bool known = label >= 0 && label < C && before >= 0 && before < C;
    if (c == 0 && (label < 0 || label >= C)) report(label, n);
    targets[i] = known ? (c == label ? own : 0.0f) + (c == before ? other : 0.0f) : NAN;
  }
}

}  // namespace

void mixed_targets(const Queue& queue, const View& targets, const View& labels, double own) {
  WEFT_CHECK(targets.rank == 2 && labels.rank == 1 && targets.sizes[0] == labels.sizes[0] &&
                 targets.dtype == DType::f32 && targets.is_contiguous() && labels.is_contiguous(),
             "mixed_targets: expected contiguous targets f32 [N, C] and labels [N], got ", targets, " and ", labels);
  launch(queue, "mixed_targets", dim3(blocks_for(targets.numel(), kThreads)), dim3(kThreads), 0, &mixed_targets_kernel,
         targets.as<float>(), static_cast<const int64_t*>(labels.as<int64_t>()), targets.sizes[0], targets.sizes[1],
         static_cast<float>(own), static_cast<float>(1 - own),
         WrongIndexReport{wrong_index_record(queue.device),
                          {.text = WrongIndex::Text::label, .op = "mixed_targets", .limit = targets.sizes[1]}});
}

}  // namespace weft::kernels::WEFT_DEVICE
