// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/cubin.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

// A cubin is an ELF file. Its section .nv.info is a list of attributes: a byte for the format, one for the attribute, two for
// the size; of format 4 the bytes follow. Attribute 0x2f is a symbol and its registers (cuobjdump --dump-elf prints them).

namespace emulator::cuda {

std::unordered_map<std::string, int> registers_of_cubin(std::string_view elf) {
  std::unordered_map<std::string, int> found;
  const auto read = [&](auto& value, uint64_t at) {
    if (at > elf.size() || sizeof(value) > elf.size() - at) return false;
    std::memcpy(&value, elf.data() + at, sizeof(value));
    return true;
  };
  Elf64_Ehdr header;
  if (!read(header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return found;
  const auto section = [&](uint64_t number, Elf64_Shdr& s) {
    return number < header.e_shnum && read(s, header.e_shoff + number * sizeof(Elf64_Shdr));
  };
  const auto text = [&](const Elf64_Shdr& strings, uint64_t at) {
    const uint64_t begin = strings.sh_offset + at;
    return begin < elf.size() ? std::string(elf.data() + begin, strnlen(elf.data() + begin, elf.size() - begin)) : std::string();
  };
  Elf64_Shdr names, symbols{}, strings{}, info{}, one;
  if (!section(header.e_shstrndx, names)) return found;
  for (uint64_t k = 0; section(k, one); ++k) {
    if (one.sh_type == SHT_SYMTAB) symbols = one;
    if (text(names, one.sh_name) == ".nv.info") info = one;
  }
  if (!section(symbols.sh_link, strings)) return found;
  constexpr uint8_t kSized = 4, kRegisters = 0x2f;
  for (uint64_t at = 0; at + 4 <= info.sh_size;) {
    uint8_t format, attribute;
    uint16_t bytes;
    if (!read(format, info.sh_offset + at) || !read(attribute, info.sh_offset + at + 1) || !read(bytes, info.sh_offset + at + 2)) break;
    uint32_t entry[2];
    Elf64_Sym symbol;
    if (format == kSized && attribute == kRegisters && bytes == sizeof(entry) && read(entry, info.sh_offset + at + 4) &&
        read(symbol, symbols.sh_offset + entry[0] * sizeof(Elf64_Sym)))
      found[text(strings, symbol.st_name)] = static_cast<int>(entry[1]);
    at += 4 + (format == kSized ? bytes : 0);
  }
  return found;
}

}  // namespace emulator::cuda
