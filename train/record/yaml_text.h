// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace weft::train {

/// A text as a double-quoted YAML scalar: every reader of YAML 1.1 and 1.2 returns the text unchanged, also for special
/// ones (`no`, `1e-5`, `a: b`). Bytes that are not UTF-8 become U+FFFD.
std::string yaml_text(std::string_view text);

/// A key of a mapping: plain where it can be, else as yaml_text.
std::string yaml_key(std::string_view key);

/// A number that YAML 1.1 takes for one too: with a point and a signed exponent (`1.0e-05`), whole numbers without,
/// `.nan`, `.inf`. Reads back to the same double.
std::string yaml_number(double value);

}  // namespace weft::train
