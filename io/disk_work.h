// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

namespace weft {

/// While it lives, this process is known to work on a file. A busy disk may take minutes: ranks that wait for this
/// process are told (dist/rendezvous/membership.h). Thread-safe.
class DiskWork {
 public:
  /// `what`: `writing runs/a/checkpoint_last.safetensors`.
  explicit DiskWork(std::string what);
  ~DiskWork();
  DiskWork(const DiskWork&) = delete;
  DiskWork& operator=(const DiskWork&) = delete;

  struct Longest {
    std::string what;
    double seconds = 0;
  };
  /// The longest of all work that is under way now.
  static std::optional<Longest> longest();
};

}  // namespace weft
