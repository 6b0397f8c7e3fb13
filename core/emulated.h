// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

namespace weft {

/// The program weft-emulate: beside this program, in the folder bin of libweft's installation, or on PATH. Empty: none.
std::filesystem::path find_weft_emulate();

/// Is it `emulated` or `emulated:GPU`?
bool is_emulated(const std::string& device);

/// `emulated` and `emulated:GPU` become `cuda` in a process that weft-emulate has started (with this GPU); other texts
/// stay. A process without that GPU starts itself again under weft-emulate with `gpus` of it, with the same process id
/// and command line: the call does not return, and what the process has done before is done again. Errors: there is no
/// weft-emulate.
std::string enter_emulator(const std::string& device, int gpus = 1);

}  // namespace weft
