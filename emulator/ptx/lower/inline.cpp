// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/lower/inline.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "emulator/machine/fault.h"
#include "emulator/ptx/lower/call_graph.h"
#include "emulator/ptx/lower/frames.h"

namespace emulator::ptx {

namespace {

using Kind = Operand::Kind;

/// A kernel that grows beyond is refused: calls of calls multiply.
constexpr size_t kMostStatements = size_t{1} << 20, kMostRegisters = size_t{1} << 22, kMostCalls = size_t{1} << 18;
constexpr size_t kDeepestCalls = 200;

class Inliner {
 public:
  Inliner(Module& module, Function header, const Function& kernel)
      : module_(module), graph_(module, kernel), out_(std::move(header)) {
    out_.lines.emplace_back();
  }

  /// `kernel`: the module's, which sections name and which outlives the body that was parsed.
  Function run(const Function& body, const Function& kernel) {
    if (graph_.needs_stack()) begin_section(kernel);
    append(body, {}, 0);
    for (size_t i = 0; i < called_.size(); ++i) {
      Function& f = *called_[i];
      begin_section(f);
      Names names;
      uint64_t end = 0;
      for (const auto* const list : {&f.results, &f.parameters})
        for (const Variable& v : *list) names[v.name] = in_frame(v, out_.sections.back().incoming, end);
      const size_t entry = out_.code.size() - 1;
      append(f, names, 0);
      if (entry + 1 < out_.code.size()) out_.code[entry].line = out_.code[entry + 1].line;
      out_.sections.back().last_variable = static_cast<int>(out_.variables.size());
    }
    if (!out_.sections.empty()) add(kEndOfCode, {});
    return std::move(out_);
  }

 private:
  using Names = std::unordered_map<std::string_view, int>;  ///< formal parameters: each one's variable here

  [[noreturn]] void refuse(const Statement& call, uint32_t line, std::string_view why) const {
    const Operand* const callee = read_call(call).callee;
    throw Fault(FaultCode::unsupported,
                cat("unsupported PTX: \"call ", callee == nullptr ? std::string_view() : callee->name, "\" at ",
                    describe_line(module_.text().files, out_.lines, line), " (", why, ")"));
  }

  /// Appends function `f`. `from`: the line of the call, 0 of the kernel itself.
  void append(const Function& f, const Names& formals, uint32_t from) {
    const bool is_callee = !active_.empty();
    active_.push_back(f.name);
    const Base base{static_cast<int>(out_.registers.size()), static_cast<int>(out_.variables.size()),
                    static_cast<uint32_t>(out_.lines.size()) - 1, static_cast<int>(out_.tables.size())};
    out_.registers.insert(out_.registers.end(), f.registers.begin(), f.registers.end());
    out_.variables.insert(out_.variables.end(), f.variables.begin(), f.variables.end());
    for (size_t i = 1; i < f.lines.size(); ++i) {
      Line line = f.lines[i];
      line.inlined_at = line.inlined_at != 0 ? line.inlined_at + base.line : from;
      out_.lines.push_back(line);
    }

    std::vector<int> start(f.code.size() + 1);
    std::vector<size_t> branches;
    for (size_t k = 0; k < f.code.size(); ++k) {
      const Statement& s = f.code[k];
      start[k] = static_cast<int>(out_.code.size());
      if (out_.code.size() > kMostStatements) refuse(s, s.line + base.line, "the inlined calls are too many");
      if (Function* const callee = body_of(s)) {
        call(move(s, base, formals), *callee);
      } else if (s.op == "call" && s.target >= 0) {
        call_pointer(move(s, base, formals), f.prototypes[static_cast<size_t>(s.target)]);
      } else if (s.op == "alloca" || s.op == "stacksave" || s.op == "stackrestore") {
        use_stack(move(s, base, formals));
      } else if (s.op == "ret" && !is_callee && !f.is_kernel) {
        out_.code.push_back(move(s, base, formals));
        out_.code.back().op = kReturnToCaller;
      } else if (s.op == "ret" && is_callee) {
        if (s.guard < 0 && k + 1 == f.code.size()) continue;
        Statement jump = move(s, base, formals);
        jump.op = "bra";
        jump.target = static_cast<int>(f.code.size());
        branches.push_back(out_.code.size());
        out_.code.push_back(std::move(jump));
      } else {
        if (s.target >= 0 && s.op == "bra") branches.push_back(out_.code.size());
        out_.code.push_back(move(s, base, formals));
        if (s.op == "brx") out_.code.back().target += base.table;
      }
    }
    start.back() = static_cast<int>(out_.code.size());
    for (const size_t i : branches) out_.code[i].target = start[static_cast<size_t>(out_.code[i].target)];
    for (const std::vector<int>& table : f.tables) {
      std::vector<int>& moved = out_.tables.emplace_back(table);
      for (int& target : moved) target = start[static_cast<size_t>(target)];
    }
    active_.pop_back();
  }

