// SPDX-License-Identifier: Apache-2.0
// Sends and receives. All of a group advance together, so none of them waits for another; and a send ends only when it
// has been received, so that a program that relies on NCCL's buffers always fails here, not only sometimes. With a
// seed, some sends that fit into the buffers end before.
#include <algorithm>
#include <cstring>
#include <deque>

#include "emulator/machine/fault.h"
#include "emulator/machine/fresh.h"
#include "emulator/machine/options.h"
#include "emulator/machine/timeline.h"
#include "emulator/nccl/communicator.h"

namespace emulator::nccl {
namespace {

/// Predicted seconds of a group's transfers: those of a direction share the rank's link inside its node, or to others.
class Predicted {
 public:
  Predicted(Communicator& c, Segment& s, const std::vector<Transfer>& transfers) {
    if (!timeline::on() || !timeline::cluster()) return;
    for (const Transfer& t : transfers) {
      if (t.peer == c.rank()) continue;
      if (Communicator::node_of(s, t.peer) != Communicator::node_of(s, c.rank())) outside_.insert(t.peer);
      bytes_[t.sends][outside_.contains(t.peer)] += static_cast<double>(t.bytes());
    }
  }
  double of(const Transfer& t) const {
    if (!timeline::on() || !timeline::cluster()) return 0;
    const bool outside = outside_.contains(t.peer);
    const double bytes = bytes_[t.sends][outside];
    return collective_time::transfers(*timeline::cluster(), outside ? 0 : bytes, outside ? bytes : 0).seconds;
  }

 private:
  double bytes_[2][2] = {};  ///< indexed by direction (1 sends) and link (1 leaves the node)
  std::set<int> outside_;    ///< peers in other nodes
};

/// The transfers of a direction with a peer, which are serialised.
class Line {
 public:
  /// `takes`: predicted seconds of its group's transfers in this direction over this link.
  Line(Communicator& c, Segment& s, bool sends, int peer, uint64_t run, bool captured, double takes)
      : c_(c),
        s_(s),
        sends_(sends),
        captured_(captured),
        from_(sends ? c.rank() : peer),
        to_(sends ? peer : c.rank()),
        run_(run),
        takes_(takes),
        channel_(s.channel(captured, from_, to_)),
        mine_(sends ? channel_.sender : channel_.receiver),
        theirs_(sends ? channel_.receiver : channel_.sender) {}

  bool is(bool sends, int peer) const { return sends == sends_ && peer == (sends ? to_ : from_); }
  void add(const Transfer& transfer) { waiting_.push_back(transfer); }
  bool done() const { return waiting_.empty(); }
  int peer() const { return sends_ ? to_ : from_; }
  std::string text() const { return waiting_.front().text(); }
  /// The predicted clock when both sides have come to the last transfer, and when it ends.
  double begins() const { return begins_; }
  double ends() const { return ends_; }

  /// Advances as far as possible now; returns whether anything was done.
  bool advance();

 private:
  uint64_t word(const Transfer& t) const {
    return static_cast<uint64_t>(t.type) | (t.number & 0xffffff) << 8 | (run_ & 0xffffffff) << 32;
  }
  void announce();
  /// A send that ends without its receive, as NCCL's buffers allow.
  bool ends_early() const;
  void compare() const;
  bool move();

