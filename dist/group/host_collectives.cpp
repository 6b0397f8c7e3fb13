// SPDX-License-Identifier: Apache-2.0
#include "dist/group/host_collectives.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "dist/group/host_math.h"

namespace weft::dist {
namespace {

constexpr size_t kAhead = 8;  // segments that are received before they are needed

// How long a group that ends waits for the others to have read everything.
constexpr std::chrono::seconds kGoodbyeTime{5};

// How much longer than rank 0 the others wait in a monitored barrier: it knows who is missing.
constexpr std::chrono::seconds kVerdictTime{3};

}  // namespace

void Link::wait_on(Message& message, Deadline& deadline) {
  while (true) {
    try {
      return wait(message, deadline);
    } catch (const LinkError& error) {
      if (error.kind != LinkError::Kind::deadline || !next_deadline) throw;
      const Deadline next = next_deadline();
      if (next < std::chrono::steady_clock::now()) throw;
      deadline = next;
    }
  }
}

/// Slots of a collective's messages.
enum HostCollectives::Code : uint8_t {
  kHeader,
  kScatter,
  kGather,
  kTree,
  kBarrier,
  kMessageHeader,
  kMessage,
  kGoodbye,
  kParts,
  kArrival,
  kRelease
};

/// A part of a tensor, in bytes.
struct HostCollectives::Range {
  size_t begin, end;
  size_t bytes() const { return end - begin; }
};

HostCollectives::HostCollectives(std::unique_ptr<Link> link, std::string group, Algorithms algorithms)
    : link_(std::move(link)),
      group_(std::move(group)),
      rank_(link_->rank()),
      size_(link_->size()),
      segment_(link_->segment_bytes()),
      library_(algorithms == Algorithms::library) {}

HostCollectives::~HostCollectives() {
  link_->next_deadline = {};
  if (aborted_ || link_->keeps_messages()) return;
  try {
    say_goodbye();
  } catch (const Error&) {  // best effort: the peers may be gone
  }
}

void HostCollectives::run(const HostCollective& c, const Signature& signature, Link::Deadline deadline) {
  deadline_ = deadline;
  hash_ = signature.hash();
  if (c.kind == CollectiveKind::send) return send_message(c, signature);
  if (c.kind == CollectiveKind::receive) return receive_message(c, signature);
  if (c.kind == CollectiveKind::monitored_barrier) return monitored_barrier(signature);
  if (size_ > 1) begin_comparison(signature);
  if (library_ && size_ > 1 && (c.count > 0 || c.kind == CollectiveKind::barrier)) {
    end_comparison();
    if (link_->run(c, deadline)) return;
  }
  const Range whole{0, c.count * size_of(c.dtype)}, none{0, 0};
  switch (c.kind) {
    case CollectiveKind::all_reduce:
      all_reduce(c);
      break;
    case CollectiveKind::broadcast:
      broadcast(c);
      break;
    case CollectiveKind::reduce_scatter:
      reduce_to(c, c.input, [&](int r) { return input_part(c, r); });
      break;
    case CollectiveKind::reduce:
      reduce_to(c, c.output, [&](int r) { return Range{0, r == c.peer ? whole.bytes() : 0}; });
      break;
    case CollectiveKind::all_gather:
      exchange(
          c, [&](int) { return whole; }, [&](int r) { return output_part(c, r); });
      break;
    case CollectiveKind::gather:
      exchange(
          c, [&](int r) { return r == c.peer ? whole : none; },
          [&](int r) { return rank_ == c.peer ? output_part(c, r) : none; });
      break;
    case CollectiveKind::scatter:
      exchange(
          c, [&](int r) { return rank_ == c.peer ? input_part(c, r) : none; },
          [&](int r) { return r == c.peer ? whole : none; });
      break;
    case CollectiveKind::all_to_all:
      compare_parts(c);
      exchange(
          c, [&](int r) { return input_part(c, r); }, [&](int r) { return output_part(c, r); });
      break;
    default:
      barrier();
  }
  end_comparison();
}

void HostCollectives::abort(const std::string& reason) {
  aborted_ = true;
  link_->abort(reason);
}

std::vector<int> HostCollectives::waits_for() const {
  const int peer = waits_for_;
  return peer < 0 ? std::vector<int>{} : std::vector<int>{peer};
}

Link::MessagePtr HostCollectives::send(int to, Code code, const std::byte* data, size_t bytes) {
  return link_->send(to, {code == kHeader ? 0 : hash_, code}, data, bytes);
}
Link::MessagePtr HostCollectives::receive(int from, Code code, std::byte* data, size_t bytes) {
  return link_->receive(from, {code == kHeader ? 0 : hash_, code}, data, bytes);
}
void HostCollectives::wait(const MessagePtr& message) {
  end_comparison();
  waits_for_ = message->peer;
  link_->wait_on(*message, deadline_);
  waits_for_ = -1;
}
void HostCollectives::wait(const std::vector<MessagePtr>& messages) {
  for (const MessagePtr& message : messages) wait(message);
}

/// The headers travel beside the first data, which a rank that differs never takes: its slots are others.
void HostCollectives::begin_comparison(const Signature& mine) {
  mine_ = mine;
  mine_.library = library_;
  header_from_left_ = receive(left(), kHeader, reinterpret_cast<std::byte*>(&theirs_), sizeof theirs_);
  header_to_right_ = send(right(), kHeader, reinterpret_cast<const std::byte*>(&mine_), sizeof mine_);
}

/// Before anything else is waited for.
void HostCollectives::end_comparison() {
  if (!header_from_left_) return;
  const MessagePtr received = std::move(header_from_left_), sent = std::move(header_to_right_);
  wait(received);
  check(mine_, theirs_);
  wait(sent);
}

void HostCollectives::check(const Signature& mine, Signature theirs) const {
  theirs.name.back() = 0;
  if (!mine.agrees(theirs)) throw LinkError(LinkError::Kind::differs, describe_difference(mine, theirs, group_));
}

HostCollectives::Range HostCollectives::segment(Range range, size_t index) const {
  const size_t begin = std::min(range.end, range.begin + index * segment_);
  return {begin, std::min(range.end, begin + segment_)};
}
size_t HostCollectives::segments(Range range) const { return (range.bytes() + segment_ - 1) / segment_; }

/// The part that rank `r` owns.
HostCollectives::Range HostCollectives::part(const HostCollective& c, int r) const {
  const size_t size = size_of(c.dtype), n = static_cast<size_t>(size_), i = static_cast<size_t>(r);
  return {c.count * i / n * size, c.count * (i + 1) / n * size};
}

/// Rank `r`'s part of the output of an all_gather, gather or all_to_all.
HostCollectives::Range HostCollectives::output_part(const HostCollective& c, int r) const {
  const PartRange elements = part_range(*c.parts, c.count, r);
  return {elements.begin * size_of(c.dtype), elements.end * size_of(c.dtype)};
}
/// Rank `r`'s part of the input of a reduce_scatter, scatter or all_to_all.
HostCollectives::Range HostCollectives::input_part(const HostCollective& c, int r) const {
  const PartRange elements = part_range(c.input_parts->empty() ? *c.parts : *c.input_parts, c.count, r);
  return {elements.begin * size_of(c.dtype), elements.end * size_of(c.dtype)};
}

/// The others' values of my range arrive in landing places, segment after segment from all ranks.
class HostCollectives::Landing {
 public:
  Landing(HostCollectives& group, Range mine) : group_(group), mine_(mine) {
    const size_t places = std::min(kAhead, group_.segments(mine));
    group.landing_.resize(std::max(
        group.landing_.size(), places * static_cast<size_t>(group_.size_) * std::min(group_.segment_, mine.bytes())));
    for (size_t s = 0; s < places; ++s) post(s);
  }

