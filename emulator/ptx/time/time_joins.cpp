// SPDX-License-Identifier: Apache-2.0
// The merging of several PTX instructions by ptxas, as far as --time counts it: loops that ptxas unrolls whole, where
// offsets per iteration become a part of addresses; loads from shared memory that are joined, within a basic block and
// across the iterations of such a loop; common subexpressions in a basic block; and atomics of all lanes at the same
// address, which one lane does for its warp. The machine code of SGEMM's ladder (nvcc 13.0, sm_86) shows the first two,
// tests/emulator/time.cu's the third.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "emulator/machine/fault.h"
#include "emulator/ptx/time/time_notes.h"

namespace emulator::ptx {

namespace {

using Kind = TimeNote::Kind;

/// ptxas unrolls a single loop of 16 turns with 170 statements each, and none of four such loops in a kernel.
constexpr size_t kMostUnrolled = 4096, kMostTurns = 1024;

bool is_integer(Type t) { return !is_float(t) && t != Type::none && t != Type::pred; }

std::optional<bool> compares(std::string_view how, int64_t a, int64_t b) {
  if (how == "eq") return a == b;
  if (how == "ne") return a != b;
  if (how == "lt" || how == "lo") return a < b;
  if (how == "le" || how == "ls") return a <= b;
  if (how == "gt" || how == "hi") return a > b;
  if (how == "ge" || how == "hs") return a >= b;
  return std::nullopt;
}

/// A loop of one basic block, the statements [first, last], which runs a constant number of turns.
class Loop {
 public:
  /// `entries`: how many jumps have a statement as their target.
  Loop(const Function& body, const Accesses& accesses, const std::vector<int>& entries, size_t end)
      : last(end), body_(body), accesses_(accesses) {
    const Statement& back = body.code[last];
    if (back.op != "bra" || back.guard < 0 || back.target < 0 || static_cast<size_t>(back.target) > last) return;
    first = static_cast<size_t>(back.target);
    for (size_t i = first; i <= last; ++i) {
      if (entries[i] != (i == first ? 1 : 0) || body.code[i].op == "pragma" || (i != last && ends_block(body.code[i])))
        return;
      for (const Access* a = accesses.begin(i); a != accesses.end(i); ++a)
        if (a->written) ++writes_[a->reg];
    }
    find_steps();
    turns = count_turns(entries);
    if (turns > 0) follow();
  }

  size_t first = 0, last = 0;
  int turns = 0;  ///< 0: not constant, or no such loop

  /// A statement's role in an unrolled loop.
  struct Part {
    bool folded = false;            ///< its result is the same in each turn, or moves by a constant
    std::optional<int64_t> stride;  ///< for a load: change of its address per iteration
    uint64_t base = 0;  ///< for a load: differs where the base register has been written in between; 0: no register
  };
  const Part& part(size_t statement) const { return parts_[statement - first]; }

 private:
  /// r = r + constant, once a turn.
  void find_steps() {
    for (size_t i = first; i <= last; ++i) {
      const Statement& s = body_.code[i];
      if ((s.op != "add" && s.op != "sub") || s.guard >= 0 || !is_integer(s.type()) || s.operands.size() != 3) continue;
      const Operand &to = s.operands[0], &from = s.operands[1], &by = s.operands[2];
      if (to.kind != Operand::Kind::reg || from.kind != Operand::Kind::reg || to.reg != from.reg ||
          by.kind != Operand::Kind::integer)
        continue;
      if (writes_[to.reg] == 1) steps_[to.reg] = {s.op == "add" ? by.value : -by.value, i};
    }
  }

  /// An integer, or a register that only one mov of an integer writes.
  std::optional<int64_t> constant(const Operand& o) const {
    if (o.kind == Operand::Kind::integer) return o.value;
    if (o.kind != Operand::Kind::reg) return std::nullopt;
    std::optional<int64_t> value;
    for (size_t i = 0; i < body_.code.size(); ++i)
      for (const Access* a = accesses_.begin(i); a != accesses_.end(i); ++a) {
        if (!a->written || a->reg != o.reg) continue;
        const Statement& s = body_.code[i];
        if (value || s.op != "mov" || s.guard >= 0 || s.operands[1].kind != Operand::Kind::integer) return std::nullopt;
        value = s.operands[1].value;
      }
    return value;
  }

