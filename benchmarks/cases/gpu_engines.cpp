// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "benchmarks/cases/cases.h"
#include "core/ops/random.h"
#include "kernels/contracts/attention.h"
#include "kernels/contracts/conv2d.h"
#include "kernels/contracts/fp8.h"
#include "kernels/contracts/matmul.h"
#include "kernels/cuda/gemm/wgmma_plan.h"
#include "kernels/runtime/engine.h"

// The kernels of products, convolutions and attention alone, in TFLOP/s (2 per multiply-add), beside the vendor's: NAME
// is Weft's own, NAME@vendor the same call by cuBLASLt or cuDNN, measured right after it in the same process. bf16 in
// and out.
//
// The suite plans measures the same products and convolutions in every tiling of gemm_wgmma.cuh, to compare the
// estimate in wgmma_plan.h with a GPU. NAME is the plan's choice, NAME@large_s2_c1 has large tiles, split-K of two and
// clusters of one.

namespace weft::benchmarks {
namespace {

using kernels::Engine;
using kernels::EngineGuard;

using Call = std::function<void()>;
using MakeCall = std::function<Call()>;  ///< allocates, so it runs when the case is measured

struct Suite {
  Cases& cases;
  const Target& target;
  bool plans;  ///< the suite plans: each plan, instead of each engine

  void add(const std::string& name, double flop, const MakeCall& make, bool vendor = true) const {
    add_case(name, flop, make, [](const Call& call) { with_engine(Engine::own, call); });
    if (plans) return add_plans(name, flop, make);
    if (vendor && target.device.kind == DeviceKind::cuda)
      add_case(name + "@vendor", flop, make, [](const Call& call) { with_engine(Engine::vendor, call); });
  }

 private:
  using Run = std::function<void(const Call&)>;

