// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "core/capture.h"
#include "dist/process_group.h"

namespace weft::dist {

/// A collective that a communication thread runs: when it is done, so are its copies to the device.
class HostWork final : public Work {
 public:
  /// Who has queued the work: may run it on the thread that waits for it.
  class Helper {
   public:
    virtual ~Helper() = default;
    virtual void help(HostWork& work) = 0;
  };

  explicit HostWork(Device device, std::weak_ptr<Helper> helper = {}) : device_(device), helper_(std::move(helper)) {}

  void wait() override {
    refuse_while_capturing("wait for a collective", device_);
    if (const auto helper = helper_.lock()) helper->help(*this);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
    if (error_.empty()) return;
    if (aborted_) throw GroupAborted(error_);
    throw Error(error_);
  }

  bool done() override {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  /// Once; an empty text: it went well. `aborted`: by somebody else's error.
  void finish(std::string error, bool aborted) {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
      aborted_ = aborted;
      error_ = std::move(error);
    }
    changed_.notify_all();
  }

 private:
  const Device device_;
  const std::weak_ptr<Helper> helper_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, aborted_ = false;
  std::string error_;
};

}  // namespace weft::dist