  Communicator& c_;
  Segment& s_;
  const bool sends_, captured_;
  const int from_, to_;
  const uint64_t run_;
  const double takes_;
  double begins_ = 0, ends_ = 0;
  Channel& channel_;
  Channel::Side& mine_;
  Channel::Side& theirs_;
  std::deque<Transfer> waiting_;
  bool announced_ = false, agreed_ = false;
  uint64_t turn_ = 0, first_chunk_ = 0, chunks_ = 0;
};

void Line::announce() {
  const Transfer& t = waiting_.front();
  turn_ = mine_.announced.load() + 1;
  mine_.word[turn_ % 2].store(word(t));
  mine_.count[turn_ % 2].store(t.count);
  mine_.arrived[turn_ % 2].store(timeline::now());
  mine_.takes[turn_ % 2].store(takes_);
  begins_ = timeline::now();
  ends_ = begins_ + takes_;
  mine_.announced.store(turn_);
  // Each side advances its own counter; both are the same between messages.
  first_chunk_ = sends_ ? channel_.written.load() : channel_.read.load();
  chunks_ = (t.bytes() + s_.message_chunk() - 1) / s_.message_chunk();
  announced_ = true;
  agreed_ = false;
}

void Line::compare() const {
  const Transfer& t = waiting_.front();
  const uint64_t their_word = theirs_.word[turn_ % 2].load(), count = theirs_.count[turn_ % 2].load();
  if (their_word == word(t) && count == t.count) return;
  Transfer other = t;
  other.sends = !t.sends;
  other.peer = c_.rank();
  other.type = static_cast<ncclDataType_t>(their_word & 0xff);
  other.count = count;
  const char* const order = their_word >> 8 == word(t) >> 8 ? "" : " (their graphs run in another order)";
  c_.fail(ncclInvalidUsage, cat("rank ", c_.rank(), " calls ", t.text(), ", rank ", peer(), ' ', other.text(), order));
  throw Stopped{};
}

bool Line::move() {
  const Transfer& t = waiting_.front();
  const size_t size = s_.message_chunk();
  const auto piece = [&](uint64_t chunk) {
    const size_t offset = (chunk - first_chunk_) * size;
    return std::pair(t.buffer + offset, std::min(size, t.bytes() - offset));
  };
  bool moved = false;
  if (sends_) {
    uint64_t written = channel_.written.load();
    while (written < first_chunk_ + chunks_ && written < channel_.read.load() + 2) {
      const auto [data, bytes] = piece(written);
      std::memcpy(s_.message(captured_, from_, to_, written), data, bytes);
      channel_.written.store(++written);
      s_.slot(to_).bell.ring();
      moved = true;
    }
  } else {
    uint64_t read = channel_.read.load();
    while (read < first_chunk_ + chunks_ && read < channel_.written.load()) {
      const auto [data, bytes] = piece(read);
      std::memcpy(data, s_.message(captured_, from_, to_, read), bytes);
      mark_written(data, bytes);
      channel_.read.store(++read);
      s_.slot(from_).bell.ring();
      moved = true;
    }
  }
  return moved;
}

bool Line::ends_early() const {
  if (!sends_ || captured_ || options().seed == 0 || chunks_ > 2) return false;
  uint64_t z = (options().seed + turn_ * 64 + static_cast<uint64_t>(from_)) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return (z >> 40) % 2 == 0;
}

bool Line::advance() {
  if (done()) return false;
  bool advanced = false;
  if (!announced_) {
    // Two messages can be announced: the one before the last must have been compared.
    if (sends_ && theirs_.announced.load() < mine_.announced.load()) return false;
    announce();
    s_.slot(peer()).bell.ring();
    advanced = true;
  }
  const bool early = ends_early();
  if (!early && theirs_.announced.load() < turn_) return advanced;
  if (!early && !agreed_) {
    compare();
    agreed_ = true;
    begins_ = std::max(begins_, theirs_.arrived[turn_ % 2].load());
    ends_ = begins_ + std::max(takes_, theirs_.takes[turn_ % 2].load());
  }
  advanced = move() || advanced;
  if ((early ? channel_.written : channel_.read).load() != first_chunk_ + chunks_) return advanced;
  waiting_.pop_front();
  announced_ = false;
  return true;
}

}  // namespace

void run_transfers(Communicator& c, Segment& s, const std::vector<Transfer>& transfers, uint64_t run, bool captured) {
  const Predicted predicted(c, s, transfers);
  std::deque<Line> lines;
  std::deque<Transfer> own[2];  // a rank's with itself: ncclGroupEnd has seen that they fit
  for (const Transfer& t : transfers) {
    if (t.peer == c.rank()) {
      own[t.sends].push_back(t);
      continue;
    }
    const auto line = std::find_if(lines.begin(), lines.end(), [&t](const Line& l) { return l.is(t.sends, t.peer); });
    Line& its = line != lines.end() ? *line : lines.emplace_back(c, s, t.sends, t.peer, run, captured, predicted.of(t));
    its.add(t);
  }
  for (size_t i = 0; i < own[0].size(); ++i) {
    std::memmove(own[0][i].buffer, own[1][i].buffer, own[0][i].bytes());
    mark_written(own[0][i].buffer, own[0][i].bytes());
  }
  const auto first = [&lines] {
    return std::find_if(lines.begin(), lines.end(), [](const Line& l) { return !l.done(); });
  };
  const auto advanced = [&lines, &first] {
    bool any = false;
    for (Line& line : lines) any = line.advance() || any;
    return any || first() == lines.end();  // The deadlock check may have seen the last one end.
  };
  while (first() != lines.end())
    c.wait(
        s, advanced, [&] { return first()->peer(); }, [&] { return first()->text(); }, /*in_order=*/!captured);
  if (!timeline::on() || lines.empty()) return;
  const std::string what = lines.size() == 1 ? transfers.front().text() : cat("a group of ", transfers.size(), " sends and receives");
  timeline::communicate(what, std::ranges::min_element(lines, {}, &Line::begins)->begins(),
                        std::ranges::max_element(lines, {}, &Line::ends)->ends(), "send Simple");
}

}  // namespace emulator::nccl