  static void with_engine(Engine engine, const Call& call) {
    const EngineGuard guard(engine);
    call();
  }
  void add_case(const std::string& name, double flop, const MakeCall& make, const Run& run) const {
    cases.push_back({name, "TFLOP/s", [=, target = target] {
                       return work_on(
                           target, [run, call = make()] { run(call); }, flop);
                     }});
  }
  void add_plans(const std::string& name, double flop, const MakeCall& make) const {
    using enum kernels::WgmmaPlan::Tile;
    struct Tile {
      kernels::WgmmaPlan::Tile tile;
      const char* name;
      int most_in_cluster;
    };
    for (const auto& [tile, tile_name, most_in_cluster] :
         {Tile{small, "small", 1}, Tile{medium, "medium", 2}, Tile{large, "large", 2}, Tile{tall, "tall", 1},
          Tile{wide, "wide", 1}, Tile{broad, "broad", 1}, Tile{ping_pong, "alternating", 2},
          Tile{cluster_split_k, "joined", 4}})
      for (const int splits : {1, 2, 3, 4, 6, 8, 12, 16})
        for (int cluster = tile == cluster_split_k ? 2 : 1; cluster <= most_in_cluster; cluster *= 2)
          add_case(str(name, '@', tile_name, "_s", splits, "_c", cluster), flop, make,
                   [plan = kernels::WgmmaPlan{tile, splits, cluster}](const Call& call) {
                     const kernels::WgmmaPlanScope scope(plan);
                     with_engine(Engine::own, call);
                   });
  }
};

Tensor filled(const Target& target, const Shape& sizes) { return normal(sizes, 0, 1, DType::bf16, target.device); }

struct Product {
  const char* name;
  int64_t M, N, K;
};

/// Squares; ViT-B/16 at batch 64 (197 tokens); the classifier of ResNet-50 at batch 256; GPT-2's output layer, whose
/// rows of logits have a gap, at 16 sequences of 1024 tokens.
constexpr Product kProducts[] = {{"1024", 1024, 1024, 1024},       {"2048", 2048, 2048, 2048},
                                 {"4096", 4096, 4096, 4096},       {"8192", 8192, 8192, 8192},
                                 {"vit_qkv", 64 * 197, 2304, 768}, {"vit_proj", 64 * 197, 768, 768},
                                 {"vit_fc1", 64 * 197, 3072, 768}, {"vit_fc2", 64 * 197, 768, 3072},
                                 {"resnet_fc", 256, 1000, 2048},   {"gpt2_head", 16 * 1024, 50257, 768}};

/// A linear layer's three products: y = x w^T, dx = dy w, dw = dy^T x.
void add_products(const Suite& suite, const Product& product) {
  const Target& target = suite.target;
  const int64_t M = target.size(product.M, 40), N = target.size(product.N, 24), K = target.size(product.K, 32);
  const double flop = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  struct Way {
    const char* name;
    std::array<int64_t, 2> y, a, b;
    bool transpose_a, transpose_b;
  };
  const Way ways[] = {{"forward", {M, N}, {M, K}, {N, K}, false, true},
                      {"backward_input", {M, K}, {M, N}, {N, K}, false, false},
                      {"backward_weight", {N, K}, {M, N}, {M, K}, true, false}};
  for (const Way& way : ways)
    suite.add(str("matmul_", product.name, '_', way.name), flop, [=] {
      const auto matrix = [&](const std::array<int64_t, 2>& sizes) {
        return filled(target, {1, sizes[0], (sizes[1] + 7) / 8 * 8}).slice(2, 0, sizes[1]);
      };
      const Tensor y = matrix(way.y), a = matrix(way.a), b = matrix(way.b);
      const auto transposed = [](const Tensor& t, bool really) { return really ? t.transpose(1, 2) : t; };
      const Tensor first = transposed(a, way.transpose_a), second = transposed(b, way.transpose_b);
      return [=] { kernels::matmul(y.queue(), y, first, second, kernels::View::none(), {}); };
    });
}

/// The first layer of ViT-B/16's MLP with its epilogues: the bias alone, and GELU whose argument is kept for the
/// backward.
void add_linears(const Suite& suite) {
  const Target& target = suite.target;
  const int64_t M = target.size(64 * 197, 40), N = target.size(3072, 24), K = target.size(768, 32);
  const double flop = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  for (const bool gelu : {false, true})
    suite.add(gelu ? "linear_vit_fc1_bias_gelu" : "linear_vit_fc1_bias", flop, [=] {
      const Tensor x = filled(target, {1, M, K}), w = filled(target, {1, N, K}).transpose(1, 2);
      const Tensor bias = filled(target, {N}), y = filled(target, {1, M, N}), pre = gelu ? empty_like(y) : Tensor();
      const auto f = gelu ? kernels::Activation::gelu : kernels::Activation::none;
      return [=] {
        const kernels::View none;
        kernels::matmul_fused(y.queue(), y, pre, x, w, bias, none, {.activation = f});
      };
    });
}

/// Products of 8 bits (e4m3) with a bias into bf16, and the pass before them: bf16 read once, codes written across and
/// down. Weft's own alone.
void add_fp8(const Suite& suite) {
  const Target& target = suite.target;
  const auto codes = [target](int64_t rows, int64_t columns) {
    return Tensor::full({rows, kernels::fp8_pitch(columns)}, 0x38, DType::u8, target.device).slice(1, 0, columns);
  };
  for (const Product& product :
       {Product{"matmul_8192_fp8", 8192, 8192, 8192}, {"linear_vit_fc1_fp8", 64 * 197, 3072, 768}}) {
    const int64_t M = target.size(product.M, 40), N = target.size(product.N, 24), K = target.size(product.K, 32);
    const double flop = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
    suite.add(
        product.name, flop,
        [=]() -> Call {
          const Tensor a = codes(M, K), b = codes(N, K), y = filled(target, {M, N}), bias = filled(target, {N}),
                       scale = Tensor::ones({1}, DType::f32, target.device);
          return [=] { kernels::fp8_matmul(y.queue(), y, {}, a, b, bias, scale, scale, {}); };
        },
        false);
  }
  if (suite.plans) return;
  const int64_t M = target.size(64 * 197, 40), K = target.size(768, 32);
  suite.cases.push_back({"quantize_vit_fc1_fp8", "GB/s", [=] {
                           const Tensor x = filled(target, {M, K}), y = codes(M, K), y_t = codes(K, M),
                                        amax = Tensor::zeros({1}, DType::f32, target.device),
                                        scale = Tensor::ones({1}, DType::f32, target.device);
                           return work_on(
                               target,
                               [=] { kernels::fp8_quantize(x.queue(), y, y_t, amax, x, scale, kernels::Fp8::e4m3); },
                               4.0 * static_cast<double>(M * K));
                         }});
}

struct Convolution {
  int64_t C, O, R, stride, edge;
};

/// Each convolution of ResNet-50 once.
constexpr Convolution kConvolutions[] = {
    {3, 64, 7, 2, 224},     {64, 64, 1, 1, 56},   {64, 64, 3, 1, 56},    {64, 256, 1, 1, 56},   {256, 64, 1, 1, 56},
    {256, 128, 1, 1, 56},   {128, 128, 3, 2, 56}, {128, 512, 1, 1, 28},  {256, 512, 1, 2, 56},  {512, 128, 1, 1, 28},
    {128, 128, 3, 1, 28},   {512, 256, 1, 1, 28}, {256, 256, 3, 2, 28},  {256, 1024, 1, 1, 14}, {512, 1024, 1, 2, 28},
    {1024, 256, 1, 1, 14},  {256, 256, 3, 1, 14}, {1024, 512, 1, 1, 14}, {512, 512, 3, 2, 14},  {512, 2048, 1, 1, 7},
    {1024, 2048, 1, 2, 14}, {2048, 512, 1, 1, 7}, {512, 512, 3, 1, 7}};

void add_convolutions(const Suite& suite, const Convolution& c) {
  const Target& target = suite.target;
  const int64_t N = target.size(256, 2), E = target.size(c.edge, 8), R = c.R;
  const int64_t C = target.size(c.C, c.C % 8 == 0 ? 16 : c.C), O = target.size(c.O, 16);
  const kernels::Conv2dArguments arguments{{c.stride, c.stride}, {R / 2, R / 2}};
  const int64_t P = (E + 2 * (R / 2) - R) / c.stride + 1;
  const double flop = 2.0 * static_cast<double>(N * P * P * O) * static_cast<double>(R * R * C);
  const std::string name = str("conv", R, 'x', R, c.stride > 1 ? "s2_" : "_", c.C, '_', c.O, '_', c.edge, '_');
  struct Tensors {
    Tensor x, w, y;
  };
  const auto make = [=] {
    return Tensors{filled(target, {N, E, E, C}), filled(target, {O, R, R, C}), filled(target, {N, P, P, O})};
  };
  suite.add(name + "forward", flop, [=]() -> Call {
    return [t = make(), arguments] {
      kernels::conv2d_forward(t.y.queue(), t.y, t.x, t.w, kernels::View::none(), arguments);
    };
  });
  if (c.C > 3)  // an image needs no gradient
    suite.add(name + "backward_input", flop, [=]() -> Call {
      return [t = make(), arguments] {
        kernels::conv2d_backward_input(t.x.queue(), t.x, t.y, t.w, kernels::View::none(), arguments);
      };
    });
  suite.add(name + "backward_weight", flop, [=]() -> Call {
    return [t = make(), arguments] { kernels::conv2d_backward_weight(t.w.queue(), t.w, t.y, t.x, arguments); };
  });
}

struct Heads {
  const char* name;
  int64_t B, N, H, D;
  bool causal;
};

/// ViT-B/16 and DINOv2's ViT-L/14 at 518 pixels, BERT-base with padding, and long causal sequences of both widths.
constexpr Heads kHeads[] = {{"vit", 64, 197, 12, 64, false},
                            {"dinov2", 8, 1374, 16, 64, false},
                            {"causal_2048_64", 8, 2048, 16, 64, true},
                            {"4096_128", 4, 4096, 16, 128, false},
                            {"causal_4096_128", 4, 4096, 16, 128, true}};

/// Two products forward, five backward, the masked half of a causal one left out. q, k, v and their gradients are
/// slices of packed arrays.
void add_attention(const Suite& suite, const Heads& heads) {
  const Target& target = suite.target;
  const int64_t B = target.size(heads.B, 2), N = target.size(heads.N, 24), H = target.size(heads.H, 2), D = heads.D;
  const double product = 2.0 * static_cast<double>(B * H * N) * static_cast<double>(N * D) * (heads.causal ? 0.5 : 1.0);
  struct Tensors {
    Tensor qkv, gradients, y, dy, lse;

    Tensor part(const Tensor& packed, int64_t which) const { return packed.select(2, which); }
  };
  const kernels::AttentionArguments arguments{1 / std::sqrt(static_cast<double>(D)), heads.causal, 0, {}};
  const kernels::View none;
  const auto forward = [=](const Tensors& t) {
    kernels::attention_forward(t.y.queue(), t.y, t.lse, t.part(t.qkv, 0), t.part(t.qkv, 1), t.part(t.qkv, 2), none,
                               none, none, arguments);
  };
  const auto make = [=] {
    Tensors t{filled(target, {B, N, 3, H, D}), filled(target, {B, N, 3, H, D}), filled(target, {B, N, H, D}),
              filled(target, {B, N, H, D}), normal({B, H, N}, 0, 1, DType::f32, target.device)};
    forward(t);
    return t;
  };
  const std::string name = str("attention_", heads.name, '_');
  suite.add(name + "forward", 2 * product, [=]() -> Call { return [=, t = make()] { forward(t); }; });
  suite.add(name + "backward", 5 * product, [=]() -> Call {
    return [=, t = make()] {
      const auto gradient = [&](int64_t which) { return t.part(t.gradients, which); };
      kernels::attention_backward(t.y.queue(), gradient(0), gradient(1), gradient(2), t.dy, t.part(t.qkv, 0),
                                  t.part(t.qkv, 1), t.part(t.qkv, 2), t.y, t.lse, none, none, none, arguments);
    };
  });
}

}  // namespace

void add_engine_cases(Cases& cases, const Target& target) {
  const Suite suite{cases, target, false};
  for (const Product& product : kProducts) add_products(suite, product);
  add_linears(suite);
  add_fp8(suite);
  for (const Convolution& convolution : kConvolutions) add_convolutions(suite, convolution);
  for (const Heads& heads : kHeads) add_attention(suite, heads);
}

void add_plan_cases(Cases& cases, const Target& target) {
  const Suite suite{cases, target, true};
  for (const Product& product : kProducts) add_products(suite, product);
  add_linears(suite);
  add_fp8(suite);
  for (const Convolution& convolution : kConvolutions) add_convolutions(suite, convolution);
}

}  // namespace weft::benchmarks
