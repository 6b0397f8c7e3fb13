// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/cubin.h"

#include "emulator/cuda/elf_view.h"

// A cubin is an ELF file. Its section .nv.info is a list of attributes: a byte for the format, one for the attribute,
// two for the size; of format 4 the bytes follow. Attribute 0x2f is a symbol and its registers (cuobjdump --dump-elf
// prints them).

namespace emulator::cuda {

std::unordered_map<std::string, int> registers_of_cubin(std::string_view bytes) {
  std::unordered_map<std::string, int> found;
  const ElfView elf(bytes);
  const Elf64_Shdr symbols = elf.first(SHT_SYMTAB), info = elf.named(".nv.info");
  Elf64_Shdr strings;
  if (!elf.section(symbols.sh_link, strings)) return found;
  constexpr uint8_t kSized = 4, kRegisters = 0x2f;
  for (uint64_t at = 0; at + 4 <= info.sh_size;) {
    uint8_t format, attribute;
    uint16_t size;
    if (!elf.read(format, info.sh_offset + at) || !elf.read(attribute, info.sh_offset + at + 1) ||
        !elf.read(size, info.sh_offset + at + 2))
      break;
    uint32_t entry[2];
    Elf64_Sym symbol;
    if (format == kSized && attribute == kRegisters && size == sizeof(entry) &&
        elf.read(entry, info.sh_offset + at + 4) && elf.read(symbol, symbols.sh_offset + entry[0] * sizeof(Elf64_Sym)))
      found[elf.text(strings, symbol.st_name)] = static_cast<int>(entry[1]);
    at += 4 + (format == kSized ? size : 0);
  }
  return found;
}

}  // namespace emulator::cuda