  struct Base {
    int reg, variable;
    uint32_t line;
    int table;
  };

  static void move(Operand& o, const Base& base, const Names& formals) {
    if (o.kind == Kind::reg) {
      o.reg += base.reg;
    } else if (o.kind == Kind::symbol) {
      if (o.reg >= 0)
        o.reg += base.variable;
      else if (const auto formal = formals.find(o.name); formal != formals.end())
        o.reg = formal->second;
    }
    for (Operand& part : o.parts) move(part, base, formals);
  }

  static Statement move(const Statement& s, const Base& base, const Names& formals) {
    Statement moved = s;
    if (moved.guard >= 0) moved.guard += base.reg;
    moved.line += moved.line == 0 ? 0 : base.line;
    for (Operand& o : moved.operands) move(o, base, formals);
    return moved;
  }

  /// The function to inline at a statement; nullptr: no call, or the callee has no body.
  Function* body_of(const Statement& s) {
    if (s.op != "call") return nullptr;
    const Operand* const callee = read_call(s).callee;
    if (callee == nullptr || callee->kind != Kind::symbol) return nullptr;
    Function* const f = module_.function(callee->name);
    return f == nullptr || f->body.data() == nullptr ? nullptr : f;
  }

  /// `s` has the caller's registers and variables as they are here.
  void call(const Statement& s, Function& callee) {
    if (callee.is_kernel) refuse(s, s.line, "a kernel is called");
    const Call call = read_call(s);
    if (graph_.is_called(callee)) return call_section(s, callee.results, callee.parameters, section_of(callee));
    Names names;
    bind(s, callee.results, call.results, names);
    bind(s, callee.parameters, call.arguments, names);
    parse_body(module_.text(), callee);
    // Functions that call the next one twice are 2^n calls, though they may hold no statement.
    if (++calls_ > kMostCalls || active_.size() > kDeepestCalls ||
        out_.registers.size() + callee.registers.size() > kMostRegisters)
      refuse(s, s.line, "the inlined calls are too many");
    const size_t skip = out_.code.size();
    if (s.guard >= 0) {
      Statement jump;
      jump.op = "bra";
      jump.guard = s.guard;
      jump.guard_negated = !s.guard_negated;
      jump.line = s.line;
      out_.code.push_back(std::move(jump));
    }
    append(callee, names, s.line);
    if (s.guard >= 0) out_.code[skip].target = static_cast<int>(out_.code.size());
  }

  void bind(const Statement& s, const std::vector<Variable>& formals, const Operand* actuals, Names& names) {
    for_each_argument(s, formals, actuals, [&](const Variable& formal, int actual) {
      if (out_.variables[static_cast<size_t>(actual)].base >= 0) refuse(s, s.line, kTwoCalls);
      inlined_.insert(actual);
      names[formal.name] = actual;
    });
  }

  /// Calls f(formal, index of the .param variable that is given for it).
  template <class F>
  void for_each_argument(const Statement& s, const std::vector<Variable>& formals, const Operand* actuals, F f) const {
    const size_t count = actuals == nullptr ? 0 : actuals->parts.size();
    if (count != formals.size()) refuse(s, s.line, "the number of arguments is not the function's");
    for (size_t i = 0; i < count; ++i) {
      const Operand& actual = actuals->parts[i];
      if (formals[i].space != Space::param || actual.kind != Kind::symbol || actual.reg < 0 || actual.value != 0)
        refuse(s, s.line, "an argument that is no .param variable");
      if (out_.variables[static_cast<size_t>(actual.reg)].bytes < formals[i].bytes)
        refuse(s, s.line, "an argument smaller than the parameter");
      f(formals[i], actual.reg);
    }
  }

