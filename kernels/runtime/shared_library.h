// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dlfcn.h>

#include <string>

namespace weft::kernels {

/// A shared library loaded on demand: by the loader's own search, else from a folder.
struct SharedLibrary {
  void* handle = nullptr;
  std::string error;  ///< the loader's text if handle is null

  explicit SharedLibrary(const std::string& file, const std::string& folder = "") {
    handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) return;
    error = dlerror();
    if (!folder.empty()) handle = dlopen((folder + '/' + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
};

}  // namespace weft::kernels
