// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft::jsc {

/// The body of main() of one_gpu and ddp; `alone`: without looking for other ranks. Returns the exit code.
int run(const std::string& program, const std::string& purpose, bool alone, int argc, char** argv);

}  // namespace weft::jsc
