// SPDX-License-Identifier: Apache-2.0
#include "core/emulated.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "kernels/error.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWithGpu = "emulated:";

bool is_program(const fs::path& path) { return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path); }

/// The program that a shell would start by this name; empty: none.
fs::path find_on_path(const std::string& name) {
  const char* const folders = std::getenv("PATH");
  std::istringstream list(folders ? folders : "");
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty() && is_program(fs::path(folder) / name)) return fs::path(folder) / name;
  return {};
}

/// The words that started this process. The first is its name where that leads to the executable: a link's name may
/// choose what a program does.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (words.empty()) words.emplace_back();
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const fs::path named = words[0].find('/') == std::string::npos ? find_on_path(words[0]) : fs::path(words[0]);
  std::error_code none;
  words[0] = fs::equivalent(named, program, none) ? named : program;
  return words;
}

}  // namespace

fs::path find_weft_emulate() {
  std::vector<fs::path> folders{fs::read_symlink("/proc/self/exe").parent_path()};
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&find_weft_emulate), &own) != 0 && own.dli_fname[0] == '/')
    for (const char* bin : {"../bin", "../../bin"})  // next to lib, and to lib/x86_64-linux-gnu
      folders.push_back(fs::path(own.dli_fname).parent_path() / bin);
  for (const fs::path& folder : folders)
    if (is_program(folder / "weft-emulate")) return folder / "weft-emulate";
  return find_on_path("weft-emulate");
}

bool is_emulated(const std::string& device) {
  return device == "emulated" || (device.starts_with(kWithGpu) && device.size() > kWithGpu.size());
}

std::string enter_emulator(const std::string& device, int gpus) {
  if (!is_emulated(device)) return device;
  const std::string gpu = device.substr(std::min(kWithGpu.size(), device.size()));
  const char* const present = std::getenv("WEFT_EMULATE_GPU");
  if (present && (gpu.empty() || gpu == present)) return "cuda";
  const fs::path program = find_weft_emulate();
  WEFT_CHECK(!program.empty(), "device: '", printable(device),
             "' needs weft-emulate, which is not beside this program, nor beside libweft, nor on PATH: a build of Weft "
             "with CUDA and libzstd has it (tools/install_packages test gets both). Or use --device cpu");
  std::vector<std::string> words{program, "--gpus", std::to_string(gpus)};
  if (!gpu.empty()) words.insert(words.end(), {"--gpu", gpu});
  for (std::string& word : own_command()) words.push_back(std::move(word));
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  fail("device: '", printable(device), "': cannot start ", program.string(), ": ", std::strerror(errno));
}

}  // namespace weft