  /// The value that a register has before the loop, when a mov right before it says so.
  std::optional<int64_t> value_before(int reg, const std::vector<int>& entries) const {
    for (size_t i = first; i-- > 0;) {
      const Statement& s = body_.code[i];
      if (never_falls_through(s)) return std::nullopt;
      for (const Access* a = accesses_.begin(i); a != accesses_.end(i); ++a) {
        if (!a->written || a->reg != reg) continue;
        return s.op == "mov" && s.guard < 0 ? constant(s.operands[1]) : std::nullopt;
      }
      if (entries[i] > 0) return std::nullopt;
    }
    return std::nullopt;
  }

  int count_turns(const std::vector<int>& entries) const {
    const Statement& back = body_.code[last];
    for (size_t i = last; i-- > first;) {
      const Statement& s = body_.code[i];
      if (s.op != "setp" || s.operands.size() != 3 || s.operands[0].kind != Operand::Kind::reg ||
          s.operands[0].reg != back.guard)
        continue;
      const auto step = s.operands[1].kind == Operand::Kind::reg ? steps_.find(s.operands[1].reg) : steps_.end();
      if (step == steps_.end() || s.operands[2].kind != Operand::Kind::integer || s.mods.empty() || s.guard >= 0)
        return 0;
      std::optional<int64_t> value = value_before(step->first, entries);
      if (!value) return 0;
      const auto [by, where] = step->second;
      if (where > i) *value -= by;  // the comparison comes before the step
      for (size_t turn = 1; turn <= kMostTurns; ++turn) {
        *value += by;
        const std::optional<bool> goes_on = compares(s.mods[0], *value, s.operands[2].value);
        if (!goes_on) return 0;
        if (*goes_on == back.guard_negated) return static_cast<int>(turn);
      }
      return 0;
    }
    return 0;
  }

  /// How far each integer moves in a turn.
  void follow() {
    parts_.resize(last - first + 1);
    std::unordered_map<int, std::optional<int64_t>> moves;
    std::unordered_map<int, uint64_t> written;
    const auto of = [&](const Operand& o) -> std::optional<int64_t> {
      if (o.kind == Operand::Kind::integer || o.kind == Operand::Kind::symbol || o.kind == Operand::Kind::special)
        return 0;
      if (o.kind != Operand::Kind::reg || !o.name.empty()) return std::nullopt;
      if (const auto step = steps_.find(o.reg); step != steps_.end()) return step->second.first;
      if (const auto known = moves.find(o.reg); known != moves.end()) return known->second;
      return writes_.contains(o.reg) ? std::nullopt : std::optional<int64_t>(0);
    };
    for (size_t i = first; i <= last; ++i) {
      const Statement& s = body_.code[i];
      Part& here = parts_[i - first];
      if (s.op == "ld" && s.operands.size() == 2 && s.operands[1].kind == Operand::Kind::address) {
        const Operand& base = s.operands[1].parts[0];
        here.stride = of(base);
        here.base =
            base.kind == Operand::Kind::reg ? (static_cast<uint64_t>(base.reg) + 1) << 16 | written[base.reg] : 0;
      }
      const std::optional<int64_t> moved = s.guard < 0 ? result(s, of) : std::nullopt;
      here.folded = i == last || moved.has_value();
      for (const Access* a = accesses_.begin(i); a != accesses_.end(i); ++a) {
        if (!a->written) continue;
        moves[a->reg] = moved;
        ++written[a->reg];
      }
    }
  }