  /// Segment `s` of rank `r`; arrived after take(s).
  std::byte* place(size_t s, int r) const {
    const size_t row = s % kAhead * static_cast<size_t>(group_.size_) + static_cast<size_t>(r);
    return group_.landing_.data() + row * std::min(group_.segment_, mine_.bytes());
  }
  void take() {
    for (const MessagePtr& message : posted_.front()) group_.wait(message);
    posted_.pop_front();
  }
  /// The place of segment `s` may be used again.
  void release(size_t s) {
    if (s + kAhead < group_.segments(mine_)) post(s + kAhead);
  }

 private:
  void post(size_t s) {
    std::vector<MessagePtr>& row = posted_.emplace_back();
    for (int r = 0; r < group_.size_; ++r)
      if (r != group_.rank_) row.push_back(group_.receive(r, kScatter, place(s, r), group_.segment(mine_, s).bytes()));
  }
  HostCollectives& group_;
  const Range mine_;
  std::deque<std::vector<MessagePtr>> posted_;
};

/// Sends the others their ranges of `data`, segment by segment: [rank][segment].
template <class RangeOf>
std::vector<std::vector<Link::MessagePtr>> HostCollectives::scatter(const std::byte* data, RangeOf range_of) {
  std::vector<std::vector<MessagePtr>> sent(static_cast<size_t>(size_));
  for (int k = 1; k < size_; ++k) {
    const Range range = range_of(right(k));
    for (size_t s = 0; s < segments(range); ++s) {
      const Range piece = segment(range, s);
      sent[static_cast<size_t>(right(k))].push_back(send(right(k), kScatter, data + piece.begin, piece.bytes()));
    }
  }
  return sent;
}

/// Adds segment `s`: mine lies at `input`, the sum goes to `output`.
void HostCollectives::add(const HostCollective& c, const Landing& landing, size_t s, std::byte* output,
                          const std::byte* input, size_t bytes) {
  inputs_.clear();
  for (int r = 0; r < size_; ++r) inputs_.push_back(r == rank_ ? input : landing.place(s, r));
  reduce(c.dtype, c.op, output, inputs_, bytes / size_of(c.dtype));
}

void HostCollectives::all_reduce(const HostCollective& c) {
  const Range mine = part(c, rank_);
  Landing landing(*this, mine);
  const auto sent = scatter(c.output, [&](int r) { return part(c, r); });
  std::vector<MessagePtr> messages;
  const size_t most = segments({0, (c.count / static_cast<size_t>(size_) + 1) * size_of(c.dtype)});
  // My values of a segment have arrived before its sum returns, so the sum may use the same place.
  const auto receive_sums = [&](size_t s, bool sent_first) {
    for (int k = 1; k < size_; ++k) {
      const auto& to = sent[static_cast<size_t>(right(k))];
      if (s >= to.size()) continue;
      const Range piece = segment(part(c, right(k)), s);
      if (sent_first) wait(to[s]);
      messages.push_back(receive(right(k), kGather, c.output + piece.begin, piece.bytes()));
    }
  };
  const bool early = link_->may_overlap();
  for (size_t s = 0; early && s < most; ++s) receive_sums(s, false);
  for (size_t s = 0; s < most; ++s) {
    if (!early) receive_sums(s, true);
    if (s >= segments(mine)) continue;
    const Range piece = segment(mine, s);
    landing.take();
    add(c, landing, s, c.output + piece.begin, c.output + piece.begin, piece.bytes());
    landing.release(s);
    for (int k = 1; k < size_; ++k) messages.push_back(send(right(k), kGather, c.output + piece.begin, piece.bytes()));
  }
  wait(messages);
  for (const auto& to : sent) wait(to);
}

/// Range r of the ranks' inputs is reduced on rank r.
template <class RangeOf>
void HostCollectives::reduce_to(const HostCollective& c, const std::byte* input, RangeOf range_of) {
  const Range mine = range_of(rank_);
  Landing landing(*this, mine);
  const auto sent = scatter(input, range_of);
  for (size_t s = 0; s < segments(mine); ++s) {
    const Range piece = segment(mine, s);
    landing.take();
    add(c, landing, s, c.output + (piece.begin - mine.begin), input + piece.begin, piece.bytes());
    landing.release(s);
  }
  for (const auto& messages : sent) wait(messages);
}

/// Every rank sends range_to(r) of its input to rank r and receives range_from(r) of its output from it.
template <class RangeTo, class RangeFrom>
void HostCollectives::exchange(const HostCollective& c, RangeTo range_to, RangeFrom range_from) {
  std::vector<MessagePtr> messages;
  for (int k = 1; k < size_; ++k)
    if (const Range from = range_from(left(k)); from.bytes() > 0)
      messages.push_back(receive(left(k), kGather, c.output + from.begin, from.bytes()));
  for (int k = 1; k < size_; ++k)
    if (const Range to = range_to(right(k)); to.bytes() > 0)
      messages.push_back(send(right(k), kGather, c.input + to.begin, to.bytes()));
  const Range from = range_from(rank_), to = range_to(rank_);
  if (from.bytes() > 0 && c.output + from.begin != c.input + to.begin)
    std::memcpy(c.output + from.begin, c.input + to.begin, from.bytes());
  wait(messages);
}

/// Compares the sizes that each rank sends with those that its partners expect, before memory is touched.
void HostCollectives::compare_parts(const HostCollective& c) {
  if (c.parts->empty()) return;
  std::vector<int64_t> theirs(static_cast<size_t>(size_));
  std::vector<MessagePtr> messages;
  const auto bytes_of = [](const int64_t& word) { return reinterpret_cast<const std::byte*>(&word); };
  for (int k = 1; k < size_; ++k)
    messages.push_back(receive(left(k), kParts, const_cast<std::byte*>(bytes_of(theirs[static_cast<size_t>(left(k))])),
                               sizeof(int64_t)));
  for (int k = 1; k < size_; ++k)
    messages.push_back(
        send(right(k), kParts, bytes_of((*c.input_parts)[static_cast<size_t>(right(k))]), sizeof(int64_t)));
  wait(messages);
  for (int r = 0; r < size_; ++r) {
    const int64_t sent = theirs[static_cast<size_t>(r)], expected = (*c.parts)[static_cast<size_t>(r)];
    if (r != rank_ && sent != expected)
      throw LinkError(LinkError::Kind::differs,
                      str("rank ", r, " sends rank ", rank_, ' ', sent, " elements, which expects ", expected,
                          ": output_rows and input_rows of the two differ"));
  }
}

/// Down a binomial tree: place p (counted from the root) hands on to p + 1, p + 2, p + 4, … below its lowest bit.
void HostCollectives::broadcast(const HostCollective& c) {
  const Range whole{0, c.count * size_of(c.dtype)};
  const int place = (rank_ - c.peer + size_) % size_;
  int low = 1;
  while (low < size_ && (place & low) == 0) low *= 2;
  std::vector<MessagePtr> arriving, messages;
  for (size_t s = 0; place > 0 && s < segments(whole); ++s)
    arriving.push_back(receive(left(low), kTree, c.output + segment(whole, s).begin, segment(whole, s).bytes()));
  for (size_t s = 0; s < segments(whole); ++s) {
    if (place > 0) wait(arriving[s]);
    for (int step = low / 2; step > 0; step /= 2)
      if (place + step < size_)
        messages.push_back(send(right(step), kTree, c.output + segment(whole, s).begin, segment(whole, s).bytes()));
  }
  wait(messages);
}

/// Dissemination: in round k everybody tells the rank 2^k to its right, and all have heard of all after log2 n rounds.
void HostCollectives::barrier() {
  const std::byte mine{};
  std::byte theirs;
  for (int step = 1; step < size_; step *= 2) {
    const MessagePtr sent = send(right(step), kBarrier, &mine, 1);
    wait(receive(left(step), kBarrier, &theirs, 1));
    wait(sent);
  }
}

/// All tell rank 0, which waits for each of them and so knows who is missing at the deadline. The others hear when it
/// has come: from then on it has its own time, and speaks first.
void HostCollectives::monitored_barrier(const Signature& mine) {
  const auto* const header = reinterpret_cast<const std::byte*>(&mine);
  const auto at = [](Code code) { return Link::Slot{0, code}; };
  const auto time = deadline_ - std::chrono::steady_clock::now();
  std::vector<int> missing;
  const auto arrives = [&](const MessagePtr& message) {
    try {
      link_->wait(*message, deadline_);
    } catch (const LinkError& error) {
      if (error.kind != LinkError::Kind::deadline) throw;
      missing.push_back(message->peer);
    }
  };
  const auto check_missing = [&] {
    if (!missing.empty()) throw LinkError(LinkError::Kind::deadline, "deadline", missing);
  };
  std::byte word{};
  if (rank_ > 0) {
    link_->post(0, at(kArrival), {header, header + sizeof mine});
    for (int heard = 0; heard < 2; ++heard) {
      deadline_ = std::chrono::steady_clock::now() + time + kVerdictTime;
      arrives(link_->receive(0, at(kRelease), &word, 1));
      check_missing();
    }
    return;
  }
  std::vector<Signature> arrived(static_cast<size_t>(size_));
  std::vector<MessagePtr> messages;
  for (int r = 1; r < size_; ++r) {
    link_->post(r, at(kRelease), {word});
    auto* const memory = reinterpret_cast<std::byte*>(&arrived[static_cast<size_t>(r)]);
    messages.push_back(link_->receive(r, at(kArrival), memory, sizeof(Signature)));
  }
  for (const MessagePtr& message : messages) arrives(message);
  check_missing();
  for (int r = 1; r < size_; ++r) check(mine, arrived[static_cast<size_t>(r)]);
  for (int r = 1; r < size_; ++r) link_->post(r, at(kRelease), {word});
}

void HostCollectives::send_message(const HostCollective& c, const Signature& signature) {
  const auto* const header = reinterpret_cast<const std::byte*>(&signature);
  link_->post(c.peer, {0, kMessageHeader}, {header, header + sizeof signature});
  const size_t bytes = c.count * size_of(c.dtype);
  if (bytes > 0) link_->post(c.peer, {hash_, kMessage}, {c.output, c.output + bytes});
}

void HostCollectives::receive_message(const HostCollective& c, const Signature& mine) {
  Signature theirs;
  wait(link_->receive(c.peer, {0, kMessageHeader}, reinterpret_cast<std::byte*>(&theirs), sizeof theirs));
  check(mine, theirs);
  if (c.count > 0) wait(receive(c.peer, kMessage, c.output, c.count * size_of(c.dtype)));
}

/// A connection that closes may drop what was not read yet: stay until the others have all they want of me.
void HostCollectives::say_goodbye() {
  deadline_ = std::chrono::steady_clock::now() + kGoodbyeTime;
  hash_ = 0;
  link_->flush(deadline_);
  std::vector<std::byte> words(static_cast<size_t>(size_) + 1);
  std::vector<MessagePtr> messages;
  for (int k = 1; k < size_; ++k) messages.push_back(send(right(k), kGoodbye, words.data(), 1));
  for (int k = 1; k < size_; ++k) messages.push_back(receive(left(k), kGoodbye, words.data() + k, 1));
  wait(messages);
}

}  // namespace weft::dist
