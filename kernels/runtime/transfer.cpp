// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/transfer.h"

#include "kernels/runtime/kernel_trace.h"
#include "kernels/runtime/runtime.h"

namespace weft::kernels {

void transfer(const Queue& queue, const char* name, void* to, const void* from, size_t bytes) {
  const View view = View::dense(to, DType::u8, {static_cast<int64_t>(bytes)});
  const View* const views[] = {&view};
  run_as_kernel(queue, name, views,
                [&] { runtime(queue.device.kind).copy(queue.device.index, to, from, bytes, queue.stream); });
}

}  // namespace weft::kernels
