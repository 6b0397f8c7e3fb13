// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/call_site.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "emulator/machine/fault.h"

namespace emulator {
namespace {

constexpr int kFramesShown = 4;

bool is_ours(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view library : {"libweft_gpu.so", "libcudart.so", "libcuda.so", "libnccl.so"})
    if (name.starts_with(library)) return true;
  return false;
}

std::string hex(uintptr_t value) {
  std::ostringstream out;
  out << "+0x" << std::hex << value;
  return out.str();
}

}  // namespace

std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : symbol;
}

CallSite CallSite::here() {
  CallSite site;
  site.count_ = backtrace(site.frames_.data(), static_cast<int>(site.frames_.size()));
  return site;
}

std::string CallSite::text() const {
  std::string text;
  int shown = 0;
  for (int k = 0; k < count_ && shown < kFramesShown; ++k) {
    // A return address is behind its call, which may have been the last instruction of its function.
    const uintptr_t address = reinterpret_cast<uintptr_t>(frames_[static_cast<size_t>(k)]) - 1;
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || !info.dli_fname || is_ours(info.dli_fname)) continue;
    // The C library's own frames are below main.
    if (std::string_view(info.dli_fname).find("/libc.so") != std::string_view::npos) break;
    const bool named = info.dli_sname != nullptr;
    const uintptr_t base = reinterpret_cast<uintptr_t>(named ? info.dli_saddr : info.dli_fbase);
    if (shown++ > 0) text += " < ";
    text += cat(info.dli_fname, '(', named ? demangled(info.dli_sname) : "", hex(address - base), ')');
  }
  return text.empty() ? "an unknown place" : text;
}

}  // namespace emulator
