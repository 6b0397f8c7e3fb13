// SPDX-License-Identifier: Apache-2.0
#pragma once
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
  void set(const std::string& key, const std::string& value) override {
    {
      const std::lock_guard lock(mutex_);
      values_[key] = value;
    }
    changed_.notify_all();
  }
  std::string get(const std::string& key, Milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    WEFT_CHECK(changed_.wait_for(lock, timeout, [&] { return values_.contains(key); }), "store: nobody set '", key,
               "'");
    return values_[key];
  }
  bool has(const std::string& key) override {
    const std::lock_guard lock(mutex_);
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
  std::string secret() const override { return "the secret of one process"; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, int64_t> counters_;
};

}  // namespace weft::dist::testing
