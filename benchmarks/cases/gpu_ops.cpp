// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/layers/attention.h"
#include "core/ops/layers/batch_norm.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/layer_norm.h"
#include "core/ops/layers/linear.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "core/ops/unary.h"
#include "kernels/runtime/runtime.h"

namespace weft::benchmarks {

// Matrix products and convolutions on a GPU, in TFLOP/s (2 per multiply-add): square matrices, and the convolutions of
// ResNet-50's stages at batch 64.
void add_gpu_matmul_cases(Cases& cases, const Target& target) {
  for (const int64_t full : {1024, 2048, 4096, 8192})
    for (const DType dtype : {DType::bf16, DType::f32}) {
      const int64_t n = target.size(full, 64);
      const double flop = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
      cases.push_back({str("matmul_", full, "_", name(dtype)), "TFLOP/s", [=] {
                         const Op op{
                             {normal({n, n}, 0, 1, dtype, target.device), normal({n, n}, 0, 1, dtype, target.device)},
                             [](const auto& in) { return matmul(in[0], in[1]); }};
                         return forward(target, op, flop);
                       }});
    }
}

void add_gpu_convolution_cases(Cases& cases, const Target& target) {
  struct Size {
    const char* name;
    int64_t kernel, in, out, edge, stride;
  };
  constexpr Size kSizes[] = {{"conv7x7_3_64_224", 7, 3, 64, 224, 2},
                             {"conv3x3_64_64_56", 3, 64, 64, 56, 1},
                             {"conv1x1_256_64_56", 1, 256, 64, 56, 1},
                             {"conv3x3_128_128_28", 3, 128, 128, 28, 1},
                             {"conv3x3_512_512_7", 3, 512, 512, 7, 1}};
  for (const Size& size : kSizes)
    for (const DType dtype : {DType::bf16, DType::f32}) {
      const int64_t N = target.size(64, 2), E = target.size(size.edge, 8);
      const int64_t C = target.size(size.in, size.in % 8 == 0 ? 16 : size.in), O = target.size(size.out, 16);
      const int64_t R = size.kernel, P = (E - 1) / size.stride + 1;
      const double flop = 2.0 * static_cast<double>(N * P * P * O) * static_cast<double>(R * R * C);
      const auto make = [=] {
        return Op{
            {normal({N, E, E, C}, 0, 1, dtype, target.device), normal({O, R, R, C}, 0, 0.05, dtype, target.device)},
            [=](const auto& in) {
              return conv2d(in[0], in[1], {}, {.stride = {size.stride, size.stride}, .padding = {R / 2, R / 2}});
            }};
      };
      add_op_cases(cases, target, str(size.name, "_", name(dtype)), make, {"TFLOP/s", flop});
    }
}

namespace {

/// GPT-2's residual stream at 16 x 1024 tokens: a branch in bf16 beside f32, a norm in bf16.
void add_residual_norm_case(Cases& cases, const Target& target) {
  const Device device = target.device;
  const int64_t rows = target.size(16384, 6), width = target.size(768, 40);
  add_op_cases(
      cases, target, "add_layer_norm_mixed",
      [=] {
        return Op{{normal({rows, width}, 0, 1, DType::f32, device), normal({rows, width}, 0, 1, DType::bf16, device)},
                  [](const auto& x) { return add_layer_norm(x[0], x[1], {}, {}, 1e-5, DType::bf16).y; }};
      },
      {.unit = "us"});
}

}  // namespace

// Ops that mainly read and write memory, on a GPU, in microseconds: norms, softmax and the loss.
void add_gpu_norm_cases(Cases& cases, const Target& target) {
  const Device device = target.device;
  const int64_t N = target.size(64, 2), E = target.size(56, 5), C = target.size(64, 8);
  const int64_t rows = target.size(8192, 6), width = target.size(1024, 40), classes = target.size(1000, 10);
  const auto vector = [=](int64_t n, double mean) { return normal({n}, mean, 0.1, DType::f32, device); };
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const std::string ending = "_" + std::string(name(dtype));
    const auto add = [&](const std::string& op, const std::function<Op()>& make) {
      add_op_cases(cases, target, op + ending, make, {.unit = "us"});
    };
    add("batch_norm", [=] {
      const Tensor mean = Tensor::zeros({C}, DType::f32, device), var = Tensor::ones({C}, DType::f32, device);
      return Op{{normal({N, E, E, C}, 0, 1, dtype, device), vector(C, 1), vector(C, 0)},
                [=](const auto& x) { return batch_norm(x[0], x[1], x[2], mean, var, {.training = true}); }};
    });
    add("layer_norm", [=] {
      return Op{{normal({rows, width}, 0, 1, dtype, device), vector(width, 1), vector(width, 0)},
                [](const auto& x) { return layer_norm(x[0], x[1], x[2]); }};
    });
    add("softmax", [=] {
      return Op{{normal({rows, width}, 0, 1, dtype, device)}, [](const auto& x) { return softmax(x[0]); }};
    });
    add("cross_entropy", [=] {
      std::vector<int64_t> labels(static_cast<size_t>(rows));
      for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i * 7919) % classes;
      return Op{{normal({rows, classes}, 0, 1, dtype, device), Tensor::from(labels, device)},
                [](const auto& x) { return cross_entropy(x[0], x[1]); }};
    });
  }
  add_residual_norm_case(cases, target);
}

// The two halves of a ViT-B/16 block at batch 64 (197 tokens, width 768, 12 heads), in bf16 and milliseconds.
void add_gpu_transformer_cases(Cases& cases, const Target& target) {
  const Device device = target.device;
  const int64_t N = target.size(64, 2), T = target.size(197, 9), D = target.size(768, 32), H = target.size(12, 2);
  const DType bf16 = DType::bf16;
  add_op_cases(cases, target, "vit_attention_bf16", [=] {
    const auto heads = [=] { return normal({N, T, H, D / H}, 0, 1, bf16, device); };
    return Op{{heads(), heads(), heads()}, [](const auto& x) { return attention(x[0], x[1], x[2]); }};
  });
  add_op_cases(cases, target, "vit_mlp_bf16", [=] {
    return Op{{normal({N * T, D}, 0, 1, bf16, device), normal({4 * D, D}, 0, 0.03, bf16, device),
               normal({4 * D}, 0, 0.03, bf16, device), normal({D, 4 * D}, 0, 0.03, bf16, device),
               normal({D}, 0, 0.03, bf16, device)},
              [](const auto& x) { return linear(gelu(linear(x[0], x[1], x[2])), x[3], x[4]); }};
  });
}

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

// Memory of a GPU: how near kernels come to the device's own copy (memcpy_256m), the host's cost of
// an allocation from the cache, and the latency of one op.
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
