// SPDX-License-Identifier: Apache-2.0
// nvcc links CUDA's runtime into programs and libraries by default. This writes a jump to the emulator's function of the
// same name at the begin of each runtime function. The dynamic linker loads it as its auditor (rtld-audit(7)): a library
// changes after it was mapped and before its first constructor runs. Symbol tables tell where the functions lie.
// NVRTC's functions for machine code lead to those for PTX, which the emulated driver loads in its place.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/cuda/elf_view.h"
#include "emulator/cuda/static_runtimes.h"

namespace {

using emulator::cuda::ElfView;
using Functions = std::map<std::string, uintptr_t>;

constexpr const char* kProgram = "/proc/self/exe";
struct Object {
  std::string path;
  uintptr_t base = 0;
};
std::vector<Object>& waiting() {
  static std::vector<Object> objects;
  return objects;
}
/// Where the emulator keeps the libraries that have a runtime inside; nullptr: it is not loaded.
emulator::cuda::StaticRuntime* libraries = nullptr;
/// The emulator's functions, by the runtime's version.
std::map<int, Functions>& emulated() {
  static std::map<int, Functions> all;
  return all;
}

/// Calls `each` (name, symbol) for the functions, or other symbols, that a table of this kind defines.
template <class F>
void for_functions(const ElfView& elf, uint32_t kind, F&& each, unsigned type = STT_FUNC) {
  const Elf64_Shdr symbols = elf.first(kind);
  Elf64_Shdr strings;
  Elf64_Sym symbol;
  if (symbols.sh_size == 0 || !elf.section(symbols.sh_link, strings)) return;
  for (uint64_t at = 0; at < symbols.sh_size && elf.read(symbol, symbols.sh_offset + at); at += sizeof(symbol))
    if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == type)
      each(elf.text(strings, symbol.st_name), symbol);
}

#if defined(__x86_64__)
// jmp *0(%rip), and the address.
struct [[gnu::packed]] Jump {
  uint8_t code[6] = {0xff, 0x25, 0, 0, 0, 0};
  uintptr_t to = 0;
};
#else
// ldr x16, .+8; br x16, and the address.
struct [[gnu::packed]] Jump {
  uint32_t code[2] = {0x58000050, 0xd61f0200};
  uintptr_t to = 0;
};
#endif

void redirect(const Object& object, const ElfView& elf) {
  std::map<std::string, Elf64_Sym> own;
  const uint32_t table = object.path.find("/libnvrtc") == std::string::npos ? SHT_SYMTAB : SHT_DYNSYM;  // NVIDIA's is stripped
  for_functions(elf, table, [&](std::string name, const Elf64_Sym& symbol) {
    if (name.starts_with("cuda") || name.starts_with("__cuda") || name.starts_with("nvrtcGet")) own.emplace(std::move(name), symbol);
  });
  Functions targets;
  if (own.contains("__cudaRegisterFatBinary") && own.contains("cudaLaunchKernel")) {
    if (const Elf64_Shdr code = elf.named(".text"); libraries && object.path != kProgram)
      for (size_t k = 0; k < emulator::cuda::kMostStaticRuntimes; ++k)
        if (libraries[k].begin == libraries[k].end) {
          libraries[k] = {object.base, object.base + code.sh_addr + code.sh_size};
          break;
        }
    targets = emulated()[own.contains("cudaGetDeviceProperties_v2") ? 12 : 13];
  }
  for (const std::string size : {"", "Size"})
    if (const auto ptx = own.find("nvrtcGetPTX" + size); ptx != own.end())
      targets["nvrtcGetCUBIN" + size] = object.base + ptx->second.st_value;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const auto& [name, symbol] : own) {
    const auto target = targets.find(name);
    constexpr uintptr_t kAlignment = 16;  // functions begin at its multiples
    if (target == targets.end() || symbol.st_value % kAlignment != 0) continue;
    const uintptr_t at = object.base + symbol.st_value, first = at / page * page;
    const size_t bytes = at + sizeof(Jump) - first;
    if ((symbol.st_size + kAlignment - 1) / kAlignment * kAlignment < sizeof(Jump)) continue;
    if (mprotect(reinterpret_cast<void*>(first), bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
      std::fprintf(stderr, "weft-emulate: %s: this system lets no program change its code; link the shared runtime "
                           "(nvcc -cudart shared), and let NVRTC compile to PTX (-arch=compute_80)\n", object.path.c_str());
      std::exit(2);
    }
    Jump jump;
    jump.to = target->second;
    std::memcpy(reinterpret_cast<void*>(at), &jump, sizeof(jump));
    mprotect(reinterpret_cast<void*>(first), bytes, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(reinterpret_cast<char*>(at), reinterpret_cast<char*>(at + sizeof(jump)));
  }
}

/// The folder of the emulator's libraries, with a slash at its end.
std::string own_folder() {
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&own_folder), &self);
  const std::string own = self.dli_fname;
  return own.substr(0, own.rfind('/') + 1);
}

