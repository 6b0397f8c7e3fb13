// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::kernels {

/// The engine of matmul and conv2d on the device cuda (docs/engines.md): Weft's own kernels; NVIDIA's libraries
/// (cuBLASLt, cuDNN); or, for each problem, the faster after timing both. Other devices have Weft's kernels only.
enum class Engine : uint8_t { own, vendor, automatic };

/// `own`, `vendor`, `auto`.
std::string_view name(Engine engine);
/// Errors: `text` is none of the three; the message begins with `what`.
Engine parse_engine(std::string_view what, const std::string& text);

/// The engine of this thread's calls: that of the innermost EngineGuard, else WEFT_ENGINE, else own.
/// Errors: WEFT_ENGINE is not own, vendor or auto.
Engine engine();

/// While an object lives, calls of this thread use this engine.
class EngineGuard {
 public:
  explicit EngineGuard(Engine engine);
  ~EngineGuard();
  EngineGuard(const EngineGuard&) = delete;
  EngineGuard& operator=(const EngineGuard&) = delete;

 private:
  int outer_;
};

}  // namespace weft::kernels
