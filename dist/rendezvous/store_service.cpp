// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/store_service.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "dist/rendezvous/store.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

/// The time in a message, within the range of a clock.
std::chrono::milliseconds milliseconds_of(int64_t number) {
  constexpr int64_t kLongest = 30LL * 24 * 3600 * 1000;
  return std::chrono::milliseconds(std::clamp<int64_t>(number, 0, kLongest));
}

std::string answer(int64_t request, bool worked, std::string_view value) {
  return MessageWriter(MessageKind::answer).number(request).number(worked).text(value).frame();
}

}  // namespace

/// A run's values, up to the first that is not set or would make the answer too long.
std::string StoreService::value_for(const Waiting& waiting, const std::string& value) const {
  if (waiting.prefix.empty()) return value;
  std::vector<std::string> values{value};
  size_t bytes = 4 + value.size();
  for (int64_t i = waiting.first + 1;; ++i) {
    const auto next = values_.find(str(waiting.prefix, '/', i));
    if (next == values_.end() || (bytes += 4 + next->second.size()) > Store::kMaxValue) break;
    values.push_back(next->second);
  }
  return packed(values);
}

void StoreService::set(const std::string& key, const std::string& value, std::vector<Outgoing>& out) {
  values_[key] = value;
  const auto [first, last] = waiting_.equal_range(key);
  for (auto entry = first; entry != last; ++entry)
    out.push_back({entry->second.connection, answer(entry->second.request, true, value_for(entry->second, value))});
  waiting_.erase(first, last);
}

void StoreService::wait(const std::string& key, Waiting waiting, std::vector<Outgoing>& out) {
  if (const auto found = values_.find(key); found != values_.end())
    return out.push_back({waiting.connection, answer(waiting.request, true, value_for(waiting, found->second))});
  next_deadline_ = std::min(next_deadline_.value_or(waiting.deadline), waiting.deadline);
  waiting_.insert({key, std::move(waiting)});
}

void StoreService::handle(ConnectionId from, MessageReader& message, TimePoint now, std::vector<Outgoing>& out) {
  const int64_t request = message.number();
  const std::string key = message.text(Store::kMaxKey);
  const auto found = values_.find(key);
  const auto reply = [&](bool worked, std::string_view value) {
    out.push_back({from, answer(request, worked, value)});
  };
  const auto first_number = [&] {
    const int64_t first = message.number();
    WEFT_CHECK(first >= 0 && first <= std::numeric_limits<int32_t>::max(), "store: got the number ", first,
               " of a key");
    return first;
  };
  switch (message.kind()) {
    case MessageKind::set: {
      const std::string value = message.text(Store::kMaxValue);
      message.end();
      set(key, value, out);
      return reply(true, "");
    }
    case MessageKind::get: {
      const TimePoint deadline = now + milliseconds_of(message.number());
      message.end();
      return wait(key, {from, request, deadline, "", 0}, out);
    }
    case MessageKind::find_run: {
      const TimePoint deadline = now + milliseconds_of(message.number());
      const int64_t first = first_number();
      message.end();
      return wait(str(key, '/', first), {from, request, deadline, key, first}, out);
    }
    case MessageKind::set_all: {
      int64_t number = first_number();
      const std::vector<std::string> values = unpacked(message.text(Store::kMaxValue));
      message.end();
      for (const std::string& value : values) set(str(key, '/', number++), value, out);
      return reply(true, "");
    }
    case MessageKind::has:
      message.end();
      return reply(true, found != values_.end() ? "1" : "0");
    case MessageKind::add: {
      const int64_t amount = message.number();
      message.end();
      int64_t value = 0;
      if (found != values_.end()) {
        const std::string& text = found->second;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc{} || end != text.data() + text.size()) return reply(false, "its value is no number");
      }
      if (__builtin_add_overflow(value, amount, &value)) return reply(false, "the sum is too large");
      set(key, std::to_string(value), out);
      return reply(true, std::to_string(value));
    }
    case MessageKind::remove:
      message.end();
      values_.erase(key);
      return reply(true, "");
    default:
      fail("store: got a message of the unknown kind ", static_cast<int>(message.kind()));
  }
}

void StoreService::closed(ConnectionId connection) {
  std::erase_if(waiting_, [&](const auto& entry) { return entry.second.connection == connection; });
}

void StoreService::expire(TimePoint now, std::vector<Outgoing>& out) {
  if (!next_deadline_ || *next_deadline_ > now) return;
  next_deadline_.reset();
  std::erase_if(waiting_, [&](const auto& entry) {
    const TimePoint deadline = entry.second.deadline;
    if (deadline > now) {
      next_deadline_ = std::min(next_deadline_.value_or(deadline), deadline);
      return false;
    }
    out.push_back({entry.second.connection, answer(entry.second.request, false, "no rank has set it")});
    return true;
  });
}