/// Calls `use` with the file's bytes.
template <class F>
void with_file(const std::string& path, F&& use) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  void* memory = MAP_FAILED;
  if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0)
    memory = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) return;
  use(ElfView({static_cast<const char*>(memory), static_cast<size_t>(status.st_size)}));
  munmap(memory, static_cast<size_t>(status.st_size));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) unsigned la_version(unsigned) { return LAV_CURRENT; }

/// Python's wheels load NVIDIA's libraries by full paths: the emulator's take their places, but for NCCL. PyTorch's has
/// newer functions.
__attribute__((visibility("default"))) char* la_objsearch(const char* name, uintptr_t*, unsigned) {
  static std::set<std::string> answers;
  const std::string path = name, file = path.substr(path.rfind('/') + 1);
  const bool is_cudas = file.starts_with("libcu") || file.starts_with("libnv");
  if (file == path || !is_cudas || access((own_folder() + file).c_str(), R_OK) != 0) return const_cast<char*>(name);
  return const_cast<char*>(answers.insert(own_folder() + file).first->c_str());
}

__attribute__((visibility("default"))) unsigned la_objopen(link_map* map, Lmid_t space, uintptr_t*) {
  if (space != LM_ID_BASE) return 0;
  const Object object{map->l_name && *map->l_name ? map->l_name : kProgram, map->l_addr};
  const std::string folder = own_folder();
  for (const int version : {12, 13})
    if (object.path == folder + "libcudart.so." + std::to_string(version))
      with_file(object.path, [&](const ElfView& elf) {
        for_functions(elf, SHT_DYNSYM, [&](std::string function, const Elf64_Sym& symbol) {
          emulated()[version].emplace(std::move(function), object.base + symbol.st_value);
        });
      });
  if (object.path == folder + "libweft_gpu.so")
    with_file(object.path, [&](const ElfView& elf) {
      for_functions(elf, SHT_DYNSYM, [&](const std::string& name, const Elf64_Sym& symbol) {
        if (name == "emulator_static_runtimes") libraries = reinterpret_cast<emulator::cuda::StaticRuntime*>(object.base + symbol.st_value);
      }, STT_OBJECT);
    });
  // NVIDIA's shared runtime stays as it is.
  if (object.path.find("/libcudart.so") == std::string::npos) waiting().push_back(object);
  return 0;
}

/// A library goes.
__attribute__((visibility("default"))) unsigned la_objclose(uintptr_t* cookie) {
  const uintptr_t base = reinterpret_cast<link_map*>(*cookie)->l_addr;  // as glibc initialises it
  for (size_t k = 0; libraries && k < emulator::cuda::kMostStaticRuntimes; ++k)
    if (libraries[k].begin == base) libraries[k].end = base;
  return 0;
}

/// All that is being loaded is mapped.
__attribute__((visibility("default"))) void la_activity(uintptr_t*, unsigned what) {
  if (what != LA_ACT_CONSISTENT) return;
  for (const Object& object : std::exchange(waiting(), {}))
    with_file(object.path, [&](const ElfView& elf) { redirect(object, elf); });
}

}  // extern "C"
