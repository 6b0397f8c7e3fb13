// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft::jsc {

/// What one_gpu and ddp do between main()'s braces; `alone`: without looking for other ranks. Returns the exit code.
int run(const std::string& program, const std::string& purpose, bool alone, int argc, char** argv);

}  // namespace weft::jsc
