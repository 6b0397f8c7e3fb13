// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::dist {

inline constexpr const char* kSecret = "the secret of these tests, which nobody else has";

}  // namespace weft::dist