namespace {

constexpr size_t kStatesPerMessage = 128;  // 128 of at most 6 KiB stay below kMaxMessage

std::string failure_frame(const Failure& failure) {
  return MessageWriter(MessageKind::failure)
      .number(failure.rank)
      .text(failure.host)
      .text(failure.reason)
      .number(failure.announced)
      .frame();
}

}  // namespace

std::string describe(const MemberState& state) {
  return str("rank ", state.rank, " (process ", state.process, " on ", state.host, ")");
}

std::string rank_list(const std::vector<int>& ranks) {
  std::string text;
  int ranges = 0;
  for (size_t begin = 0; begin < ranks.size();) {
    if (++ranges > 20) return str(text, " and ", ranks.size() - begin, " more");
    size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += str(begin == 0 ? "" : ", ", ranks[begin], end == begin + 1 ? "" : str(" to ", ranks[end - 1]));
    begin = end;
  }
  return text;
}

std::string silence_in(const std::vector<MemberState>& states, double quiet) {
  std::string text;
  for (const MemberState& s : states)
    if (s.silent || (!s.left && s.seconds_since_heard >= quiet))
      text += str(text.empty() ? "" : "; ", "silent rank ", s.rank, " (",
                  s.process > 0 ? str("process ", s.process, " on ") : "at ", s.host, ", last heard of ",
                  std::lround(s.seconds_since_heard), " s ago: is it stopped?)");
  return text;
}

void keep(MemberState& state, const Progress& progress) {
  if (state.progress.group != progress.group) {
    std::erase_if(state.earlier, [&](const Progress& one) { return one.group == progress.group; });
    if (!state.progress.group.empty()) state.earlier.push_back(std::move(state.progress));
    if (state.earlier.size() == kMaxGroups) state.earlier.erase(state.earlier.begin());
  }
  state.progress = progress;
}

void write_progress(MessageWriter& writer, const MemberState& state) {
  const auto numbers = [&writer](const Progress& one) {
    writer.text(one.group.substr(0, kMaxName)).number(static_cast<int64_t>(one.begun));
    writer.number(static_cast<int64_t>(one.finished));
  };
  numbers(state.progress);
  writer.text(state.progress.name.substr(0, kMaxName)).number(static_cast<int64_t>(state.earlier.size()));
  for (const Progress& one : state.earlier) numbers(one);
}

namespace {

void read_progress(MessageReader& message, MemberState& state) {
  const auto numbers = [&message] {
    Progress one{.group = message.text(kMaxName)};
    one.begun = static_cast<uint64_t>(message.number());
    one.finished = static_cast<uint64_t>(message.number());
    return one;
  };
  state.progress = numbers();
  state.progress.name = message.text(kMaxName);
  const int64_t earlier = message.number();
  WEFT_CHECK(earlier >= 0 && earlier < static_cast<int64_t>(kMaxGroups), "membership: got the progress of ", earlier,
             " groups");
  state.earlier.clear();
  for (int64_t i = 0; i < earlier; ++i) state.earlier.push_back(numbers());
}

}  // namespace

MemberState read_state(MessageReader& message) {
  MemberState state;
  state.rank = static_cast<int>(message.number());
  state.host = message.text(kMaxHost);
  state.process = message.number();
  state.seconds_since_heard = static_cast<double>(message.number()) / 1e3;
  state.left = message.number() != 0;
  read_progress(message, state);
  state.disk = message.text(kMaxName);
  state.disk_seconds = static_cast<double>(message.number()) / 1e3;
  return state;
}

Failure read_failure(MessageReader& message) {
  Failure failure;
  failure.rank = static_cast<int>(message.number());
  failure.host = message.text(kMaxHost);
  failure.reason = message.text(kMaxReason);
  failure.announced = message.number() != 0;
  message.end();
  return failure;
}

MemberService::Member& MemberService::member_of(ConnectionId connection) {
  const auto found = ranks_.find(connection);
  WEFT_CHECK(found != ranks_.end(), "membership: a message from a rank that has not joined");
  return members_.at(found->second);
}

void MemberService::join(ConnectionId from, MessageReader& message, TimePoint now, std::vector<Outgoing>& out) {
  MemberState state;
  const int64_t rank = message.number();
  state.host = message.text(kMaxHost);
  state.process = message.number();
  message.end();
  const auto refuse = [&](const std::string& why) {
    out.push_back({from, MessageWriter(MessageKind::refused).text(why).frame()});
  };
  if (rank < 0 || rank >= size_) return refuse(str("expected ranks 0 to ", size_ - 1, ", got rank ", rank));
  state.rank = static_cast<int>(rank);
  WEFT_CHECK(!ranks_.contains(from), "membership: a connection joins twice");
  if (const auto there = members_.find(state.rank); there != members_.end())
    return refuse(str(describe(state), " joins a second time: ", describe(there->second.state),
                      " has joined before. Every process needs a rank of its own"));
  members_[state.rank] = {from, state, now};
  ranks_[from] = state.rank;
  out.push_back({from, MessageWriter(MessageKind::heartbeat).frame()});  // the rank is accepted
  if (failure_) out.push_back({from, failure_frame(*failure_)});
  if (members_.size() < static_cast<size_t>(size_)) return;
  const MemberState& zero = members_.at(0).state;
  const std::string complete = MessageWriter(MessageKind::complete).text(zero.host).number(zero.process).frame();
  for (const auto& [number, member] : members_)
    if (member.connection != 0) out.push_back({member.connection, complete});
}

