// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "core/tensor.h"
#include "kernels/runtime/f32_products.h"

namespace weft {

/// Mixed precision as a policy. While the guard lives, matmul-like ops (conv2d, linear, matmul) take their f32 inputs
/// in `dtype`. Ops that sum (softmax, losses, sum, mean, norm) take low-precision inputs in f32. Norm layers keep
/// f32 statistics and weights whatever their input is. Weights stay f32: gradients come back to them as f32
/// (Micikevicius et al. 2018). Per thread.
///   { const Autocast low(DType::bf16); loss = cross_entropy(model->forward(x), y); }
///   loss.backward();
class Autocast {
 public:
  /// `dtype`: bf16 or f16; f32 switches autocast off inside an outer guard. Errors: any other dtype.
  explicit Autocast(DType dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  std::optional<DType> previous_;
};

/// While it lives, autocast_low() casts none of these f32 tensors again: each has a copy in the dtype of the innermost
/// guard. For many forwards with the same weights. Without a guard it does nothing.
class LowCopies {
 public:
  explicit LowCopies(const std::vector<Tensor>& parameters);
  ~LowCopies();
  LowCopies(const LowCopies&) = delete;
  LowCopies& operator=(const LowCopies&) = delete;

 private:
  struct Replaced {
    Tensor parameter, copy;  ///< `copy`: an optimizer's, which was older than the parameter or of another dtype
    uint32_t version;
  };
  void put_back();
  std::vector<Replaced> replaced_;
};

/// The dtype of the innermost guard; nothing outside of one.
std::optional<DType> autocast_dtype();

/// For matmul-like ops: x in the autocast dtype if a guard is alive and x is f32; else x. Differentiable. A parameter
/// whose optimizer keeps a current low-precision copy (AutogradMeta::compute_copy) is taken from there without a cast.
Tensor autocast_low(const Tensor& x);

/// For summing ops: x in f32 if a guard is alive and x is bf16 or f16; else x. Differentiable.
Tensor autocast_full(const Tensor& x);

/// How a GPU multiplies f32 tensors (docs/engines.md), for the whole process: exact, unless this or WEFT_F32 says
/// otherwise. set_allow_tf32(true) is set_f32_products(F32Products::tf32).
using kernels::allow_tf32;
using kernels::f32_products;
using kernels::F32Products;
using kernels::set_allow_tf32;
using kernels::set_f32_products;

}  // namespace weft