  static Operand as_register(int reg) {
    Operand o;
    o.kind = Kind::reg;
    o.reg = reg;
    return o;
  }
  static Operand as_integer(size_t value) {
    Operand o;
    o.kind = Kind::integer;
    o.value = static_cast<int64_t>(value);
    return o;
  }
  int new_register() {
    out_.registers.push_back({"stack", Type::b64});
    return static_cast<int>(out_.registers.size()) - 1;
  }
  Statement& add(std::string_view op, std::vector<Operand> operands, const Statement* from = nullptr) {
    Statement& s = out_.code.emplace_back();
    s.op = op;
    if (op == "mov") s.mods.push_back("b64");
    s.operands = std::move(operands);
    if (from == nullptr) return s;
    s.guard = from->guard;
    s.guard_negated = from->guard_negated;
    s.line = from->line;
    return s;
  }

  void begin_section(const Function& f) {
    if (!out_.sections.empty()) add(kEndOfCode, {});
    Function::Section& section = out_.sections.emplace_back();
    section.function = &f;
    section.first_variable = static_cast<int>(out_.variables.size());
    Operand registers;
    registers.kind = Kind::vector;
    for (int* const reg : {&section.incoming, &section.frame, &section.top})
      registers.parts.push_back(as_register(*reg = new_register()));
    add(kEnterFrame, {std::move(registers)});
  }

  /// A variable after what `base` holds; `end` is where the next one begins.
  int in_frame(const Variable& v, int base, uint64_t& end) {
    out_.variables.push_back(v);
    place_in_frame(out_.variables.back(), base, FrameLayout::reserve(end, v.bytes));
    return static_cast<int>(out_.variables.size()) - 1;
  }
  static void place_in_frame(Variable& v, int base, uint64_t offset) {
    v.space = Space::local;
    v.base = base;
    v.offset = offset;
  }

  size_t section_of(Function& callee) {
    const auto found = std::find(called_.begin(), called_.end(), &callee);
    const auto number = static_cast<size_t>(found - called_.begin());
    if (found == called_.end()) called_.push_back(&callee);
    return number + 1;  // [0] is the kernel
  }

  void call_pointer(const Statement& s, const Prototype& written) {
    const Function* const listed = written.target.empty() ? nullptr : module_.function(written.target);
    if (!written.target.empty() && listed == nullptr) refuse(s, s.line, "an unknown function among .calltargets");
    const auto& results = listed != nullptr ? listed->results : written.results;
    const auto& parameters = listed != nullptr ? listed->parameters : written.parameters;
    const FrameLayout layout(results, parameters);
    for (Function* const f : module_.pointed_functions())
      if (FrameLayout(f->results, f->parameters) == layout) section_of(*f);
    out_.prototypes.push_back({written.name, results, parameters, {}});
    call_section(s, results, parameters, 0);
  }

  /// For section 0, the callee is the register that the call names.
  void call_section(const Statement& s, const std::vector<Variable>& results, const std::vector<Variable>& parameters,
                    size_t section) {
    if (const FrameLayout layout(results, parameters); !layout.unfit.empty())
      refuse(s, s.line, "a parameter that is no .param variable, or one that is aligned to more than 16 bytes");
    const Call call = read_call(s);
    const int top = out_.sections.back().top;
    uint64_t end = 0;
    const auto place = [&](const Variable& formal, int actual) {
      Variable& v = out_.variables[static_cast<size_t>(actual)];
      const uint64_t offset = FrameLayout::reserve(end, formal.bytes);
      if (inlined_.contains(actual) || (v.base >= 0 && (v.base != top || v.offset != offset))) refuse(s, s.line, kTwoCalls);
      place_in_frame(v, top, offset);
    };
    for_each_argument(s, results, call.results, place);
    for_each_argument(s, parameters, call.arguments, place);
    Statement& called = add(kCallFunction, {section == 0 ? *call.callee : as_integer(section), as_register(top)}, &s);
    if (section == 0) called.operands.push_back(as_integer(out_.prototypes.size() - 1));
  }

