// SPDX-License-Identifier: Apache-2.0
#include "dist/group/group_record.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "dist/group/flight_record.h"

namespace weft::dist {

uint64_t FlightLog::add(std::string what) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() == kEntries) {
    entries_.pop_front();
    ++first_;
  }
  entries_.push_back({std::move(what), State::queued, Clock::now(), {}, {}});
  return first_ + entries_.size() - 1;
}

void FlightLog::change(uint64_t entry, State state) {
  const std::lock_guard lock(mutex_);
  if (entry < first_) return;  // kEntries others came since
  Entry& e = entries_[entry - first_];
  e.state = state;
  (state == State::running ? e.started : e.ended) = Clock::now();
}

std::string FlightLog::text() const {
  constexpr const char* states[] = {"queued", "running", "done", "failed"};
  const auto milliseconds = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Entry& e : entries_) {
    char times[100];
    const int length = std::snprintf(times, sizeof times, "  queued %.1f s ago", milliseconds(now - e.queued) / 1000);
    if (e.started != Clock::time_point{}) {
      const bool runs = e.state == State::running;
      const double took = milliseconds((runs ? now : e.ended) - e.started);
      std::snprintf(times + length, sizeof times - static_cast<size_t>(length), ", %s %.1f ms",
                    runs ? "runs for" : "ran", took);
    }
    char state[16];
    std::snprintf(state, sizeof state, "  %-8s ", states[static_cast<int>(e.state)]);
    text += state + e.what + times + '\n';
  }
  return text;
}

namespace {

constexpr int kNamed = 16;            // missing ranks with all that is known of them
constexpr double kDiskSeconds = 600;  // limit for a rank's work on a file while the others wait

std::vector<int> counted(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

std::string seconds(Milliseconds time) { return str(static_cast<double>(time.count()) / 1000, " s"); }

GroupRecord::GroupRecord(std::string name_, int rank_, int size_, GroupOptions options_,
                         std::shared_ptr<Membership> membership_, std::vector<int> members_)
    : name(std::move(name_)),
      rank(rank_),
      size(size_),
      options(options_),
      membership(std::move(membership_)),
      members(members_.empty() ? counted(size_) : std::move(members_)) {}

void GroupRecord::begin(const CollectivePtr& collective) {
  log.change(collective->entry, FlightLog::State::running);
  Progress progress{.group = name};
  {
    const std::lock_guard lock(mutex_);
    running_ = {collective, Clock::now(), false};
    if (!collective->is_message()) last_begun_ = collective->number;
    progress.begun = last_begun_;
    progress.finished = last_finished_;
  }
  report(std::move(progress), *collective);
}

void GroupRecord::report(Progress progress, const Collective& collective) const {
  if (!membership) return;  // the text costs more than a small collective
  progress.name = dist::describe(collective);
  membership->report(progress);
}

void GroupRecord::finish(const Collective& collective, bool well, std::optional<Clock::duration> took) {
  log.change(collective.entry, well ? FlightLog::State::done : FlightLog::State::failed);
  Progress progress{.group = name};
  {
    const std::lock_guard lock(mutex_);
    const Clock::duration since_begin = running_.collective ? Clock::now() - running_.since : Clock::duration{};
    *nanoseconds += std::chrono::nanoseconds(took.value_or(since_begin)).count();
    running_ = {};
    if (!well) return;
    if (!collective.is_message()) last_finished_ = collective.number;
    progress.begun = last_begun_;
    progress.finished = last_finished_;
  }
  bytes_sent += bytes_to_send(collective, rank, size);
  failed_.notify_all();
  report(std::move(progress), collective);
}

void GroupRecord::give_up() {
  {
    const std::lock_guard lock(mutex_);
    running_ = {};
  }
  failed_.notify_all();
}

/// The first rank of the group that has not failed itself.
bool GroupRecord::prints(const Failure& failure) const {
  return rank == (size > 1 && members.front() == failure.rank ? 1 : 0);
}

bool GroupRecord::fail(const std::string& reason, Cause cause, bool said, bool prints) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return false;
    // Before anybody can act on it: a launcher may end this process while its stack unwinds.
    if (cause == Cause::here && prints && !said) std::fputs(str("weft: ", reason, '\n').c_str(), stderr);
    failure_ = reason.empty() ? "aborted" : reason;
    cause_ = cause;
  }
  failed_.notify_all();
  if ((cause == Cause::here && prints) || !options.records.empty()) print_report();
  return true;
}

