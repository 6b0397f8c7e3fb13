// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dist/rendezvous/membership.h"

namespace weft::dist::testing {

/// The members of a job of threads: all hear the announcements of members and of the test.
class FakeJob {
 public:
  explicit FakeJob(int size) : states_(static_cast<size_t>(size)) {
    for (int r = 0; r < size; ++r)
      states_[static_cast<size_t>(r)] = {
          .rank = r, .host = "host" + std::to_string(r), .process = 100 + r, .progress = {}};
  }

  void declare(const Failure& failure) {
    std::map<int, std::function<void(const Failure&)>> callbacks;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return;
      failure_ = failure;
      callbacks = callbacks_;
    }
    for (const auto& [number, callback] : callbacks) callback(failure);
  }
  std::vector<MemberState> states() {
    const std::lock_guard lock(mutex_);
    return states_;
  }
  void set_silent(int rank, double seconds) {
    const std::lock_guard lock(mutex_);
    states_[static_cast<size_t>(rank)].seconds_since_heard = seconds;
  }
  void set_disk(int rank, const std::string& what, double seconds) {
    const std::lock_guard lock(mutex_);
    states_[static_cast<size_t>(rank)].disk = what;
    states_[static_cast<size_t>(rank)].disk_seconds = seconds;
  }
  /// Rank 0 does not answer.
  void silence() {
    const std::lock_guard lock(mutex_);
    states_.resize(1);
    states_[0].seconds_since_heard = 7;
    states_[0].silent = true;
  }
  void report(int rank, const Progress& progress) {
    const std::lock_guard lock(mutex_);
    keep(states_[static_cast<size_t>(rank)], progress);
  }
  bool claim(const std::string& topic, std::chrono::milliseconds time) {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(claims_, [&](const auto& claim) { return claim.second <= now; });
    return claims_.emplace(topic, now + time).second;
  }
  int add(std::function<void(const Failure&)> callback) {
    std::optional<Failure> failure;
    int number;
    {
      const std::lock_guard lock(mutex_);
      number = ++last_;
      failure = failure_;
      callbacks_[number] = callback;
    }
    if (failure) callback(*failure);
    return number;
  }
  void remove(int number) {
    const std::lock_guard lock(mutex_);
    callbacks_.erase(number);
  }

 private:
  std::mutex mutex_;
  std::vector<MemberState> states_;
  std::optional<Failure> failure_;
  std::map<int, std::function<void(const Failure&)>> callbacks_;
  std::map<std::string, std::chrono::steady_clock::time_point> claims_;
  int last_ = 0;
};

class FakeMembership final : public Membership {
 public:
  FakeMembership(std::shared_ptr<FakeJob> job, int rank) : job_(std::move(job)), rank_(rank) {}
  int on_failure(std::function<void(const Failure&)> callback) override { return job_->add(std::move(callback)); }
  void remove(int number) override { job_->remove(number); }
  void announce(const std::string& reason) override { job_->declare({rank_, "", reason}); }
  void report(const Progress& progress) override { job_->report(rank_, progress); }
  std::vector<MemberState> states(double) override { return job_->states(); }
  bool claim(const std::string& topic, std::chrono::milliseconds time) override { return job_->claim(topic, time); }
  void leave() override {}

 private:
  const std::shared_ptr<FakeJob> job_;
  const int rank_;
};

}  // namespace weft::dist::testing
