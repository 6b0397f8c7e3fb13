// SPDX-License-Identifier: Apache-2.0
#include "dist/group/gloo_outbox.h"

#include <gloo/common/error.h>

#include <chrono>
#include <utility>

namespace weft::dist {

// A wait that ends by its time breaks all of Gloo's connections: the receiver may take as long as it likes.
constexpr std::chrono::hours kLong{1000};

GlooOutbox::~GlooOutbox() {
  abort();
  if (thread_.joinable()) thread_.join();
}

void GlooOutbox::keep(std::unique_ptr<gloo::transport::UnboundBuffer> buffer, std::vector<std::byte> data) {
  {
    const std::lock_guard lock(mutex_);
    letters_.push_back({std::move(data), std::move(buffer)});
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
}

bool GlooOutbox::flush(Link::Deadline deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] { return letters_.empty(); });
}

void GlooOutbox::abort() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const Letter& letter : letters_) letter.buffer->abortWaitSend();
  }
  changed_.notify_all();
}

void GlooOutbox::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !letters_.empty(); });
    if (ending_) break;
    gloo::transport::UnboundBuffer& first = *letters_.front().buffer;
    lock.unlock();
    try {
      first.waitSend(kLong);
    } catch (const gloo::Exception&) {  // the connection is gone: who waits for it hears so
    }
    lock.lock();
    Letter gone = std::move(letters_.front());
    letters_.pop_front();
    changed_.notify_all();
  }
  letters_.clear();
}

}  // namespace weft::dist