void GroupRecord::fail_after_running(const Failure& failure) {
  bool said = false;
  {
    std::unique_lock lock(mutex_);
    if (const CollectivePtr running = running_.collective; running && failure.announced && failure_.empty()) {
      said = true;
      // As in fail(), before anybody can act on it.
      if (prints(failure)) std::fputs(str("weft: ", failure.reason, '\n').c_str(), stderr);
      const Clock::time_point end = std::min(failure.heard + kLastMessages, running_.since + options.timeout);
      failed_.wait_until(lock, end, [&] { return !failure_.empty() || running_.collective != running; });
    }
  }
  fail(failure.reason, Cause::here, said, prints(failure));
}

bool GroupRecord::has_failed() const {
  const std::lock_guard lock(mutex_);
  return !failure_.empty();
}

std::string GroupRecord::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void GroupRecord::explain_in(std::shared_ptr<Store> store, std::string key) {
  store_ = std::move(store);
  key_ = std::move(key);
}

void GroupRecord::publish(const std::string& reason, bool announce) noexcept {
  try {
    if (store_) store_->hurry();
    if (store_ && !store_->has(key_)) store_->set(key_, reason);
  } catch (const std::exception&) {  // the store has gone with its process, and the others know of that
  }
  try {
    if (announce && membership) membership->announce(reason);
  } catch (const std::exception&) {
  }
}

void GroupRecord::wait_for_failure(Milliseconds time) {
  std::unique_lock lock(mutex_);
  failed_.wait_for(lock, time, [&] { return !failure_.empty(); });
}

void GroupRecord::wait_for_explanation(Milliseconds time) {
  const Clock::time_point end = Clock::now() + time;
  wait_for_failure(Milliseconds(50));  // the membership knows how a rank ended, and speaks first
  if (has_failed() || (!store_ && !membership)) return;
  try {
    if (store_) store_->hurry();
    // A rank that publishes ends this wait, and so does a job that has failed.
    if (const auto reason = store_ ? store_->find(key_, time) : std::nullopt) return void(fail(*reason, Cause::abort));
  } catch (const std::exception&) {  // no store any more: what is left is the membership
  }
  wait_for_failure(std::chrono::duration_cast<Milliseconds>(end - Clock::now()));
}

bool GroupRecord::was_aborted() const {
  const std::lock_guard lock(mutex_);
  return cause_ == Cause::abort;
}

void GroupRecord::check_alive(const Collective& collective) const {
  const std::string reason = failure();
  if (reason.empty()) return;
  const std::string text = str(describe(collective), " on rank ", rank, ": ", reason);
  if (was_aborted()) throw GroupAborted(text);
  throw Error(text);
}

std::string GroupRecord::describe(const Collective& collective) const {
  return str(dist::describe(collective), " of group ", name);
}

std::vector<MemberState> GroupRecord::states() const {
  try {
    if (membership) return membership->states();
  } catch (const Error&) {  // rank 0 is not there to be asked: the transport's own view is left
  }
  return {};
}

bool GroupRecord::has_come(const MemberState& state, const Collective& collective) const {
  const auto come = [&](const Progress& one) { return one.group == name && one.begun >= collective.number; };
  return come(state.progress) || std::ranges::any_of(state.earlier, come);
}

std::string GroupRecord::silence() const {
  try {
    if (membership) return silence_in(membership->states(std::numeric_limits<double>::infinity()));
  } catch (const Error&) {
  }
  return {};
}

bool GroupRecord::claims(const std::string& what, const Collective& collective, Milliseconds time) const {
  if (!membership || collective.is_message()) return true;  // a message's two ranks see what the others do not
  try {
    // The first rank tells the parts of a split apart, which have the same name.
    return membership->claim(str(what, ' ', collective.number, " of ", name, " from rank ", members.front()), time);
  } catch (const Error&) {
    return true;
  }
}

