// SPDX-License-Identifier: Apache-2.0
// A part of nvJitLink.h. The driver's linker links PTX (cuda/driver/link.cpp), and the "cubin" that it makes is PTX again,
// which the emulated driver loads. NVIDIA's own nvJitLink compiles LTO-IR to PTX without a GPU. So numba and cuda.core run.
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Numbers as in nvJitLink.h.
enum Result : int { success, unrecognised_option, missing_arch, invalid_input, ptx_compile, nvvm_compile, internal };
enum Input : int { cubin = 1, ptx, ltoir, fatbin, object, library, index, any = 10 };

/// NVIDIA's library of the same name. The search begins beside a loaded libNVVM or NVRTC, whose LTO-IR an older
/// nvJitLink does not read; then come LD_LIBRARY_PATH, CUDA_HOME and CUDA_PATH.
struct Nvidias {
  void* library = nullptr;

  static const Nvidias& get() {
    static const Nvidias found;
    return found;
  }
  Nvidias() {
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&get), &self);
    const std::string own = self.dli_fname ? self.dli_fname : "", name = own.substr(own.rfind('/') + 1);
    std::vector<std::string> folders;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* all) {
          const std::string path = info->dlpi_name ? info->dlpi_name : "";
          if (path.find("/libnvvm.so") != std::string::npos || path.find("/libnvrtc.so") != std::string::npos)
            static_cast<std::vector<std::string>*>(all)->push_back(path.substr(0, path.rfind('/')));
          return 0;
        },
        &folders);
    const auto value = [](const char* variable) { return std::string(std::getenv(variable) ? std::getenv(variable) : ""); };
    std::istringstream path(value("LD_LIBRARY_PATH"));
    for (std::string folder; std::getline(path, folder, ':');) folders.push_back(folder);
    for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"}) folders.push_back(value(variable) + "/lib64");
    folders.insert(folders.end(), {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"});
    for (const std::string& folder : folders) {
      const std::string file = folder + '/' + name;
      char* const real = realpath(file.c_str(), nullptr);
      if (real && own != file && own != real) library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
      std::free(real);
      if (library) return;
    }
  }
  template <class... Arguments>
  int call(const char* function, Arguments... arguments) const {
    auto* const address = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, function));
    return address ? address(arguments...) : int(internal);
  }
};

struct Link {
  CUlinkState state = nullptr;
  std::vector<std::string> options;
  void* of_lto = nullptr;  ///< NVIDIA's link of the LTO-IR; null: there was none
  char errors[4096] = "";
  std::string text;  ///< linked, without its end
};

Result told(Link& link, Result result, const std::string& why) {
  const std::string line = "weft-emulate: nvJitLink: " + why;
  link.errors[line.copy(link.errors, sizeof(link.errors) - 1)] = 0;
  return result;
}

/// Keeps the error text of NVIDIA's library.
Result failed(Link& link, int result) {
  size_t size = 0;
  std::string log;
  if (Nvidias::get().call("nvJitLinkGetErrorLogSize", link.of_lto, &size) == success && size > 0) {
    log.resize(size);
    Nvidias::get().call("nvJitLinkGetErrorLog", link.of_lto, log.data());
  }
  return told(link, Result(result), "LTO-IR: " + std::string(log.c_str()));
}

Result add_lto(Link& link, const void* data, size_t bytes, const char* name) {
  const Nvidias& theirs = Nvidias::get();
  if (!theirs.library)
    return told(link, nvvm_compile,
                std::string(name ? name : "an input") +
                    " is LTO-IR, of which NVIDIA's libnvJitLink makes PTX, and it is in no folder of LD_LIBRARY_PATH, CUDA_HOME or "
                    "CUDA_PATH. Install it, or compile to PTX");
  if (!link.of_lto) {
    std::vector<const char*> options{"-ptx"};
    bool lto = false;
    for (const std::string& option : link.options) {
      if (option != "-ptx") options.push_back(option.c_str());
      lto = lto || option == "-lto";
    }
    if (!lto) options.push_back("-lto");
    if (const int result = theirs.call("nvJitLinkCreate", &link.of_lto, static_cast<uint32_t>(options.size()), options.data()))
      return told(link, Result(result), "NVIDIA's nvJitLinkCreate refuses the options");
  }
  const int result = theirs.call("nvJitLinkAddData", link.of_lto, int(ltoir), data, bytes, name);
  return result == success ? success : failed(link, result);
}

Result add(Link* link, int kind, const void* data, size_t bytes, const char* name) {
  if (!link || !data || bytes == 0) return invalid_input;
  if (kind == ltoir) return add_lto(*link, data, bytes, name);
  const std::string_view text(static_cast<const char*>(data), bytes);
  const bool is_text = text.find(".version") != std::string_view::npos && text.find("\x7f" "ELF") != 0;
  if (kind != fatbin && !((kind == ptx || kind == any || kind == cubin) && is_text))
    return told(*link, invalid_input,
                std::string(name ? name : "an input") + " is neither PTX nor LTO-IR nor a fat binary: there is nothing to run");
  const std::string copy(text);  // with its end
  const CUjitInputType type = kind == fatbin ? CU_JIT_INPUT_FATBINARY : CU_JIT_INPUT_PTX;
  const CUresult result =
      cuLinkAddData(link->state, type, const_cast<char*>(copy.c_str()), bytes + (type == CU_JIT_INPUT_PTX), name, 0, nullptr, nullptr);
  return result == CUDA_SUCCESS ? success : ptx_compile;
}

}  // namespace

