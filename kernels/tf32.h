// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::kernels {

/// May products and convolutions of f32 tensors round their factors to tf32 (8 bits of exponent as f32, 10 of
/// significand as f16) and so run on tensor cores? Sums stay in f32. It holds for cuda, for own
/// kernels and the vendor's; a CPU always computes in f32. For the whole process: the last set_allow_tf32,
/// else the variable WEFT_ALLOW_TF32 (0 or 1), else false: programs keep f32 unless they are asked.
/// Errors: WEFT_ALLOW_TF32 is something else.
bool allow_tf32();
/// A captured graph keeps the setting of its capture.
void set_allow_tf32(bool allowed);

/// While it lives, set_allow_tf32(allowed): for tests.
class Tf32Scope {
 public:
  explicit Tf32Scope(bool allowed = true) : before_(allow_tf32()) { set_allow_tf32(allowed); }
  ~Tf32Scope() { set_allow_tf32(before_); }
  Tf32Scope(const Tf32Scope&) = delete;
  Tf32Scope& operator=(const Tf32Scope&) = delete;

 private:
  bool before_;
};

}  // namespace weft::kernels
