// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/store_service.h"

#include <algorithm>
#include <charconv>

#include "dist/rendezvous/store.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

constexpr int64_t kLongestWait = 30LL * 24 * 3600 * 1000;  // ms

std::string answer(int64_t request, bool worked, std::string_view value) {
  return MessageWriter(MessageKind::answer).number(request).number(worked).text(value).frame();
}

}  // namespace

void StoreService::set(const std::string& key, const std::string& value, std::vector<Outgoing>& out) {
  values_[key] = value;
  const auto [first, last] = waiting_.equal_range(key);
  for (auto entry = first; entry != last; ++entry)
    out.push_back({entry->second.connection, answer(entry->second.request, true, value)});
  waiting_.erase(first, last);
}

void StoreService::handle(ConnectionId from, MessageReader& message, TimePoint now, std::vector<Outgoing>& out) {
  const int64_t request = message.number();
  const std::string key = message.text(Store::kMaxKey);
  const auto found = values_.find(key);
  const auto reply = [&](bool worked, std::string_view value) {
    out.push_back({from, answer(request, worked, value)});
  };
  switch (message.kind()) {
    case MessageKind::set: {
      const std::string value = message.text(Store::kMaxValue);
      message.end();
      set(key, value, out);
      return reply(true, "");
    }
    case MessageKind::get: {
      const int64_t wait = std::clamp<int64_t>(message.number(), 0, kLongestWait);
      message.end();
      if (found != values_.end()) return reply(true, found->second);
      waiting_.insert({key, {from, request, now + std::chrono::milliseconds(wait)}});
      return;
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
  std::erase_if(waiting_, [&](const auto& entry) {
    if (entry.second.deadline > now) return false;
    out.push_back({entry.second.connection, answer(entry.second.request, false, "no rank has set it")});
    return true;
  });
}

std::optional<TimePoint> StoreService::next_deadline() const {
  std::optional<TimePoint> next;
  for (const auto& [key, entry] : waiting_) next = std::min(next.value_or(entry.deadline), entry.deadline);
  return next;
}

}  // namespace weft::dist
