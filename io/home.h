// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft {

/// `~/x`, and `folder:~/x` behind the kind of a data set, with the user's home folder ($HOME, else that of the system's
/// user table) for `~`. A shell does so for a whole argument alone, not behind `=` or `:`, nor in a file. Any other
/// text stays as it is.
std::string expand_home(const std::string& text);

}  // namespace weft