  void use_stack(const Statement& s) {
    if (s.type() != Type::u64 && s.type() != Type::b64) refuse(s, s.line, "an address of other than 64 bits");
    if (s.operands.size() < (s.op == "alloca" ? 2 : 1)) refuse(s, s.line, "an operand is missing");
    const int top = out_.sections.back().top;
    if (s.op == "stacksave") return static_cast<void>(add("mov", {s.operands[0], as_register(top)}, &s));
    if (s.op == "stackrestore") return static_cast<void>(add("mov", {as_register(top), s.operands[0]}, &s));
    if (s.operands.size() > 2 && s.operands[2].value > static_cast<int64_t>(kFrameAlign))
      refuse(s, s.line, "an alignment of more than 16");
    const int next = new_register();
    add(kGrowStack, {as_register(next), as_register(top), s.operands[1]}, &s);
    add("mov", {s.operands[0], as_register(top)}, &s);
    add("mov", {as_register(top), as_register(next)}, &s);
  }

  static constexpr std::string_view kTwoCalls = "a .param variable of two calls";

  Module& module_;
  CallGraph graph_;
  Function out_;
  size_t calls_ = 0;  // inlined so far
  std::vector<std::string_view> active_;
  std::vector<Function*> called_;    ///< sections 1 …
  std::unordered_set<int> inlined_;  ///< .param variables that are arguments of inlined calls
};

/// Takes the parsed body away: the function becomes unparsed again.
Function take_body(Function& f) {
  Function body = std::move(f);
  f = Function();
  f.name = body.name;
  f.is_kernel = body.is_kernel;
  f.parameters = body.parameters;
  f.results = body.results;
  std::copy(std::begin(body.max_threads), std::end(body.max_threads), f.max_threads);
  std::copy(std::begin(body.required_threads), std::end(body.required_threads), f.required_threads);
  std::copy(std::begin(body.cluster), std::end(body.cluster), f.cluster);
  f.min_blocks = body.min_blocks;
  f.max_registers = body.max_registers;
  f.max_cluster = body.max_cluster;
  f.explicit_cluster = body.explicit_cluster;
  f.body = body.body;
  f.body_line = body.body_line;
  return body;
}

bool uses_calls(const Function& f) {
  return std::any_of(f.code.begin(), f.code.end(),
                     [](const Statement& s) { return s.op == "call" || CallGraph::uses_stack(s); });
}

}  // namespace

Function inline_calls(Module& module, Function& kernel) {
  parse_body(module.text(), kernel);
  Function body = take_body(kernel);
  if (!uses_calls(body)) return body;
  return Inliner(module, kernel, body).run(body, kernel);
}

Call read_call(const Statement& s) {
  Call call;
  size_t i = 0;
  if (i < s.operands.size() && s.operands[i].kind == Kind::list) call.results = &s.operands[i++];
  if (i < s.operands.size()) call.callee = &s.operands[i++];
  if (i < s.operands.size() && s.operands[i].kind == Kind::list) call.arguments = &s.operands[i];
  return call;
}

std::string describe_line(const std::vector<std::string>& files, const std::vector<Line>& lines, uint32_t line) {
  if (line == 0 || line >= lines.size()) return "an unknown line";
  const auto one = [&](const Line& l) {
    if (l.line == 0 || l.file >= files.size() || files[l.file].empty()) return cat("PTX line ", l.ptx_line);
    return cat(files[l.file], ":", l.line);
  };
  std::string text = one(lines[line]);
  for (uint32_t at = lines[line].inlined_at, depth = 0; at != 0 && at < lines.size() && depth < 64; ++depth) {
    text += cat(", inlined at ", one(lines[at]));
    at = lines[at].inlined_at;
  }
  return text;
}

}  // namespace emulator::ptx
