// SPDX-License-Identifier: Apache-2.0
#include "data/upload.h"

#include "kernels/transfer.h"

namespace weft::data {

Tensor upload(const void* from, const Shape& sizes, DType dtype, const Stream& stream) {
  const StreamGuard guard(stream);
  const Tensor to = Tensor::empty(sizes, dtype, stream.device());
  kernels::transfer(to.queue(), "copy_to_device", to.raw_data(), from, to.nbytes());
  return to;
}

void hand_over(const Event& uploaded, std::initializer_list<Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    void* const stream = current_stream(tensor.device());
    uploaded.block(stream);
    tensor.storage()->record_stream(stream);
  }
}

}  // namespace weft::data
