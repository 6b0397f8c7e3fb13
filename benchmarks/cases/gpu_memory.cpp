// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "kernels/runtime.h"

// Memory of a GPU: how near kernels come to the device's own copy (memcpy_256m), the host's cost of
// an allocation from the cache, and the latency of one op.

namespace weft::benchmarks {

namespace {

Work copy_bytes(const Target& target, bool from_host) {
  const size_t bytes = static_cast<size_t>(target.size(256 << 20, 1 << 12));
  kernels::Runtime& device = kernels::runtime(target.device.kind);
  const int index = target.device.index;
  const Tensor to = Tensor::empty({static_cast<int64_t>(bytes)}, DType::u8, target.device);
  Tensor from;
  if (from_host) {
    void* memory = device.allocate_pinned(bytes);
    WEFT_CHECK(memory != nullptr, "bench: no ", bytes, " bytes of pinned memory");
    from = Tensor::wrap(memory, to.sizes(), DType::u8, {}, [&device, memory] { device.release_pinned(memory); });
  } else {
    from = Tensor::zeros(to.sizes(), DType::u8, target.device);
  }
  // A copy within the device reads and writes each byte there.
  const double traffic = static_cast<double>(bytes) * (from_host ? 1 : 2);
  return work_on(
      target,
      [=, &device] { device.copy(index, to.raw_data(), from.raw_data(), bytes, current_stream(target.device)); },
      traffic);
}

Work allocate(const Target& target, int64_t elements) {
  constexpr int kBlock = 100;
  return work_on(
      target,
      [=] {
        for (int i = 0; i < kBlock; ++i) Tensor::empty({elements}, DType::f32, target.device);
      },
      kBlock);
}

Work add_and_wait(const Target& target) {
  const Tensor a = normal({16}, 0, 1, DType::f32, target.device);
  return work_on(target, [=] {
    add(a, a);
    synchronize(target.device);
  });
}

}  // namespace

void add_gpu_memory_cases(Cases& cases, const Target& target) {
  const int64_t n = target.size(64 << 20, 1 << 10);
  const auto numbers = [=](DType dtype) { return normal({n}, 0, 1, dtype, target.device); };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const double bytes = static_cast<double>(n) * static_cast<double>(size_of(dtype));
    const std::string ending = "_64m_" + std::string(name(dtype));
    cases.push_back({"add" + ending, "GB/s", [=] {
                       const Op op{{numbers(dtype), numbers(dtype)}, [](const auto& x) { return add(x[0], x[1]); }};
                       return forward(target, op, 3 * bytes);
                     }});
    cases.push_back(
        {"copy" + ending, "GB/s", [=] {
           return forward(target, {{numbers(dtype)}, [](const auto& x) { return x[0].clone(); }}, 2 * bytes);
         }});
  }
  cases.push_back({"cast_64m_f32_bf16", "GB/s", [=] {
                     const Op op{{numbers(DType::f32)}, [](const auto& x) { return x[0].to(DType::bf16); }};
                     return forward(target, op, 6.0 * static_cast<double>(n));
                   }});
  cases.push_back({"memcpy_256m", "GB/s", [=] { return copy_bytes(target, false); }});
  cases.push_back({"memcpy_256m_from_host", "GB/s", [=] { return copy_bytes(target, true); }});
  cases.push_back({"allocate_4k", "ns", [=] { return allocate(target, 1 << 10); }});
  cases.push_back({"allocate_64m", "ns", [=] { return allocate(target, target.size(16 << 20, 1 << 10)); }});
  cases.push_back({"add_16_and_wait", "us", [=] { return add_and_wait(target); }});
}

}  // namespace weft::benchmarks