  template <class Of>
  static std::optional<int64_t> result(const Statement& s, const Of& of) {
    const size_t n = s.operands.size();
    if (n < 2 || s.operands[0].kind != Operand::Kind::reg) return std::nullopt;
    if (s.op == "setp") {  // the loop counter's: known in each turn
      const bool known = n == 3 && is_integer(s.type()) && of(s.operands[1]) && of(s.operands[2]);
      return known ? std::optional<int64_t>(0) : std::nullopt;
    }
    static constexpr std::string_view kKnown[] = {"mov", "cvta", "cvt", "add", "sub", "shl", "shr", "mul",
                                                  "mad", "and",  "or",  "xor", "not", "min", "max"};
    if (std::ranges::find(kKnown, s.op) == std::end(kKnown) || !is_integer(s.type(0)) ||
        (s.op == "cvt" && !is_integer(s.type(1))))
      return std::nullopt;
    std::optional<int64_t> moves[3] = {0, 0, 0};
    bool all_rest = true;
    for (size_t k = 1; k < std::min<size_t>(n, 4); ++k) {
      moves[k - 1] = of(s.operands[k]);
      if (!moves[k - 1]) return std::nullopt;
      all_rest = all_rest && *moves[k - 1] == 0;
    }
    if (all_rest) return 0;
    if (s.op == "mov" || s.op == "cvta" || s.op == "cvt") return moves[0];
    // nvcc writes sums whose bits do not meet as `or`.
    if (s.op == "add" || (s.op == "or" && (*moves[0] == 0 || *moves[1] == 0))) return *moves[0] + *moves[1];
    if (s.op == "sub") return *moves[0] - *moves[1];
    const bool by_constant = n > 2 && s.operands[2].kind == Operand::Kind::integer;
    if (s.op == "shl" && by_constant) return *moves[0] << (s.operands[2].value & 63);
    if ((s.op == "mul" || s.op == "mad") && by_constant && !s.has("hi"))
      return *moves[0] * s.operands[2].value + (s.op == "mad" ? *moves[2] : 0);
    return std::nullopt;
  }

  const Function& body_;
  const Accesses& accesses_;
  std::unordered_map<int, int> writes_;
  std::map<int, std::pair<int64_t, size_t>> steps_;  ///< per register: the constant, and the statement that adds it
  std::vector<Part> parts_;
};

/// The loops that ptxas unrolls.
std::vector<Loop> unrolled_loops(const Function& body, const Accesses& accesses) {
  std::vector<int> entries(body.code.size() + 1, 0);
  for (const Statement& s : body.code)
    for_each_target(body, s, [&](int target) { ++entries[static_cast<size_t>(target)]; });
  std::vector<Loop> loops;
  size_t statements = 0;
  for (size_t i = 0; i < body.code.size(); ++i) {
    if (body.code[i].op != "bra" || body.code[i].guard < 0) continue;
    Loop loop(body, accesses, entries, i);
    if (loop.turns == 0) continue;
    statements += static_cast<size_t>(loop.turns) * (loop.last - loop.first + 1);
    loops.push_back(std::move(loop));
  }
  if (statements > kMostUnrolled) loops.clear();
  return loops;
}

/// Joins the loads that it is given, as long as nothing comes between them.
class Joiner {
 public:
  explicit Joiner(TimeTable& table) : table_(table) {}

  void add(size_t note, uint32_t turn, uint64_t base, int64_t offset) {
    TimeNote& n = table_.notes[note];
    if (n.joins == TimeNote::kNoJoins) {
      n.joins = static_cast<uint32_t>(table_.joins.size());
      table_.joins.resize(table_.joins.size() + n.turns * kJoins);
    }
    open_.push_back({n.joins + turn * kJoins, base, offset, n.bytes});
  }

  bool is_open() const { return !open_.empty(); }
  template <class Is>
  bool any_base(const Is& is) const {
    return std::ranges::any_of(open_, [&](const Load& load) { return is(load.base); });
  }

  void close() {
    for (size_t variant = 0; variant < kJoins && open_.size() > 1; ++variant)
      for (const int64_t width : {16, 8}) {
        if (variant >= 4 && width == 16) continue;
        // The base lies so far after a multiple of the width; a group begins at one.
        const int64_t after = static_cast<int64_t>(4 * (variant % 4)) & (width - 1);
        std::map<std::pair<uint64_t, int64_t>, std::vector<const Load*>> groups;
        for (const Load& load : open_) {
          const int64_t begin = load.offset - ((load.offset + after) & (width - 1));
          if (join(load, variant).role == TimeJoin::no && load.offset + load.bytes <= begin + width)
            groups[{load.base, begin}].push_back(&load);
        }
        for (const auto& [place, group] : groups) {
          uint32_t words = 0;
          for (const Load* load : group) words |= ((1u << load->bytes / 4) - 1) << (load->offset - place.second) / 4;
          if (group.size() < 2 || words != (1u << width / 4) - 1) continue;
          for (const Load* load : group)
            join(*load, variant) = {load == group.front() ? TimeJoin::first : TimeJoin::other,
                                    static_cast<uint8_t>(width), static_cast<int32_t>(place.second - load->offset)};
        }
      }
    open_.clear();
  }

