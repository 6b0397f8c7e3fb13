// SPDX-License-Identifier: Apache-2.0
#include "emulator/program_look.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "emulator/cuda/elf_view.h"
#include "emulator/machine/fault.h"

namespace emulator {
namespace {

/// The program has CUDA's runtime inside: it registers its kernels by a function of its own.
bool has_static_runtime(const cuda::ElfView& elf) {
  const Elf64_Shdr symbols = elf.first(SHT_DYNSYM);
  Elf64_Shdr strings;
  Elf64_Sym symbol;
  if (!elf.section(symbols.sh_link, strings)) return true;  // nothing is linked dynamically
  for (uint64_t at = 0; at < symbols.sh_size && elf.read(symbol, symbols.sh_offset + at); at += sizeof(symbol))
    if (symbol.st_shndx == SHN_UNDEF && elf.text(strings, symbol.st_name) == "__cudaRegisterFatBinary") return false;
  return true;
}

/// Calls `each` (name) for the functions that the program's symbol table defines.
template <class F>
void for_defined(const cuda::ElfView& elf, F&& each) {
  const Elf64_Shdr symbols = elf.first(SHT_SYMTAB);
  Elf64_Shdr strings;
  Elf64_Sym symbol;
  if (symbols.sh_size == 0 || !elf.section(symbols.sh_link, strings)) return;
  for (uint64_t at = 0; at < symbols.sh_size && elf.read(symbol, symbols.sh_offset + at); at += sizeof(symbol))
    if (symbol.st_shndx != SHN_UNDEF) each(elf.text(strings, symbol.st_name));
}

/// The library of NVIDIA's that is linked into the program, by a function that each use of it needs; empty: none.
/// Such a library has tens of megabytes of machine code, a program's own function of that name does not.
std::string library_inside(const cuda::ElfView& elf) {
  constexpr size_t kLeastCode = size_t{4} << 20;
  std::string found;
  if (elf.named(".nv_fatbin").sh_size < kLeastCode) return found;
  for_defined(elf, [&](const std::string& name) {
    if (name == "cublasCreate_v2") found = "cublas";
    if (name == "curandCreateGenerator") found = "curand";
    if (name == "cusolverDnCreate") found = "cusolver";
    if (name == "cufftCreate" || name == "cufftPlan1d" || name == "cufftPlanMany") found = "cufft";
  });
  return found;
}

/// The version of CUDA's runtime that the file has inside; 0: none.
int own_runtime(const std::string& path) {
  const MappedFile file(path);
  const cuda::ElfView elf(file.bytes());
  bool has_runtime = false, is_12 = false;
  for_defined(elf, [&](const std::string& name) {
    has_runtime = has_runtime || name == "__cudaRegisterFatBinary";
    is_12 = is_12 || name == "cudaGetDeviceProperties_v2";
  });
  return has_runtime ? is_12 ? 12 : 13 : 0;
}

bool has_kernels(const std::string& path) {
  const MappedFile file(path);
  return cuda::ElfView(file.bytes()).named(".nv_fatbin").sh_size != 0;
}

/// The paths of the libraries that the dynamic linker loads with a program. A library without a file is a name.
std::vector<std::string> linked_libraries(const std::string& path) {
  std::string quoted;
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> list(popen(("ldd '" + quoted + "' 2>/dev/null").c_str(), "r"),
                                                             pclose);
  std::string text;
  char part[4096];
  while (const size_t count = list ? std::fread(part, 1, sizeof(part), list.get()) : 0) text.append(part, count);
  std::istringstream lines(text);
  std::vector<std::string> found;
  for (std::string line, name, arrow, file; std::getline(lines, line);) {
    std::istringstream words(line);
    words >> name >> arrow >> file;
    found.push_back(arrow == "=>" && file.starts_with('/') ? file : name);
  }
  return found;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
    void* const memory = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (memory != MAP_FAILED) data_ = static_cast<const char*>(memory), size_ = static_cast<size_t>(status.st_size);
  }
  if (file >= 0) close(file);
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<char*>(data_), size_);
}

