// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gloo/transport/unbound_buffer.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "dist/group/link.h"

namespace weft::dist {

/// Keeps what was sent until it has gone. Gloo can wait for a message but not be asked, so a thread does the waiting;
/// it begins with the first message.
class GlooOutbox {
 public:
  ~GlooOutbox();
  /// `buffer` sends from `data` and has begun.
  void keep(std::unique_ptr<gloo::transport::UnboundBuffer> buffer, std::vector<std::byte> data);
  /// False: some are still here at the deadline.
  bool flush(Link::Deadline deadline);
  /// Gives up what has not gone.
  void abort();

 private:
  struct Letter {
    std::vector<std::byte> data;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;  // goes before its data
  };
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Letter> letters_;  // the thread waits for the first one, which stays until then
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace weft::dist
