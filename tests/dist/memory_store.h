// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "dist/rendezvous/store.h"
#include "kernels/error.h"

namespace weft::dist::testing {

/// A store for ranks that are threads of one process.
class MemoryStore final : public Store {
 public:
  std::atomic<int> asked{0};  ///< calls of has()

  void set(const std::string& key, const std::string& value) override {
    {
      const std::lock_guard lock(mutex_);
      values_[key] = value;
    }
    changed_.notify_all();
  }
  std::optional<std::string> find(const std::string& key, Milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return values_.contains(key) || !why_ended_.empty(); });
    return values_.contains(key) ? std::optional(values_[key]) : std::nullopt;
  }
  bool has(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    ++asked;
    return values_.contains(key);
  }
  int64_t add(const std::string& key, int64_t amount) override {
    const std::lock_guard lock(mutex_);
    return counters_[key] += amount;
  }
  void remove(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    values_.erase(key);
    counters_.erase(key);
  }
  void end_waits(const std::string& why) override {
    {
      const std::lock_guard lock(mutex_);
      why_ended_ = why;
    }
    changed_.notify_all();
  }
  std::string secret() const override { return "the secret of one process"; }

 protected:
  std::string why_ended() const override {
    const std::lock_guard lock(mutex_);
    return why_ended_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, int64_t> counters_;
  std::string why_ended_;
};

}  // namespace weft::dist::testing