WEFT_EXPORT Result nvJitLinkCreate(Link** handle, uint32_t count, const char* const* options) {
  if (!handle || (count > 0 && !options)) return invalid_input;
  bool has_arch = false;
  for (uint32_t i = 0; i < count; ++i) has_arch = has_arch || std::string_view(options[i]).starts_with("-arch=");
  if (!has_arch) return missing_arch;
  cuInit(0);
  auto* const link = new (std::nothrow) Link;
  if (!link) return internal;
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {link->errors, reinterpret_cast<void*>(sizeof(link->errors))};
  if (cuLinkCreate(2, names, values, &link->state) != CUDA_SUCCESS) {
    delete link;
    return internal;
  }
  for (uint32_t i = 0; i < count; ++i) link->options.emplace_back(options[i]);
  *handle = link;
  return success;
}

WEFT_EXPORT Result nvJitLinkDestroy(Link** handle) {
  if (!handle || !*handle) return invalid_input;
  cuLinkDestroy((*handle)->state);
  if ((*handle)->of_lto) Nvidias::get().call("nvJitLinkDestroy", &(*handle)->of_lto);
  delete *handle;
  *handle = nullptr;
  return success;
}

WEFT_EXPORT Result nvJitLinkAddData(Link* link, int kind, const void* data, size_t bytes, const char* name) {
  return add(link, kind, data, bytes, name);
}

WEFT_EXPORT Result nvJitLinkAddFile(Link* link, int kind, const char* path) {
  std::ifstream file(path ? path : "", std::ios::binary);
  if (!link || !file) return invalid_input;
  const std::string data(std::istreambuf_iterator<char>(file), {});
  return add(link, kind, data.data(), data.size(), path);
}

WEFT_EXPORT Result nvJitLinkComplete(Link* link) {
  void* image = nullptr;
  if (link && link->of_lto) {
    const Nvidias& theirs = Nvidias::get();
    size_t size = 0;
    std::string text;
    int result = theirs.call("nvJitLinkComplete", link->of_lto);
    if (result == success) result = theirs.call("nvJitLinkGetLinkedPtxSize", link->of_lto, &size);
    if (result == success) text.resize(size);
    if (result == success) result = theirs.call("nvJitLinkGetLinkedPtx", link->of_lto, text.data());
    if (result != success) return failed(*link, result);
    text.resize(std::strlen(text.c_str()));
    if (const Result added = add(link, ptx, text.data(), text.size(), "PTX of LTO-IR"); added != success) return added;
  }
  if (!link || cuLinkComplete(link->state, &image, nullptr) != CUDA_SUCCESS) return invalid_input;
  link->text = static_cast<const char*>(image);
  return success;
}

namespace {

/// The size of the linked PTX with its end.
Result linked_size(const Link* link, size_t* size) {
  if (!link || !size || link->text.empty()) return invalid_input;
  *size = link->text.size() + 1;
  return success;
}
Result linked(const Link* link, void* to) {
  if (!link || !to || link->text.empty()) return invalid_input;
  std::memcpy(to, link->text.c_str(), link->text.size() + 1);
  return success;
}

}  // namespace

WEFT_EXPORT Result nvJitLinkGetLinkedCubinSize(Link* link, size_t* size) { return linked_size(link, size); }
WEFT_EXPORT Result nvJitLinkGetLinkedCubin(Link* link, void* to) { return linked(link, to); }
WEFT_EXPORT Result nvJitLinkGetLinkedPtxSize(Link* link, size_t* size) { return linked_size(link, size); }
WEFT_EXPORT Result nvJitLinkGetLinkedPtx(Link* link, char* to) { return linked(link, to); }
WEFT_EXPORT Result nvJitLinkGetErrorLogSize(Link* link, size_t* size) {
  if (!link || !size) return invalid_input;
  *size = std::strlen(link->errors) + 1;
  return success;
}
WEFT_EXPORT Result nvJitLinkGetErrorLog(Link* link, char* to) {
  if (!link || !to) return invalid_input;
  std::strcpy(to, link->errors);
  return success;
}
WEFT_EXPORT Result nvJitLinkGetInfoLogSize(Link* link, size_t* size) {
  if (!link || !size) return invalid_input;
  *size = 1;
  return success;
}
WEFT_EXPORT Result nvJitLinkGetInfoLog(Link* link, char* to) {
  if (!link || !to) return invalid_input;
  *to = 0;
  return success;
}
WEFT_EXPORT Result nvJitLinkVersion(unsigned* major, unsigned* minor) {
  if (!major || !minor) return invalid_input;
  *major = EMULATED_NVJITLINK;
  *minor = EMULATED_NVJITLINK == 12 ? 9 : 0;
  return success;
}

// The header calls the form of its own version.
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#define FORM(name, version) \
  extern "C" __attribute__((visibility("default"), alias("nvJitLink" #name))) decltype(nvJitLink##name) __nvJitLink##name##_##version
#define FORMS(version)               \
  FORM(Create, version);             \
  FORM(Destroy, version);            \
  FORM(AddData, version);            \
  FORM(AddFile, version);            \
  FORM(Complete, version);           \
  FORM(GetLinkedCubinSize, version); \
  FORM(GetLinkedCubin, version);     \
  FORM(GetLinkedPtxSize, version);   \
  FORM(GetLinkedPtx, version);       \
  FORM(GetErrorLogSize, version);    \
  FORM(GetErrorLog, version);        \
  FORM(GetInfoLogSize, version);     \
  FORM(GetInfoLog, version)
#if EMULATED_NVJITLINK == 12
FORMS(12_0);
FORMS(12_1);
FORMS(12_2);
FORMS(12_3);
FORMS(12_4);
FORMS(12_5);
FORMS(12_6);
FORMS(12_7);
FORMS(12_8);
FORMS(12_9);
#else
FORMS(13_0);
FORMS(13_1);
FORMS(13_2);
FORMS(13_3);
FORMS(13_4);
FORMS(13_5);
#endif