void MemberService::handle(ConnectionId from, MessageReader& message, TimePoint now, std::vector<Outgoing>& out) {
  if (message.kind() == MessageKind::join) return join(from, message, now, out);
  Member& member = member_of(from);
  member.heard = now;
  switch (message.kind()) {
    case MessageKind::heartbeat: {
      read_progress(message, member.state);
      member.state.disk = message.text(kMaxName);
      member.state.disk_seconds = static_cast<double>(message.number()) / 1e3;
      message.end();
      // The echo tells the rank that the server lives.
      out.push_back({from, MessageWriter(MessageKind::heartbeat).frame()});
      return;
    }
    case MessageKind::announce: {
      Failure failure{member.state.rank, member.state.host, message.text(kMaxReason), /*announced=*/true};
      message.end();
      return fail_all(std::move(failure), out);
    }
    case MessageKind::states: {
      const int64_t request = message.number();
      const auto quiet = milliseconds_of(message.number());
      message.end();
      return answer_states(from, request, quiet, now, out);
    }
    case MessageKind::claim: {
      const int64_t request = message.number();
      const auto time = milliseconds_of(message.number());
      const std::string topic = message.text(kMaxName);
      message.end();
      std::erase_if(claims_, [&](const auto& entry) { return entry.second <= now; });
      const bool first = claims_.emplace(topic, now + time).second;
      out.push_back({from, MessageWriter(MessageKind::claim).number(request).number(first).text("").frame()});
      return;
    }
    case MessageKind::absent: {
      const int64_t request = message.number();
      message.end();
      std::vector<int> absent;
      for (int rank = 0; rank < size_; ++rank)
        if (!members_.contains(rank)) absent.push_back(rank);
      MessageWriter writer(MessageKind::absent);
      writer.number(request).number(static_cast<int64_t>(absent.size())).text(rank_list(absent));
      out.push_back({from, writer.frame()});
      return;
    }
    case MessageKind::leave:
      message.end();
      member.state.left = true;
      return;
    default:
      fail("membership: got a message of the unknown kind ", static_cast<int>(message.kind()));
  }
}

void MemberService::answer_states(ConnectionId to, int64_t request, std::chrono::milliseconds quiet, TimePoint now,
                                  std::vector<Outgoing>& out) const {
  std::vector<const Member*> asked;
  for (const auto& [rank, member] : members_)
    if (now - member.heard >= quiet) asked.push_back(&member);
  if (quiet.count() > 0) asked.resize(std::min(asked.size(), kStatesPerMessage));
  size_t next = 0;
  do {
    const size_t count = std::min(asked.size() - next, kStatesPerMessage);
    MessageWriter writer(MessageKind::states);
    writer.number(request).number(next + count == asked.size()).number(static_cast<int64_t>(count));
    for (const size_t end = next + count; next < end; ++next) {
      const MemberState& state = asked[next]->state;
      const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - asked[next]->heard).count();
      writer.number(state.rank).text(state.host).number(state.process).number(silent).number(state.left);
      write_progress(writer, state);
      writer.text(state.disk).number(std::llround(state.disk_seconds * 1e3) + (state.disk.empty() ? 0 : silent));
    }
    out.push_back({to, writer.frame()});
  } while (next < asked.size());
}

void MemberService::fail_all(Failure failure, std::vector<Outgoing>& out) {
  if (failure_) return;
  failure_ = std::move(failure);
  const std::string frame = failure_frame(*failure_);
  for (const auto& [rank, member] : members_)
    if (member.connection != 0) out.push_back({member.connection, frame});
}

void MemberService::closed(ConnectionId connection, bool lost, std::vector<Outgoing>& out) {
  const auto found = ranks_.find(connection);
  if (found == ranks_.end()) return;
  Member& member = members_.at(found->second);
  ranks_.erase(found);
  member.connection = 0;
  if (member.state.left) return;
  const std::string what = lost ? " is unreachable" : " has died";
  fail_all({member.state.rank, member.state.host, describe(member.state) + what}, out);
}

void MemberService::say_farewell(std::vector<Outgoing>& out) const {
  for (const auto& [rank, member] : members_)
    if (member.connection != 0) out.push_back({member.connection, MessageWriter(MessageKind::farewell).frame()});
}

bool MemberService::all_gone() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const auto& entry) { return entry.second.connection == 0 || entry.second.state.left; });
}

}  // namespace weft::dist
