// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft::train {

/// A word as a POSIX shell reads it back: quoted where it has other characters than letters, digits and
/// _ - + . / = , : @ and percent signs. For command lines that a user may copy.
std::string shell_word(const std::string& word);

}  // namespace weft::train
