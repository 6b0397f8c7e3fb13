// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "dist/rendezvous/socket.h"

namespace weft::dist {

/// Writes one line per unauthenticated peer that a server refuses: at most ten a minute, then their count.
class RefusalLog {
 public:
  /// `who` refuses, as in `store`; `write` receives lines; none: stderr.
  explicit RefusalLog(std::string who, std::function<void(const std::string&)> write = {});
  ~RefusalLog();
  /// `10.0.0.7:51234`, `speaks another protocol`.
  void refused(const std::string& peer, const std::string& why, TimePoint now);

 private:
  void write_rest();

  const std::string who_;
  std::function<void(const std::string&)> write_;
  TimePoint window_{};
  int lines_ = 0, more_ = 0;
};

}  // namespace weft::dist
