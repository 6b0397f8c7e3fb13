// SPDX-License-Identifier: Apache-2.0
// The sums of all gradients over all ranks. This code has a bug.
#include <nccl.h>
#include <functional>
#include <vector>

/// next(stream) enqueues one more layer's backward, and returns that layer, or -1 when all are done. The order differs
/// from rank to rank. gradients[l] has sizes[l] numbers, and holds the sum over all ranks in the end.
void backward(const std::function<int(cudaStream_t)>& next, int layers, float* const* gradients, const int* sizes,
              ncclComm_t comm, cudaStream_t stream) {
  for (int layer; (layer = next(stream)) >= 0;)
    ncclAllReduce(gradients[layer], gradients[layer], sizes[layer], ncclFloat, ncclSum, comm, stream);
}