std::string GroupRecord::missing(const Collective& collective, const std::vector<int>& waits_for) const {
  std::vector<MemberState> states = this->states();
  if (const std::string silence = silence_in(states); !silence.empty()) return silence;
  if (collective.is_message()) states.clear();  // its number counts for two ranks only
  std::string text;
  int named = 0;
  std::vector<int> more;
  const auto add = [&](const std::string& who, int job_rank) {
    if (++named > kNamed) return more.push_back(job_rank);
    text += (text.empty() ? "" : "; ") + who;
  };
  for (int r = 0; r < size; ++r) {
    const int job_rank = members[static_cast<size_t>(r)];
    for (const MemberState& state : states) {
      if (r == rank || state.rank != job_rank) continue;
      const bool knows_all = collective.kind == CollectiveKind::monitored_barrier && !waits_for.empty();
      const bool here = knows_all ? std::ranges::find(waits_for, r) == waits_for.end() : has_come(state, collective);
      if (here && state.seconds_since_heard < kQuietSeconds) continue;
      std::string who =
          str(here ? "silent rank " : "missing rank ", job_rank, " (process ", state.process, " on ", state.host,
              ", last heard of ", std::lround(state.seconds_since_heard), " s ago",
              state.disk.empty() ? "" : str(", ", state.disk, " for ", std::lround(state.disk_seconds), " s"), ")");
      if (!here && !state.progress.name.empty())
        who += str(", last seen in ", state.progress.name, " of group ", state.progress.group);
      add(who, job_rank);
    }
  }
  if (text.empty())
    for (const int r : waits_for) {
      const int job_rank = members[static_cast<size_t>(r)];
      add(str("missing rank ", job_rank), job_rank);
    }
  if (!more.empty()) text += str("; and ", more.size(), " more: ", rank_list(more));
  if (!text.empty()) return text;
  return states.empty() && waits_for.empty() ? "who is missing cannot be told" : "all ranks have come to it";
}

std::string GroupRecord::past_deadline(const Collective& collective, const std::vector<int>& waits_for) const {
  return str(describe(collective), " passed its deadline of ", seconds(timeout_of(collective)), " on rank ", rank, ": ",
             missing(collective, waits_for));
}

CollectivePtr GroupRecord::take_stalled() {
  CollectivePtr stalled;
  {
    const std::lock_guard lock(mutex_);
    if (!running_.collective || running_.reported || Clock::now() - running_.since < options.stall_report)
      return nullptr;
    running_.reported = true;
    stalled = running_.collective;
  }
  return claims("stall", *stalled, options.stall_report) ? stalled : nullptr;
}

CollectivePtr GroupRecord::overdue() const {
  const std::lock_guard lock(mutex_);
  if (!running_.collective || Clock::now() - running_.since < timeout_of(*running_.collective)) return nullptr;
  return running_.collective;
}

Clock::time_point GroupRecord::extended_deadline() {
  if (const CollectivePtr late = overdue(); late && !claims("deadline", *late, kLook)) {
    const std::lock_guard lock(mutex_);
    running_.since = Clock::now() + kLook - timeout_of(*late);
    return Clock::now() + kLook;
  }
  const std::vector<MemberState> all = states();
  const std::lock_guard lock(mutex_);
  if (!running_.collective) return Clock::time_point::max();  // it has just been done
  const bool works = std::ranges::any_of(all, [&](const MemberState& state) {
    return !state.left && !state.silent && state.seconds_since_heard < kQuietSeconds && !state.disk.empty() &&
           state.disk_seconds < kDiskSeconds &&
           (running_.collective->is_message() || !has_come(state, *running_.collective)) &&
           std::ranges::find(members, state.rank) != members.end();
  });
  if (works) running_.since = Clock::now();
  return running_.since + timeout_of(*running_.collective);
}

void GroupRecord::print_report() const {
  if (options.records.empty()) return void(std::fputs(report().c_str(), stderr));
  try {
    write_flight_record(options.records,
                        {.group = name, .members = members, .rank = rank, .failure = failure(), .log = log.text()});
  } catch (const std::exception& error) {
    std::fputs(str("weft: ", error.what(), '\n', report()).c_str(), stderr);
  }
}

std::string GroupRecord::report() const {
  return str("weft: the last collectives of rank ", rank, " in group ", name, ":\n", log.text());
}

}  // namespace weft::dist
