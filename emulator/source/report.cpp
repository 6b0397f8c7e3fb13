// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/report.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "emulator/machine/fault.h"

namespace emulator::source {

namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_emulator_header(std::string_view path) {
  return path.find("emulator/source/") != path.npos || path.find("/ptx") != path.npos ||
         path.find("/vec.cuh") != path.npos || path.find("/include/c++/") != path.npos;
}

/// This program's file, for another process. Under qemu-user /proc/PID/exe is qemu itself; of a file that was replaced
/// meanwhile it is all there is.
std::string program_file() {
  std::error_code problem;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", problem);
  return !problem && access(path.c_str(), R_OK) == 0 ? path.string() : cat("/proc/", getpid(), "/exe");
}

}  // namespace

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string lanes_text(uint32_t lanes) {
  std::string text;
  for (int first = 0; first < 32; ++first) {
    if (!((lanes >> first) & 1u)) continue;
    int last = first;
    while (last < 31 && ((lanes >> (last + 1)) & 1u)) ++last;
    if (!text.empty()) text += ", ";
    text += last == first ? cat(first) : cat(first, "-", last);
    first = last;
  }
  return text;
}

std::ostream& operator<<(std::ostream& out, const SourceLine& where) {
  return out << file_name(where.file) << ':' << where.line;
}

std::string source_line(const void* code_address) {
  const std::string unknown = cat("address ", hex(reinterpret_cast<uintptr_t>(code_address)));
  Dl_info info{};
  if (!dladdr(code_address, &info) || !info.dli_fname) return unknown;
  // A return address belongs to the call before it.
  const uintptr_t offset = reinterpret_cast<uintptr_t>(code_address) - reinterpret_cast<uintptr_t>(info.dli_fbase) - 1;
  const bool is_program = std::strchr(info.dli_fname, '/') == nullptr || std::strstr(info.dli_fname, ".so") == nullptr;
  const std::string command =
      cat("addr2line -i -e '", is_program ? program_file() : info.dli_fname, "' ", hex(offset), " 2>/dev/null");
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return unknown;
  std::string found;
  char line[4096];
  while (std::fgets(line, sizeof(line), pipe)) {
    std::string_view text(line);
    text = text.substr(0, text.find_first_of(" \n"));
    if (!found.empty() || text.rfind("??", 0) == 0 || text.rfind(":0") == text.size() - 2) continue;
    if (!is_emulator_header(text)) found = file_name(text);
  }
  pclose(pipe);
  return found.empty() ? unknown : found;
}

}  // namespace emulator::source