 private:
  struct Load {
    size_t joins;
    uint64_t base;
    int64_t offset;
    uint8_t bytes;
  };
  TimeJoin& join(const Load& load, size_t variant) { return table_.joins[load.joins + variant]; }

  TimeTable& table_;
  std::vector<Load> open_;  ///< since the last write to shared memory
};

bool is_joinable(const TimeNote& n) {
  return n.kind == Kind::access && n.space == Space::shared && !n.bypasses_l1 && (n.bytes == 4 || n.bytes == 8) &&
         n.address.offset % 4 == 0;
}
/// Loads do not move past it.
bool separates(const TimeNote& n) {
  return (n.kind != Kind::none && n.kind != Kind::plain && n.kind != Kind::access) ||
         (n.write && n.space != Space::global);
}

void join_in_loop(const Loop& loop, const std::vector<size_t>& start, TimeTable& table) {
  Joiner joiner(table);
  for (size_t i = loop.first; i <= loop.last; ++i) {
    if (start[i] == start[i + 1]) continue;
    TimeNote& n = table.notes[start[i]];
    n.turns = static_cast<uint16_t>(loop.turns);
    n.folded = loop.part(i).folded;
    n.stride = static_cast<int32_t>(loop.part(i).stride.value_or(0));
  }
  for (uint32_t turn = 0; turn < static_cast<uint32_t>(loop.turns); ++turn)
    for (size_t i = loop.first; i <= loop.last; ++i) {
      if (start[i] == start[i + 1]) continue;
      const TimeNote& n = table.notes[start[i]];
      if (separates(n)) joiner.close();
      if (!is_joinable(n)) continue;
      const Loop::Part& part = loop.part(i);
      const uint64_t base = part.base ? part.base << 16 | (part.stride ? 0 : turn + 1) : n.address.base;
      joiner.add(start[i], turn, base, n.address.offset + static_cast<int64_t>(turn) * n.stride);
    }
  joiner.close();
}

/// The registers that ptxas knows to be the same in all lanes: written once, from nothing that differs.
std::vector<bool> uniform_registers(const Function& body, const Accesses& accesses) {
  std::vector<int> writes(body.registers.size(), 0);
  for (size_t i = 0; i < body.code.size(); ++i)
    for (const Access* a = accesses.begin(i); a != accesses.end(i); ++a)
      writes[static_cast<size_t>(a->reg)] += a->written;
  std::vector<bool> uniform(body.registers.size(), false);
  const auto same = [&](const Operand& o) {
    if (o.kind == Operand::Kind::special) return o.name.find("ctaid") != o.name.npos || o.name.starts_with("ntid");
    return o.kind == Operand::Kind::reg ? uniform[static_cast<size_t>(o.reg)] : o.parts.empty();
  };
  for (bool more = true; more;) {
    more = false;
    for (const Statement& s : body.code) {
      if (s.guard >= 0 || s.operands.size() < 2 || s.operands[0].kind != Operand::Kind::reg) continue;
      const size_t to = static_cast<size_t>(s.operands[0].reg);
      const Operand& from = s.operands[1];
      const bool loads = s.op == "ld" && (s.has("param") || s.has("const")) && from.kind == Operand::Kind::address;
      if (uniform[to] || writes[to] != 1 || (!loads && !can_work_in_place(s))) continue;
      uniform[to] = loads ? same(from.parts[0]) : std::ranges::all_of(s.operands.begin() + 1, s.operands.end(), same);
      more = more || uniform[to];
    }
  }
  return uniform;
}

/// Finds atomic operations that are one for all lanes that meet.
void note_meetings(const Function& body, const Accesses& accesses, const std::vector<size_t>& start, TimeTable& table) {
  std::vector<bool> uniform;
  for (size_t i = 0; i < body.code.size(); ++i) {
    const Statement& s = body.code[i];
    if (start[i] == start[i + 1] || !table.notes[start[i]].atomic) continue;
    TimeNote& n = table.notes[start[i]];
    const size_t first = s.op == "atom" ? 1 : 0;
    if (s.operands.size() < first + 2 || bytes_of(s.type()) != 4 || !is_integer(s.type())) continue;
    bool returns = false;
    for (size_t k = 0; k < body.code.size() && first == 1 && s.operands[0].kind == Operand::Kind::reg; ++k)
      for (const Access* a = accesses.begin(k); a != accesses.end(k); ++a)
        returns = returns || (a->read && a->reg == s.operands[0].reg);
    const Operand &base = s.operands[first].parts[0], &value = s.operands[first + 1];
    if (n.space == Space::shared && s.has("add") && !returns && value.kind == Operand::Kind::integer &&
        value.value == 1) {
      n.joined = true;
      continue;
    }
    if (uniform.empty()) uniform = uniform_registers(body, accesses);
    const auto same = [&](const Operand& o) {
      return o.kind == Operand::Kind::reg ? uniform[static_cast<size_t>(o.reg)] : o.parts.empty();
    };
    static constexpr std::string_view kSums[] = {"add", "min", "max", "and", "or", "xor"};
    const bool sums = std::ranges::any_of(kSums, [&](std::string_view op) { return s.has(op); });
    n.joined = same(base) && sums && (!returns || (s.has("add") && same(value)));
    // A vote or a sum over the warp, who is first, and what each lane would have got.
    if (n.joined) n.issue += returns ? 7.0f : 4.0f;
  }
}

/// The operands as text, registers with how often they have been written; empty where they do not say all.
std::string sources_of(const Statement& s, const std::vector<uint32_t>& writes) {
  std::string text;
  for (size_t k = 1; k < s.operands.size(); ++k) {
    const Operand& o = s.operands[k];
    const uint32_t version = o.kind == Operand::Kind::reg ? writes[static_cast<size_t>(o.reg)] : 0;
    const bool moves =
        o.kind == Operand::Kind::special && (o.name.find("clock") != o.name.npos || o.name == "globaltimer");
    if (!o.parts.empty() || moves) return "";
    text +=
        cat(' ', static_cast<int>(o.kind), ' ', o.reg, ' ', version, ' ', o.value, ' ', o.name, o.negated ? '!' : ' ');
  }
  return text;
}

/// ptxas computes common subexpressions of a basic block once: nvcc leaves the conversions of bf16 as often as they are
/// written.
void note_repeats(const Function& body, const Accesses& accesses, const std::vector<size_t>& start,
                  const Kernel& kernel, TimeTable& table) {
  std::vector<uint32_t> writes(body.registers.size(), 0);
  std::unordered_set<std::string> known;
  for (size_t i = 0; i < body.code.size(); ++i) {
    const Statement& s = body.code[i];
    const bool emitted = start[i] != start[i + 1];
    if (emitted && kernel.code[start[i]].flags & kLeader) known.clear();
    if (emitted && s.guard < 0 && can_work_in_place(s) && !s.has("cc") && !s.op.ends_with("c")) {
      const std::string sources = sources_of(s, writes);
      std::string key(s.op);
      for (const std::string_view mod : s.mods) key += cat('.', mod);
      TimeNote& n = table.notes[start[i]];
      if (!sources.empty() && !known.insert(key + sources).second) n.issue = n.on_unit = n.mufu = 0;
    }
    for (const Access* a = accesses.begin(i); a != accesses.end(i); ++a)
      writes[static_cast<size_t>(a->reg)] += a->written;
  }
}

}  // namespace

void note_joins(const Function& body, const Accesses& accesses, const std::vector<size_t>& start, const Kernel& kernel,
                TimeTable& table) {
  note_meetings(body, accesses, start, table);
  note_repeats(body, accesses, start, kernel, table);
  const std::vector<Loop> loops = unrolled_loops(body, accesses);
  Joiner joiner(table);
  auto loop = loops.begin();
  for (size_t k = 0; k < table.notes.size(); ++k) {
    if (kernel.code[k].flags & kLeader) joiner.close();
    if (loop != loops.end() && k == start[loop->first]) {
      join_in_loop(*loop, start, table);
      k = start[loop->last + 1] - 1;
      ++loop;
      continue;
    }
    const TimeNote& n = table.notes[k];
    if (separates(n)) joiner.close();
    if (is_joinable(n)) joiner.add(k, 0, n.address.base, n.address.offset);
    // A base that is written is another one afterwards.
    for (uint32_t r = 0; r < n.writes && joiner.is_open(); ++r) {
      const uint32_t ref = table.refs[n.first_ref + n.reads + r];
      if (joiner.any_base([&](uint64_t base) { return !(base & kConstant) && base / 128 == ref; })) joiner.close();
    }
  }
  joiner.close();
}

}  // namespace emulator::ptx
