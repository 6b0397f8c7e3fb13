// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::dist {

using Milliseconds = std::chrono::milliseconds;

/// Small values that all ranks of a job share while they connect: addresses, the id of a communicator, counters. Not
/// for bulk data. Thread-safe. A value has at most kMaxValue bytes of any content. Every call may fail with: the store
/// is unreachable.
class Store {
 public:
  static constexpr size_t kMaxKey = 256, kMaxValue = 1 << 20;

  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until a rank has set the key; nothing: none did within `timeout`, or end_waits().
  virtual std::optional<std::string> find(const std::string& key, Milliseconds timeout) = 0;
  /// find(). Errors: nothing (the message names the key).
  std::string get(const std::string& key, Milliseconds timeout);
  /// False: the key is not set yet.
  virtual bool has(const std::string& key) = 0;
  /// Adds to a counter that starts at 0; returns the new value.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  virtual void remove(const std::string& key) = 0;

  /// The values of `prefix/0` to `prefix/(count - 1)`, by few requests; shorter where find() of the next found nothing.
  std::vector<std::string> find_all(const std::string& prefix, int count, Milliseconds timeout);
  /// find_all(). Errors: as get() of the first that was not set.
  std::vector<std::string> get_all(const std::string& prefix, int count, Milliseconds timeout);
  /// Sets `prefix/0`, `prefix/1` and so on, with few requests.
  virtual void set_all(const std::string& prefix, const std::vector<std::string>& values);

  /// The job has failed, so nobody will set what is still missing: calls that wait end, and later ones do not wait.
  virtual void end_waits(const std::string& why) = 0;
  /// The job has failed: what is left to say must not hold up its end. From now on a request waits a second, not
  /// longer, for a store that says nothing.
  virtual void hurry() {}
  /// The secret that only the ranks of the job know: other connections between them prove themselves by it.
  virtual std::string secret() const = 0;

 protected:
  [[noreturn]] void fail_unset(const std::string& key, Milliseconds timeout) const;
  /// Waits for `prefix/first`; returns it and some of its successors, without a gap. Empty: as find().
  virtual std::vector<std::string> find_run(const std::string& prefix, int first, Milliseconds timeout);
  /// The reason that end_waits() had.
  virtual std::string why_ended() const = 0;
};

}  // namespace weft::dist