std::vector<cuda::Fatbin> fat_binaries(const MappedFile& file) {
  std::vector<cuda::Fatbin> found;
  constexpr uint64_t kBegin = 0x00100001ba55ed50u;  // magic, version 1, a header of 16 bytes
  const std::string_view bytes = file.bytes();
  for (size_t at = 0; at + 16 <= bytes.size(); at += 8) {
    uint64_t head[2];
    std::memcpy(head, bytes.data() + at, sizeof(head));
    if (head[0] == kBegin && head[1] <= bytes.size() - at)
      found.push_back(cuda::read_image(bytes.data() + at, bytes.size() - at));
  }
  return found;
}

std::string found_on_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0 ? program : std::string();
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string file = (folder.empty() ? "." : folder) + "/" + program; access(file.c_str(), X_OK) == 0)
      return file;
  return {};
}

std::string objection(const std::string& path, const Gpu& gpu) {
  const MappedFile file(path);
  const cuda::ElfView elf(file.bytes());
  if (!elf.valid() || elf.named(".nv_fatbin").sh_size == 0) return {};
  if (has_static_runtime(elf) && elf.first(SHT_SYMTAB).sh_size == 0)
    return path +
           " has CUDA's runtime inside (nvcc's default) and no symbol table, which would tell where. Do not strip it, or "
           "link the shared runtime: nvcc -cudart shared (CMake: CUDA_RUNTIME_LIBRARY Shared)";
  if (const std::string library = library_inside(elf); !library.empty())
    return cat(path, " has lib", library, "_static inside, which is machine code. Link the shared library: -l", library);
  std::set<std::string> code;
  try {
    for (const cuda::Fatbin& binary : fat_binaries(file)) {
      if (!binary.ptx_for(gpu.capability()).empty()) return {};
      if (binary.may_have_kernels()) code.insert(binary.describe());
    }
  } catch (...) {
    return {};  // a form that is read, or refused with its own text, when the program loads it
  }
  if (code.empty()) return {};
  std::string all;
  for (const std::string& each : code) all += (all.empty() ? "" : "; ") + each;
  return cat(path, " has no PTX that ", gpu.name, " (compute capability ", gpu.capability() / 10, '.',
             gpu.capability() % 10, ") can run, only ", all, ". Compile with -gencode arch=compute_80,code=compute_80");
}

int runtime_inside(const std::string& path) {
  int version = own_runtime(path);
  if (version == 0 && !is_interpreter(path) && !has_kernels(path))
    for (const std::string& library : linked_libraries(path))
      if (library.find("/libcudart.so") == std::string::npos) version = std::max(version, own_runtime(library));
  return version;
}

bool names_nvrtc(const std::string& path) {
  const MappedFile file(path);
  const cuda::ElfView elf(file.bytes());
  if (!elf.valid()) return false;
  for (const char* const section : {".dynstr", ".rodata"})
    if (const Elf64_Shdr s = elf.named(section);
        s.sh_offset < file.bytes().size() && file.bytes().substr(s.sh_offset, s.sh_size).find("libnvrtc") != std::string_view::npos)
      return true;
  return false;
}

bool is_interpreter(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("python") || name.starts_with("pypy") || name.starts_with("julia")) return true;
  std::ifstream file(path, std::ios::binary);  // a script that names its interpreter
  return file.get() == '#' && file.get() == '!';
}

bool uses_no_cuda(const std::string& path) {
  if (is_interpreter(path)) return false;
  if (!cuda::ElfView(MappedFile(path).bytes()).valid() || has_kernels(path)) return false;
  for (const std::string& linked : linked_libraries(path)) {
    for (const char* const library : {"libcudart.so", "libcuda.so", "libnccl.so", "libcublas", "libcurand.so",
                                      "libcufft.so", "libcusolver", "libnvjpeg.so", "libcudnn"})
      if (linked.find(library) != std::string::npos) return false;
    if (own_runtime(linked) != 0) return false;
  }
  return true;
}

}  // namespace emulator
