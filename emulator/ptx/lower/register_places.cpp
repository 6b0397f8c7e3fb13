// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/lower/register_places.h"

#include <algorithm>
#include <numeric>

namespace emulator::ptx {

uint32_t place_bytes(Type type) {
  const int bytes = bytes_of(type);
  return bytes == 0 ? 0 : static_cast<uint32_t>(bytes <= 4 ? 4 : bytes) * kLanes;
}

bool is_copy(const Function& f, const Statement& s) {
  if (s.op != "mov" || s.guard >= 0 || s.operands.size() != 2) return false;
  const Operand &to = s.operands[0], &from = s.operands[1];
  const auto plain = [](const Operand& o) { return o.kind == Operand::Kind::reg && !o.negated && o.name.empty(); };
  if (!plain(to) || !plain(from)) return false;
  const Type a = f.registers[static_cast<size_t>(to.reg)].type, b = f.registers[static_cast<size_t>(from.reg)].type;
  return bytes_of(a) == bytes_of(b) && bytes_of(s.type()) == bytes_of(a) && (a == Type::pred) == (b == Type::pred);
}

namespace {

bool inside(const std::vector<Segment>& segments, Point point) {
  const auto after =
      std::upper_bound(segments.begin(), segments.end(), point, [](Point p, const Segment& s) { return p < s.begin; });
  return after != segments.begin() && point < after[-1].end;
}

bool overlap(const std::vector<Segment>& a, const std::vector<Segment>& b) {
  for (const Segment& s : a) {
    const auto next =
        std::lower_bound(b.begin(), b.end(), s.begin, [](const Segment& t, Point p) { return t.end <= p; });
    if (next != b.end() && next->begin < s.end) return true;
  }
  return false;
}

void unite(std::vector<Segment>& into, const std::vector<Segment>& more) {
  std::vector<Segment> all(into.size() + more.size());
  std::merge(into.begin(), into.end(), more.begin(), more.end(), all.begin(),
             [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
  into.clear();
  for (const Segment& s : all) {
    if (!into.empty() && s.begin <= into.back().end)
      into.back().end = std::max(into.back().end, s.end);
    else
      into.push_back(s);
  }
}

/// Registers that share a slot.
struct Class {
  std::vector<int> members;
  std::vector<std::pair<Point, int>> writes;  ///< when, and which member
  std::vector<Segment> segments;              ///< when any of them is alive
  bool exclusive = false;
};

class Coalescer {
 public:
  Coalescer(const Function& f, const Accesses& accesses, const Liveness& liveness,
            const std::vector<const Opcode*>& opcodes)
      : f_(f), liveness_(liveness), classes_(f.registers.size()), class_of_(f.registers.size()) {
    std::iota(class_of_.begin(), class_of_.end(), 0);
    for (size_t r = 0; r < classes_.size(); ++r) {
      classes_[r].members.push_back(static_cast<int>(r));
      classes_[r].segments.assign(liveness.begin(static_cast<int>(r)), liveness.end(static_cast<int>(r)));
    }
    for (size_t i = 0; i < f.code.size(); ++i)
      for (const Access* a = accesses.begin(i); a != accesses.end(i); ++a) {
        if (!a->written) continue;
        Class& c = classes_[static_cast<size_t>(a->reg)];
        c.writes.emplace_back(static_cast<Point>(2 * i + 1), a->reg);
        c.exclusive |= opcodes[i] != nullptr && opcodes[i]->roles == Roles::first_updated;
      }
  }

  /// Copies by importance: accumulators', which must not move, then inner loops'.
  void run(RegisterPlaces& out) {
    struct Copy {
      size_t statement;
      int importance;
    };
    const std::vector<int> depth = loop_depths();
    std::vector<Copy> copies;
    for (size_t i = 0; i < f_.code.size(); ++i) {
      const Statement& s = f_.code[i];
      if (!is_copy(f_, s)) continue;
      const bool accumulates = classes_[static_cast<size_t>(s.operands[0].reg)].exclusive ||
                               classes_[static_cast<size_t>(s.operands[1].reg)].exclusive;
      copies.push_back({i, depth[i] + (accumulates ? 1 << 20 : 0)});
    }
    std::stable_sort(copies.begin(), copies.end(),
                     [](const Copy& a, const Copy& b) { return a.importance > b.importance; });
    for (const Copy& copy : copies) join(f_.code[copy.statement]);
    for (const Copy& copy : copies) {
      const Statement& s = f_.code[copy.statement];
      out.coalesced += find(s.operands[0].reg) == find(s.operands[1].reg);
    }
    out.copies = static_cast<uint32_t>(copies.size());
  }

  int find(int reg) {
    while (class_of_[static_cast<size_t>(reg)] != reg) {
      int& up = class_of_[static_cast<size_t>(reg)];
      up = class_of_[static_cast<size_t>(up)];
      reg = up;
    }
    return reg;
  }
  Class& at(int reg) { return classes_[static_cast<size_t>(reg)]; }

 private:
  /// How many backward branches span each statement.
  std::vector<int> loop_depths() const {
    std::vector<int> change(f_.code.size() + 1, 0);
    for (size_t i = 0; i < f_.code.size(); ++i)
      for_each_target(f_, f_.code[i], [&](int target) {
        if (static_cast<size_t>(target) > i) return;
        ++change[static_cast<size_t>(target)];
        --change[i + 1];
      });
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }

  void join(const Statement& s) {
    int a = find(s.operands[0].reg), b = find(s.operands[1].reg);
    if (a == b || conflict(at(a), at(b)) || conflict(at(b), at(a))) return;
    if (at(a).members.size() < at(b).members.size()) std::swap(a, b);
    Class &into = at(a), &from = at(b);
    into.members.insert(into.members.end(), from.members.begin(), from.members.end());
    into.writes.insert(into.writes.end(), from.writes.begin(), from.writes.end());
    unite(into.segments, from.segments);
    into.exclusive |= from.exclusive;
    class_of_[static_cast<size_t>(b)] = a;
    from = Class();
  }

  /// Whether a member of `a` is written while one of `b` with another value is alive (Chaitin 1982: the source of a
  /// copy does not interfere with its destination there).
  bool conflict(const Class& a, const Class& b) {
    for (const auto& [point, reg] : a.writes) {
      if (!inside(b.segments, point)) continue;
      const Statement& s = f_.code[point / 2];
      if (!is_copy(f_, s)) return true;
      const int source = s.operands[1].reg;
      for (const int other : b.members)
        if (other != source && liveness_.live_at(other, point)) return true;
    }
    return false;
  }

  const Function& f_;
  const Liveness& liveness_;
  std::vector<Class> classes_;  ///< indexed by the register that represents the class
  std::vector<int> class_of_;
};

/// Assigns slots to classes of one width, in the order in which they begin to live: the first slot that is free for all of
/// a class's life, holes included.
class Allocator {
 public:
  explicit Allocator(Point end) : end_(end) {}

  size_t place(const Class& c) {
    const std::vector<Segment> always = {{0, end_}};
    const std::vector<Segment>& wanted = c.exclusive ? always : c.segments;
    size_t i = 0;
    while (i < places_.size() && overlap(wanted, places_[i])) ++i;
    if (i == places_.size()) places_.emplace_back();
    unite(places_[i], wanted);
    return i;
  }
  size_t places() const { return places_.size(); }

 private:
  Point end_;
  std::vector<std::vector<Segment>> places_;
};

int most_alive(const Function& f, Coalescer& coalescer, const std::vector<int>& classes, size_t statements) {
  std::vector<int> change(2 * statements + 2, 0);
  for (const int c : classes) {
    const int words = (bytes_of(f.registers[static_cast<size_t>(c)].type) + 3) / 4;
    for (const Segment& s : coalescer.at(c).segments) {
      change[s.begin] += words;
      change[s.end] -= words;
    }
  }
  int now = 0, most = 0;
  for (const int c : change) most = std::max(most, now += c);
  return most;
}

}  // namespace

RegisterPlaces place_registers(const Function& f, const Accesses& accesses, const Liveness& liveness,
                               const std::vector<const Opcode*>& opcodes) {
  RegisterPlaces out;
  out.place.assign(f.registers.size(), kNoRef);
  Coalescer coalescer(f, accesses, liveness, opcodes);
  coalescer.run(out);

  std::vector<int> classes;
  for (size_t r = 0; r < f.registers.size(); ++r)
    if (coalescer.find(static_cast<int>(r)) == static_cast<int>(r) &&
        !coalescer.at(static_cast<int>(r)).segments.empty())
      classes.push_back(static_cast<int>(r));
  std::stable_sort(classes.begin(), classes.end(), [&](int a, int b) {
    return coalescer.at(a).segments.front().begin < coalescer.at(b).segments.front().begin;
  });
  out.most_alive = most_alive(f, coalescer, classes, f.code.size());

  // One area for each width, so that registers of different widths never share.
  const auto end = static_cast<Point>(2 * f.code.size() + 2);
  for (const uint32_t width : {uint32_t{0}, uint32_t{128}, uint32_t{256}, uint32_t{512}}) {
    Allocator allocator(end);
    for (const int c : classes) {
      if (place_bytes(f.registers[static_cast<size_t>(c)].type) != width) continue;
      const size_t i = allocator.place(coalescer.at(c));
      out.place[static_cast<size_t>(c)] = width == 0 ? static_cast<Ref>(i) : out.bytes + static_cast<Ref>(i) * width;
    }
    if (width == 0)
      out.predicates = static_cast<uint32_t>(allocator.places());
    else
      out.bytes += static_cast<uint32_t>(allocator.places()) * width;
  }
  for (size_t r = 0; r < f.registers.size(); ++r)
    out.place[r] = out.place[static_cast<size_t>(coalescer.find(static_cast<int>(r)))];
  return out;
}

}  // namespace emulator::ptx
