// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace weft::dist {

using Milliseconds = std::chrono::milliseconds;

/// Small texts that all ranks of a job share while they find each other: addresses, the id of a communicator, what a
/// rank counts. Bulk data never goes here. Thread-safe. Values may hold any bytes, at most kMaxValue of them.
/// Every call may fail with: the store cannot be reached any more.
class Store {
 public:
  static constexpr size_t kMaxKey = 256, kMaxValue = 1 << 20;

  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until somebody has set the key. Errors: nobody did within `timeout` (the text names the key).
  virtual std::string get(const std::string& key, Milliseconds timeout) = 0;
  /// False: nobody has set it yet.
  virtual bool has(const std::string& key) = 0;
  /// Adds to a counter that starts at 0; returns the new value.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  virtual void remove(const std::string& key) = 0;
};

}  // namespace weft::dist
