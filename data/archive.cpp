// SPDX-License-Identifier: Apache-2.0
#include "data/archive.h"

#include <algorithm>
#include <vector>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

/// The program that unpacks a file of this name; null for no archive.
const char* unpacked_by(const std::string& name) {
  for (const char* ending : {".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst"})
    if (name.ends_with(ending)) return "tar -xf";
  return name.ends_with(".zip")   ? "unzip"
         : name.ends_with(".7z")  ? "7z x"
         : name.ends_with(".rar") ? "unrar x"
                                  : nullptr;
}

}  // namespace

std::string archive_hint(const fs::path& place) {
  const fs::path plain = place.has_filename() ? place : place.parent_path();  // DIR/ is DIR
  std::error_code ignored;
  std::vector<fs::path> found;
  if (fs::is_regular_file(plain, ignored)) found.push_back(plain);
  if (fs::is_directory(plain, ignored))
    for (fs::directory_iterator at(plain, ignored), end; !ignored && at != end; at.increment(ignored))
      found.push_back(at->path());
  const fs::path beside = plain.has_parent_path() ? plain.parent_path() : ".";
  for (fs::directory_iterator at(beside, ignored), end; !ignored && at != end; at.increment(ignored))
    if (at->path().filename().string().starts_with(plain.filename().string() + ".")) found.push_back(at->path());
  std::erase_if(found, [](const fs::path& one) { return unpacked_by(one.filename().string()) == nullptr; });
  if (found.empty()) return "";
  std::sort(found.begin(), found.end());
  return str(". ", printable(found[0].string()), found.size() > 1 ? str(" (and ", found.size() - 1, " more)") : "",
             " is an archive: unpack it first, with ", unpacked_by(found[0].filename().string()));
}

}  // namespace weft::data
