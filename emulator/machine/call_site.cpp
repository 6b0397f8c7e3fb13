// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/call_site.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "emulator/machine/fault.h"
#include "emulator/machine/symbols.h"

namespace emulator {
namespace {

constexpr int kFramesShown = 4;

thread_local const CallSite* works_for = nullptr;

std::string_view folder_of(std::string_view path) { return path.substr(0, path.rfind('/') + 1); }

/// The emulator's libraries have a folder of their own.
bool is_ours(std::string_view path) {
  static const std::string folder = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&CallSite::here), &info);
    return std::string(folder_of(info.dli_fname ? info.dli_fname : ""));
  }();
  return folder_of(path) == folder;
}

std::string hex(uintptr_t value) {
  std::ostringstream out;
  out << "+0x" << std::hex << value;
  return out.str();
}

/// The program's own functions are mostly not exported, so the dynamic linker does not know them. Empty for what nvcc
/// puts between a launch and its kernel.
std::string frame_text(const Dl_info& info, uintptr_t address) {
  const uint64_t in_file = address - reinterpret_cast<uintptr_t>(info.dli_fbase);
  uint64_t begin = 0;
  std::string symbol = local_symbol(info.dli_fname, in_file, begin);
  if (symbol.empty() && info.dli_sname) {
    symbol = info.dli_sname;
    begin = reinterpret_cast<uintptr_t>(info.dli_saddr) - reinterpret_cast<uintptr_t>(info.dli_fbase);
  }
  if (symbol.find("__device_stub__") != std::string::npos) return {};
  return cat(info.dli_fname, '(', symbol.empty() ? "" : function_name(symbol.c_str()), hex(in_file - begin), ')');
}

}  // namespace

std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : symbol;
}

std::string function_name(const char* symbol) {
  std::string name = demangled(symbol);
  constexpr size_t kMost = 60;
  if (name.size() <= kMost) return name;
  // The last closing parenthesis ends the arguments, or `const` follows.
  size_t at = name.rfind(')');
  if (at == std::string::npos || at == 0 || name.find("::", at) != std::string::npos) return name;
  for (int open = 1; at > 0 && open > 0;) {
    --at;
    open += name[at] == ')' ? 1 : name[at] == '(' ? -1 : 0;
  }
  return at > 0 ? name.substr(0, at) : name;
}

CallSite::Behalf::Behalf(const CallSite& of) { works_for = &of; }
CallSite::Behalf::~Behalf() { works_for = nullptr; }

CallSite CallSite::here() {
  if (works_for) return *works_for;
  CallSite site;
  site.count_ = backtrace(site.frames_.data(), static_cast<int>(site.frames_.size()));
  return site;
}

uintptr_t CallSite::caller() const {
  for (int k = 0; k < count_; ++k) {
    Dl_info info{};
    const auto address = reinterpret_cast<uintptr_t>(frames_[static_cast<size_t>(k)]);
    if (dladdr(reinterpret_cast<void*>(address - 1), &info) == 0 || !info.dli_fname || !is_ours(info.dli_fname)) return address;
  }
  return 0;
}

std::string CallSite::text() const {
  std::string text;
  int shown = 0;
  for (int k = 0; k < count_ && shown < kFramesShown; ++k) {
    // A return address follows its call, which may have been the last instruction of its function.
    const uintptr_t address = reinterpret_cast<uintptr_t>(frames_[static_cast<size_t>(k)]) - 1;
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || !info.dli_fname || is_ours(info.dli_fname)) continue;
    // The C library's own frames are below main.
    if (std::string_view(info.dli_fname).find("/libc.so") != std::string_view::npos) break;
    const std::string frame = frame_text(info, address);
    if (!frame.empty()) text += cat(shown++ > 0 ? " < " : "", frame);
  }
  return text.empty() ? "an unknown address" : text;
}

}  // namespace emulator
