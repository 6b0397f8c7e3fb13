// SPDX-License-Identifier: Apache-2.0
// dlopen() of a machine without HDF5: whatever has hdf5 in its name is looked for where nothing lies.
#include <dlfcn.h>

#include <cstring>
#include <string>

extern "C" void* dlopen(const char* file, int mode) noexcept {
  const auto real = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  if (file == nullptr || std::strstr(file, "hdf5") == nullptr) return real(file, mode);
  const char* const slash = std::strrchr(file, '/');
  return real((std::string("/nowhere/") + (slash != nullptr ? slash + 1 : file)).c_str(), mode);
}
