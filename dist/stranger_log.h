// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "dist/socket.h"

namespace weft::dist {

/// One line for each stranger that a server turns away; in a flood ten a minute, then how many there were.
class StrangerLog {
 public:
  /// `write` takes a line; none: stderr.
  explicit StrangerLog(std::function<void(const std::string&)> write);
  ~StrangerLog();
  /// `10.0.0.7:51234`, `speaks another protocol`.
  void turned_away(const std::string& peer, const std::string& why, TimePoint now);

 private:
  void write_rest();

  std::function<void(const std::string&)> write_;
  TimePoint window_{};
  int lines_ = 0, more_ = 0;
};

}  // namespace weft::dist
