// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/lower/liveness.h"

#include <algorithm>
#include <bit>

#include "emulator/ptx/lower/frames.h"

namespace emulator::ptx {

bool never_falls_through(const Statement& s) {
  if (s.guard >= 0) return false;
  return s.op != kCallFunction && ends_block(s);
}

bool ends_block(const Statement& s) {
  return s.op == "bra" || s.op == "brx" || s.op == "ret" || s.op == "exit" || s.op == "trap" || s.op == kCallFunction ||
         s.op == kReturnToCaller || s.op == kEndOfCode;
}

bool Liveness::live_at(int reg, Point point) const {
  const Segment* const after =
      std::upper_bound(begin(reg), end(reg), point, [](Point p, const Segment& s) { return p < s.begin; });
  return after != begin(reg) && point < after[-1].end;
}

namespace {

/// Sets of registers that are alive across blocks, which are few of all: one row of bits a block.
class Rows {
 public:
  Rows(size_t rows, size_t bits) : words_((bits + 63) / 64), data_(rows * words_) {}
  uint64_t* row(size_t i) { return data_.data() + i * words_; }
  size_t words() const { return words_; }
  void set(size_t i, size_t bit) { row(i)[bit / 64] |= uint64_t{1} << bit % 64; }
  bool has(size_t i, size_t bit) { return row(i)[bit / 64] >> bit % 64 & 1; }

 private:
  size_t words_;
  std::vector<uint64_t> data_;
};

struct Block {
  size_t begin, end;
  std::vector<uint32_t> next, previous;
};

class Analysis {
 public:
  Analysis(const Function& f, const Accesses& accesses)
      : f_(f), accesses_(accesses), index_(f.registers.size(), -1), seen_(f.registers.size(), 0) {}

  struct Found {
    int reg;
    Segment segment;
  };

  /// Segments block by block from the last one on, descending for each register.
  std::vector<Found> run() {
    find_blocks();
    find_crossing();
    solve();
    std::vector<Found> found;
    found.reserve(f_.registers.size());
    open_.assign(f_.registers.size(), 0);
    earliest_.assign(f_.registers.size(), 0);
    last_.assign(f_.registers.size(), SIZE_MAX);
    for (size_t b = blocks_.size(); b-- > 0;) walk(b, found);
    return found;
  }

 private:
  void find_blocks() {
    const size_t size = f_.code.size();
    std::vector<uint8_t> leads(size + 1, 0);
    leads[0] = 1;
    for (size_t i = 0; i < size; ++i) {
      const Statement& s = f_.code[i];
      for_each_target(f_, s, [&](int target) { leads[static_cast<size_t>(target)] = 1; });
      if (ends_block(s)) leads[i + 1] = 1;
    }
    std::vector<uint32_t> block_of(size + 1, UINT32_MAX);
    for (size_t i = 0; i < size; ++i) {
      if (leads[i]) blocks_.push_back({i, i, {}, {}});
      blocks_.back().end = i + 1;
      block_of[i] = static_cast<uint32_t>(blocks_.size() - 1);
    }
    for (uint32_t b = 0; b < blocks_.size(); ++b) {
      const Statement& last = f_.code[blocks_[b].end - 1];
      const auto link = [&](size_t statement) {
        if (statement >= size) return;
        blocks_[b].next.push_back(block_of[statement]);
        blocks_[block_of[statement]].previous.push_back(b);
      };
      for_each_target(f_, last, [&](int target) { link(static_cast<size_t>(target)); });
      if (!never_falls_through(last)) link(blocks_[b].end);
    }
  }

  /// Calls f(access) for the reads of a statement, then f for its writes. A guarded write kills nothing.
  bool kills(size_t i, const Access& a) const { return a.written && !a.read && f_.code[i].guard < 0; }

  /// Numbers the registers that a block reads, or writes under a guard, before it has written them.
  void find_crossing() {
    for (const Block& block : blocks_) {
      ++stamp_;
      for (size_t i = block.begin; i < block.end; ++i) {
        for (const Access* a = accesses_.begin(i); a != accesses_.end(i); ++a)
          if (!kills(i, *a) && seen_[static_cast<size_t>(a->reg)] != stamp_ &&
              index_[static_cast<size_t>(a->reg)] < 0) {
            index_[static_cast<size_t>(a->reg)] = static_cast<int>(crossing_.size());
            crossing_.push_back(a->reg);
          }
        for (const Access* a = accesses_.begin(i); a != accesses_.end(i); ++a)
          if (kills(i, *a)) seen_[static_cast<size_t>(a->reg)] = stamp_;
      }
    }
  }

