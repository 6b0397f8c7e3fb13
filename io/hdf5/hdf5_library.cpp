// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/hdf5_library.h"

#include "io/hdf5/hdf5_state.h"
#include "kernels/error.h"
#include "kernels/runtime/shared_library.h"

namespace weft {
namespace {

struct Version {
  unsigned major = 0, minor = 0, release = 0;
  std::string text() const { return str(major, '.', minor, '.', release); }
};

constexpr Version kBuiltWith{H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE};

Version version_of(const Hdf5Library& library) {
  Version version;
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): refusal() has looked whether it is there
  library.get_libversion(&version.major, &version.minor, &version.release);
  return version;
}

// Two steps expand a name that is a macro for one of several versions of a function.
#define WEFT_HDF5_TEXT(symbol) #symbol
#define WEFT_HDF5_NAME(symbol) WEFT_HDF5_TEXT(symbol)

/// Fills `library` from an open file; returns the name of the first missing symbol.
std::string fill(Hdf5Library& library, void* handle) {
  std::string absent;
  const auto find = [&]<class Symbol>(Symbol*& symbol, const char* name) {
    symbol = reinterpret_cast<Symbol*>(dlsym(handle, name));
    if (!symbol && absent.empty()) absent = name;
  };
#define WEFT_HDF5_FIND(name) find(library.name, WEFT_HDF5_NAME(H5##name));
  WEFT_HDF5_FUNCTIONS(WEFT_HDF5_FIND)
#undef WEFT_HDF5_FIND
#define WEFT_HDF5_FIND(name) find(library.name##_g, WEFT_HDF5_NAME(H5##name##_g));
  WEFT_HDF5_IDENTIFIERS(WEFT_HDF5_FIND)
#undef WEFT_HDF5_FIND
  return absent;
}

/// Where the program links HDF5 itself, variables that it names lie in the program (copy relocations): the library uses
/// those, and its own, which dlsym() finds, stay as they were. The name of one that has no value anywhere.
std::string find_copies(Hdf5Library& library) {
  std::string empty;
  const auto find = [&](hid_t*& variable, const char* name) {
    if (*variable >= 0) return;
    if (void* const copy = dlsym(RTLD_DEFAULT, name)) variable = static_cast<hid_t*>(copy);
    if (*variable < 0) empty = name;
  };
#define WEFT_HDF5_FIND(name) find(library.name##_g, WEFT_HDF5_NAME(H5##name##_g));
  WEFT_HDF5_IDENTIFIERS(WEFT_HDF5_FIND)
#undef WEFT_HDF5_FIND
  return empty;
}

#undef WEFT_HDF5_NAME
#undef WEFT_HDF5_TEXT

/// Why Weft cannot use `library`; empty if it can.
std::string refusal(Hdf5Library& library, const std::string& absent) {
  if (library.get_libversion && library.dont_atexit) {
    library.dont_atexit();  // before any call that sets the library up
    const Version found = version_of(library);
    // Releases of one minor version are compatible, according to the HDF Group.
    if (found.major != kBuiltWith.major || found.minor != kBuiltWith.minor) return "is HDF5 " + found.text();
  }
  if (!absent.empty()) return "has no " + absent;
  if (library.open() < 0) return "H5open() fails";
  const std::string empty = find_copies(library);
  return empty.empty() ? "" : "gives " + empty + " no value";
}

/// Loads the library from one file; returns why that failed, or nothing.
std::string take(const std::string& file, Hdf5Library& library) {
  // A process that links the same HDF5 itself shares it: the loader knows it by its name.
  const kernels::SharedLibrary shared(file);
  if (!shared.handle) return shared.error;
  const std::string absent = fill(library, shared.handle), why = refusal(library, absent);
  if (why.empty()) {
    // RTLD_GLOBAL, as if it were linked: filter plugins need not name the library that they call.
    dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    return "";
  }
  dlclose(shared.handle);
  return file + ": " + why;
}

}  // namespace

Hdf5Library load_hdf5(const std::string& file, const std::string& folder) {
  // Two copies in one process would call each other's functions: only the copy that the program has loaded is used.
  const bool loaded_by_program = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr;
  Hdf5Library library;
  std::string reasons = take(file, library);
  if (reasons.empty()) return library;
  if (!folder.empty() && !loaded_by_program) {
    const std::string other = take(folder + '/' + file, library);
    if (other.empty()) return library;
    reasons += "; " + other;
  }
  fail("hdf5: cannot load ", file, " of HDF5 ", kBuiltWith.text(), " (", reasons,
       "). On Debian: apt-get install libhdf5-dev; elsewhere put its folder into LD_LIBRARY_PATH");
}

const Hdf5Library& hdf5() {
  static const Hdf5Library library = load_hdf5(WEFT_HDF5_FILE, WEFT_HDF5_FOLDER);
  return library;
}

std::string describe_hdf5() {
  try {
    return str(WEFT_HDF5_FILE, ", HDF5 ", version_of(hdf5()).text());
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace weft
