// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>

#include "core/stream.h"
#include "core/tensor.h"

namespace weft::data {

/// Enqueues a copy of staging memory on `stream`, to which the tensor's memory belongs.
Tensor upload(const void* from, const Shape& sizes, DType dtype, const Stream& stream);

/// Lets the current stream use what was uploaded before the event.
void hand_over(const Event& uploaded, std::initializer_list<Tensor> tensors);

}  // namespace weft::data
