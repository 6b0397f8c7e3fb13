// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::data {

/// What every ImageWriter holds its caller to.
class PartCount {
 public:
  /// `what` opens the error texts. Errors: no class, a class without a name or named twice.
  PartCount(std::string what, const std::vector<std::string>& classes);

  void begin_part(const std::string& name, int64_t count);
  void add(std::span<const uint8_t> bytes, int64_t label);
  /// Errors: the part is not full.
  void finish() const;

 private:
  std::string what_;
  int64_t classes_;
  std::vector<std::string> parts_;
  int64_t wanted_ = 0, got_ = 0;
};

}  // namespace weft::data
