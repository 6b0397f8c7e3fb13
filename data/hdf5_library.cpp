// SPDX-License-Identifier: Apache-2.0
#include "data/hdf5_library.h"

#include "data/hdf5_state.h"
#include "kernels/error.h"
#include "kernels/shared_library.h"

namespace weft::data {
namespace {

struct Version {
  unsigned major = 0, minor = 0, release = 0;
  std::string text() const { return str(major, '.', minor, '.', release); }
};

constexpr Version kBuiltWith{H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE};

Version version_of(const Hdf5Library& library) {
  Version version;
  library.get_libversion(&version.major, &version.minor, &version.release);
  return version;
}

// By two steps: where a name is a macro for one of several versions of a function, that version is wanted.
#define WEFT_HDF5_TEXT(symbol) #symbol
#define WEFT_HDF5_NAME(symbol) WEFT_HDF5_TEXT(symbol)

/// Fills `library` out of an open file; the name of the first symbol that it lacks.
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

/// Why Weft cannot use what lies in `library`; nothing where it can.
std::string refusal(Hdf5Library& library, const std::string& absent) {
  if (library.get_libversion && library.dont_atexit) {
    library.dont_atexit();  // before any call that sets the library up
    const Version found = version_of(library);
    // Releases of one minor version fit together, says the HDF Group.
    if (found.major != kBuiltWith.major || found.minor != kBuiltWith.minor) return "is HDF5 " + found.text();
  }
  if (!absent.empty()) return "has no " + absent;
  if (library.open() < 0) return "H5open() fails";
  const std::string empty = find_copies(library);
  return empty.empty() ? "" : "gives " + empty + " no value";
}

/// Takes the library from one file and says why not; nothing where it could.
std::string take(const std::string& file, Hdf5Library& library) {
  // A process that links the same HDF5 itself shares it: the loader knows it by its name.
  const kernels::SharedLibrary shared(file);
  if (!shared.handle) return shared.error;
  const std::string absent = fill(library, shared.handle), why = refusal(library, absent);
  if (why.empty()) {
    // Its symbols become everybody's, as if it were linked: plugins of filters need not name the library that they
    // call.
    dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    return "";
  }
  dlclose(shared.handle);
  return file + ": " + why;
}

}  // namespace

Hdf5Library load_hdf5(const std::string& file, const std::string& folder) {
  // Two copies in one process would call each other's functions: the one that the program has loaded is the only one.
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

}  // namespace weft::data
