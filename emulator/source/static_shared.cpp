// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/static_shared.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace emulator::source {

namespace {

bool is_kernel_static(const char* name) {
  // _ZZ: a name inside a function. The emulator's own are not kernels' shared memory.
  return std::strncmp(name, "_ZZ", 3) == 0 && std::strstr(name, "4weft8emulator") == nullptr;
}

std::vector<SharedVariable> read_symbols() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string image((std::istreambuf_iterator<char>(file)), {});
  std::vector<SharedVariable> found;
  if (image.size() < sizeof(Elf64_Ehdr)) return found;
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof(header));
  const auto section = [&](size_t i) {
    Elf64_Shdr s{};
    const size_t at = header.e_shoff + i * sizeof(s);
    if (at + sizeof(s) <= image.size()) std::memcpy(&s, image.data() + at, sizeof(s));
    return s;
  };
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr names = section(symbols.sh_link);
    if (symbols.sh_offset + symbols.sh_size > image.size() || names.sh_offset + names.sh_size > image.size()) continue;
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, image.data() + symbols.sh_offset + at, sizeof(symbol));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_size == 0 || symbol.st_name >= names.sh_size) continue;
      const char* name = image.data() + names.sh_offset + symbol.st_name;
      if (is_kernel_static(name)) found.push_back({symbol.st_value, symbol.st_size, name});
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return found;
}

}  // namespace

const std::vector<SharedVariable>& shared_variables() {
  static const std::vector<SharedVariable>& variables = *new std::vector<SharedVariable>(read_symbols());
  return variables;
}

const SharedVariable* find_shared_variable(size_t offset) {
  const auto& all = shared_variables();
  auto next = std::upper_bound(all.begin(), all.end(), offset,
                               [](size_t value, const SharedVariable& v) { return value < v.offset; });
  if (next == all.begin()) return nullptr;
  --next;
  return offset < next->offset + next->bytes ? &*next : nullptr;
}

std::string plain_name(const std::string& mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = text ? text : mangled;
  std::free(text);
  const size_t colon = name.rfind("::");
  return colon == name.npos ? name : name.substr(colon + 2);
}

}  // namespace emulator::source
