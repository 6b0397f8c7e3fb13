// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

namespace emulator::cuda {

/// The registers of a thread of each kernel and device function (mangled names) of a cubin, as ptxas allotted them. Empty:
/// it is no cubin, or of another form.
std::unordered_map<std::string, int> registers_of_cubin(std::string_view bytes);

}  // namespace emulator::cuda
