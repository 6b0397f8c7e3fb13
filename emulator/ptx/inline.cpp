// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/inline.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "emulator/machine/fault.h"

namespace emulator::ptx {

namespace {

using Kind = Operand::Kind;

/// A kernel that grows beyond is refused: calls of calls multiply.
constexpr size_t kMostStatements = size_t{1} << 22;

class Inliner {
 public:
  Inliner(Module& module, Function header) : module_(module), out_(std::move(header)) { out_.lines.emplace_back(); }

  Function run(const Function& kernel) {
    append(kernel, {}, 0);
    return std::move(out_);
  }

 private:
  using Names = std::unordered_map<std::string_view, int>;  ///< formal parameters: the variable that each is here

  [[noreturn]] void refuse(const Statement& call, uint32_t line, std::string_view why) const {
    const Operand* const callee = read_call(call).callee;
    throw Fault(FaultCode::unsupported,
                cat("unsupported PTX: \"call ", callee == nullptr ? std::string_view() : callee->name, "\" at ",
                    describe_line(module_.text().files, out_.lines, line), " (", why, ")"));
  }

  /// Function `f` at the end of what there is. `from`: the line of the call, 0 of the kernel itself.
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

  /// The function to inline at a statement; nullptr when it is none, or a call of what has no body.
  Function* body_of(const Statement& s) {
    if (s.op != "call") return nullptr;
    const Operand* const callee = read_call(s).callee;
    if (callee == nullptr || callee->kind != Kind::symbol) return nullptr;
    Function* const f = module_.function(callee->name);
    return f == nullptr || f->body.data() == nullptr ? nullptr : f;
  }

  /// `s` has the caller's registers and variables as they are here.
  void call(const Statement& s, Function& callee) {
    if (std::find(active_.begin(), active_.end(), callee.name) != active_.end()) refuse(s, s.line, "recursion");
    if (callee.is_kernel) refuse(s, s.line, "a kernel is called");
    const Call call = read_call(s);
    Names names;
    bind(s, callee.results, call.results, names);
    bind(s, callee.parameters, call.arguments, names);
    parse_body(module_.text(), callee);
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

  void bind(const Statement& s, const std::vector<Variable>& formals, const Operand* actuals, Names& names) const {
    const size_t count = actuals == nullptr ? 0 : actuals->parts.size();
    if (count != formals.size()) refuse(s, s.line, "the number of arguments is not the function's");
    for (size_t i = 0; i < count; ++i) {
      const Operand& actual = actuals->parts[i];
      if (formals[i].space != Space::param || actual.kind != Kind::symbol || actual.reg < 0 || actual.value != 0)
        refuse(s, s.line, "an argument that is no .param variable");
      if (out_.variables[static_cast<size_t>(actual.reg)].bytes < formals[i].bytes)
        refuse(s, s.line, "an argument smaller than the parameter");
      names[formals[i].name] = actual.reg;
    }
  }

  Module& module_;
  Function out_;
  std::vector<std::string_view> active_;
};

/// Takes the parsed body away: the function is left as it was before it was parsed.
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
  return std::any_of(f.code.begin(), f.code.end(), [](const Statement& s) { return s.op == "call"; });
}

}  // namespace

Function inline_calls(Module& module, Function& kernel) {
  parse_body(module.text(), kernel);
  Function body = take_body(kernel);
  if (!uses_calls(body)) return body;
  return Inliner(module, kernel).run(body);
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
