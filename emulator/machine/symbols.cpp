// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace emulator {
namespace {

/// The symbol table of one file, which stays mapped.
class Symbols {
 public:
  explicit Symbols(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status {};
    if (fstat(file, &status) == 0 && status.st_size > 0) {
      const size_t bytes = static_cast<size_t>(status.st_size);
      void* const map = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
      if (map != MAP_FAILED) read({static_cast<const char*>(map), bytes});
    }
    close(file);
  }

  std::string find(uint64_t address, uint64_t& begin) const {
    const auto next = std::ranges::upper_bound(functions_, address, {}, &Function::begin);
    if (next == functions_.begin()) return {};
    const Function& found = *std::prev(next);
    if (address >= found.begin + std::max<uint64_t>(found.bytes, 1)) return {};
    begin = found.begin;
    return found.name;
  }

 private:
  struct Function {
    uint64_t begin, bytes;
    const char* name;
  };
  template <class T>
  static std::span<const T> table(std::span<const char> file, uint64_t at, uint64_t bytes) {
    if (at > file.size() || bytes > file.size() - at) return {};
    return {reinterpret_cast<const T*>(file.data() + at), bytes / sizeof(T)};
  }

  void read(std::span<const char> file) {
    const auto header = table<Elf64_Ehdr>(file, 0, sizeof(Elf64_Ehdr));
    if (header.empty() || std::string_view(file.data(), SELFMAG) != ELFMAG || file[EI_CLASS] != ELFCLASS64) return;
    const auto sections = table<Elf64_Shdr>(file, header[0].e_shoff, uint64_t{header[0].e_shnum} * sizeof(Elf64_Shdr));
    for (const Elf64_Shdr& section : sections) {
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
      const auto names = table<char>(file, sections[section.sh_link].sh_offset, sections[section.sh_link].sh_size);
      for (const Elf64_Sym& symbol : table<Elf64_Sym>(file, section.sh_offset, section.sh_size))
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF && symbol.st_name < names.size())
          functions_.push_back({symbol.st_value, symbol.st_size, names.data() + symbol.st_name});
    }
    std::ranges::sort(functions_, {}, &Function::begin);
  }

  std::vector<Function> functions_;
};

}  // namespace

std::string local_symbol(const char* path, uint64_t address, uint64_t& begin) {
  static std::mutex mutex;
  static auto* const files = new std::map<std::string, Symbols>;
  const std::lock_guard lock(mutex);
  return files->try_emplace(path, path).first->second.find(address, begin);
}

}  // namespace emulator
