// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace weft::jsc {

/// libjpeg-turbo with nothing around it, to measure Weft's decoding by: a thread's images share a decompressor and a
/// buffer, without checks, without rotation, without a copy for the caller.
class RawJpeg {
 public:
  RawJpeg();
  ~RawJpeg();
  /// Decodes to RGB and returns the number of bytes. 0: no JPEG, or one of CMYK. Errors: libjpeg's own; Weft was built
  /// without it.
  size_t decode(std::span<const uint8_t> bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::jsc
