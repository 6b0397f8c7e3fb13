// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

namespace weft::kernels {

/// How a GPU multiplies f32 operands; accumulators are f32. Behind each: the largest error of a product's factors.
enum class F32Products : uint8_t {
  exact,   ///< FMA: the operands as they are
  tf32,    ///< GEMMs and convolutions round operands to tf32 (8 bits of exponent, 10 of significand): 2^-10
  split3,  ///< GEMMs sum three products of bf16 planes on tensor cores (cuda/gemm/bf16_planes.cuh): 3 x 2^-16
  split6,  ///< GEMMs sum six products: 2^-22
};

/// `exact`, `tf32`, `split3`, `split6`.
constexpr std::string_view kF32ProductsNames[] = {"exact", "tf32", "split3", "split6"};

/// The setting of the whole process, for Weft's and the vendor's kernels on cuda; a CPU is always exact. It is the last
/// set_f32_products, else the variable WEFT_F32, else `exact`. Errors: WEFT_F32 has another value.
F32Products f32_products();
/// A captured graph keeps the setting of its capture.
void set_f32_products(F32Products how);

/// allow_tf32 is PyTorch's name for two of the settings.
constexpr F32Products tf32_if(bool allowed) { return allowed ? F32Products::tf32 : F32Products::exact; }
inline bool allow_tf32() { return f32_products() == F32Products::tf32; }
inline void set_allow_tf32(bool allowed) { set_f32_products(tf32_if(allowed)); }

/// Another setting while an object lives. For tests.
class F32ProductsScope {
 public:
  explicit F32ProductsScope(F32Products how) : before_(f32_products()) { set_f32_products(how); }
  ~F32ProductsScope() { set_f32_products(before_); }
  F32ProductsScope(const F32ProductsScope&) = delete;
  F32ProductsScope& operator=(const F32ProductsScope&) = delete;

 private:
  F32Products before_;
};

}  // namespace weft::kernels
