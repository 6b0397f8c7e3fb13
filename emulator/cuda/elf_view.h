// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <elf.h>

#include <cstring>
#include <string>
#include <string_view>

namespace emulator::cuda {

/// A 64-bit ELF file in memory: a program, or a cubin. Damaged files have fewer sections, never more bytes.
class ElfView {
 public:
  explicit ElfView(std::string_view bytes) : bytes_(bytes) {
    if (!read(header_, 0) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64)
      header_ = {};
  }
  bool valid() const { return header_.e_shnum != 0; }

  /// Copies the value at byte `at` of the file; false: the file ends before.
  template <class T>
  bool read(T& value, uint64_t at) const {
    if (at > bytes_.size() || sizeof(value) > bytes_.size() - at) return false;
    std::memcpy(&value, bytes_.data() + at, sizeof(value));
    return true;
  }
  bool section(uint64_t number, Elf64_Shdr& s) const {
    return number < header_.e_shnum && read(s, header_.e_shoff + number * sizeof(Elf64_Shdr));
  }
  /// The first section of this type; an empty one where there is none.
  Elf64_Shdr first(uint32_t type) const {
    Elf64_Shdr s;
    for (uint64_t k = 0; section(k, s); ++k)
      if (s.sh_type == type) return s;
    return {};
  }
  /// The section of this name; an empty one where there is none.
  Elf64_Shdr named(std::string_view name) const {
    Elf64_Shdr names, s;
    if (section(header_.e_shstrndx, names))
      for (uint64_t k = 0; section(k, s); ++k)
        if (text(names, s.sh_name) == name) return s;
    return {};
  }
  /// The string at byte `at` of a section of strings.
  std::string text(const Elf64_Shdr& strings, uint64_t at) const {
    const uint64_t begin = strings.sh_offset + at;
    return begin < bytes_.size()
               ? std::string(bytes_.data() + begin, strnlen(bytes_.data() + begin, bytes_.size() - begin))
               : std::string();
  }

 private:
  std::string_view bytes_;
  Elf64_Ehdr header_{};
};

}  // namespace emulator::cuda
