// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

namespace weft {

/// While it lives, this process is known to work on a file. A busy disk may hold it for minutes: ranks that wait for
/// this one are told of it (dist/rendezvous/membership.h). Thread-safe.
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
  /// Of what is under way now, what has taken the longest.
  static std::optional<Longest> longest();
};

}  // namespace weft
