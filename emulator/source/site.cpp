// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/site.h"

#include <link.h>

#include <mutex>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/source/report.h"

namespace emulator::source {

namespace {

/// Every SourceLine that was ever noted, by its number.
struct Lines {
  std::mutex mutex;
  std::vector<SourceLine> all;

  Site number(SourceLine where) {
    std::lock_guard lock(mutex);
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].file == where.file && all[i].line == where.line) return static_cast<Site>(i);
    all.push_back(where);
    return static_cast<Site>(all.size() - 1);
  }
  SourceLine at(Site number) {
    std::lock_guard lock(mutex);
    return all[number];
  }
};
Lines& lines() {
  static Lines& lines = *new Lines;
  return lines;
}

/// The program is the first object that the loader lists.
uintptr_t find_program_base() {
  uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        *static_cast<uintptr_t*>(found) = info->dlpi_addr;
        return 1;
      },
      &base);
  return base;
}

}  // namespace

const uintptr_t program_base = find_program_base();

Site site_of(SourceLine where) {
  struct Known {
    SourceLine where;
    Site site;
  };
  constexpr size_t kKnown = 64;
  static __thread Known known[kKnown];
  Known& entry = known[(reinterpret_cast<uintptr_t>(where.file) / 16 + static_cast<size_t>(where.line)) % kKnown];
  if (entry.where.file != where.file || entry.where.line != where.line)
    entry = {where, kListed | lines().number(where)};
  return entry.site;
}

std::string site_text(Site site) {
  if (site & kListed) return cat(lines().at(site & ~kListed));
  return source_line(reinterpret_cast<const void*>(program_base + site));
}

}  // namespace emulator::source
