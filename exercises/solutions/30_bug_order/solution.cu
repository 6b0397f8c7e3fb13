// SPDX-License-Identifier: Apache-2.0
#include <nccl.h>
#include <functional>
#include <vector>

/// next(stream) enqueues one more layer's backward, and returns that layer, or -1 when all are done. The order differs
/// from rank to rank. gradients[l] has sizes[l] numbers, and holds the sum over all ranks in the end.
void backward(const std::function<int(cudaStream_t)>& next, int layers, float* const* gradients, const int* sizes,
              ncclComm_t comm, cudaStream_t stream) {
  const auto add_up = [&](int l) {
    ncclAllReduce(gradients[l], gradients[l], sizes[l], ncclFloat, ncclSum, comm, stream);
  };
  std::vector<bool> there(layers);
  int due = layers - 1;
  for (int layer; (layer = next(stream)) >= 0;) {
    there[layer] = true;
    for (; due >= 0 && there[due]; --due) add_up(due);
  }
}