  void solve() {
    const size_t count = blocks_.size();
    Rows uses(count, crossing_.size()), kills_of(count, crossing_.size()), writes(count, crossing_.size());
    for (size_t b = 0; b < count; ++b)
      for (size_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
        for (const Access* a = accesses_.begin(i); a != accesses_.end(i); ++a) {
          const int n = index_[static_cast<size_t>(a->reg)];
          if (n >= 0 && a->read && !kills_of.has(b, static_cast<size_t>(n))) uses.set(b, static_cast<size_t>(n));
        }
        for (const Access* a = accesses_.begin(i); a != accesses_.end(i); ++a) {
          const int n = index_[static_cast<size_t>(a->reg)];
          if (n < 0 || !a->written) continue;
          writes.set(b, static_cast<size_t>(n));
          if (kills(i, *a)) kills_of.set(b, static_cast<size_t>(n));
        }
      }

    live_in_ = Rows(count, crossing_.size());
    live_out_ = Rows(count, crossing_.size());
    defined_in_ = Rows(count, crossing_.size());
    Rows defined_out(count, crossing_.size());
    const size_t words = live_in_.words();
    // Backwards: what is read later. Forwards: what may have been written before.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = count; b-- > 0;) {
        uint64_t *const in = live_in_.row(b), *const out = live_out_.row(b);
        for (const uint32_t n : blocks_[b].next)
          for (size_t w = 0; w < words; ++w) out[w] |= live_in_.row(n)[w];
        for (size_t w = 0; w < words; ++w) {
          const uint64_t now = uses.row(b)[w] | (out[w] & ~kills_of.row(b)[w]);
          changed |= now != in[w];
          in[w] = now;
        }
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 0; b < count; ++b) {
        uint64_t *const in = defined_in_.row(b), *const out = defined_out.row(b);
        for (const uint32_t p : blocks_[b].previous)
          for (size_t w = 0; w < words; ++w) in[w] |= defined_out.row(p)[w];
        for (size_t w = 0; w < words; ++w) {
          const uint64_t now = writes.row(b)[w] | in[w];
          changed |= now != out[w];
          out[w] = now;
        }
      }
    }
    for (size_t b = 0; b < count; ++b)
      for (size_t w = 0; w < words; ++w) live_out_.row(b)[w] &= defined_out.row(b)[w];
  }

  void add(int reg, Point begin, Point end, std::vector<Found>& found) {
    size_t& last = last_[static_cast<size_t>(reg)];
    if (last != SIZE_MAX && found[last].segment.begin <= end) {
      found[last].segment.begin = std::min(found[last].segment.begin, begin);
      return;
    }
    last = found.size();
    found.push_back({reg, {begin, end}});
  }

  template <class F>
  void for_each_bit(const uint64_t* row, F f) const {
    for (size_t w = 0; w < live_in_.words(); ++w)
      for (uint64_t bits = row[w]; bits != 0; bits &= bits - 1)
        f(static_cast<size_t>(w * 64) + static_cast<size_t>(std::countr_zero(bits)));
  }

  /// One block from its end to its begin. open_: where the segment ends that a register is in; 0: it is not alive.
  void walk(size_t b, std::vector<Found>& found) {
    const Block& block = blocks_[b];
    const auto first = static_cast<Point>(2 * block.begin), end = static_cast<Point>(2 * block.end);
    for_each_bit(live_out_.row(b), [&](size_t n) {
      open_[static_cast<size_t>(crossing_[n])] = end;
      earliest_[static_cast<size_t>(crossing_[n])] = end - 1;
    });
    touched_.clear();
    for (size_t i = block.end; i-- > block.begin;) {
      const auto read = static_cast<Point>(2 * i), write = read + 1;
      for (const Access* a = accesses_.begin(i); a != accesses_.end(i); ++a) {
        if (!a->written) continue;
        Point& open = open_[static_cast<size_t>(a->reg)];
        if (open == 0) open = write + 1;  // never read, but still written
        earliest_[static_cast<size_t>(a->reg)] = write;
        touched_.push_back(a->reg);
        if (!kills(i, *a)) continue;
        add(a->reg, write, open, found);
        open = 0;
      }
      for (const Access* a = accesses_.begin(i); a != accesses_.end(i); ++a) {
        if (!a->read) continue;
        Point& open = open_[static_cast<size_t>(a->reg)];
        const Point until = a->held ? write + 1 : write;
        // If the statement kills and reads a register, the killed value's segment has begun at `write` already.
        if (open == 0)
          open = until;
        else
          open = std::max(open, until);
        earliest_[static_cast<size_t>(a->reg)] = read;
        touched_.push_back(a->reg);
      }
    }
    const auto close = [&](int reg) {
      Point& open = open_[static_cast<size_t>(reg)];
      if (open == 0) return;
      const int n = index_[static_cast<size_t>(reg)];
      const bool comes_in =
          n >= 0 && defined_in_.has(b, static_cast<size_t>(n)) && live_in_.has(b, static_cast<size_t>(n));
      add(reg, comes_in ? first : earliest_[static_cast<size_t>(reg)], open, found);
      open = 0;
    };
    for_each_bit(live_out_.row(b), [&](size_t n) { close(crossing_[n]); });
    for (const int reg : touched_) close(reg);
  }

  const Function& f_;
  const Accesses& accesses_;
  std::vector<Block> blocks_;
  std::vector<int> crossing_;  ///< the registers that may be alive at a block's begin
  std::vector<int> index_;     ///< a register's index in crossing_, or -1
  std::vector<uint32_t> seen_;
  uint32_t stamp_ = 0;
  Rows live_in_{0, 0}, live_out_{0, 0}, defined_in_{0, 0};
  std::vector<Point> open_, earliest_;
  std::vector<size_t> last_;
  std::vector<int> touched_;
};

}  // namespace

Liveness::Liveness(const Function& function, const Accesses& accesses) {
  first_.assign(function.registers.size() + 1, 0);
  if (function.code.empty()) return;
  const auto found = Analysis(function, accesses).run();
  for (const auto& f : found) ++first_[static_cast<size_t>(f.reg) + 1];
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  segments_.resize(found.size());
  std::vector<size_t> at(first_.begin(), first_.end() - 1);
  for (size_t i = found.size(); i-- > 0;) segments_[at[static_cast<size_t>(found[i].reg)]++] = found[i].segment;
}

}  // namespace emulator::ptx
