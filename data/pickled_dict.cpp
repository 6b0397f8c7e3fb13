// SPDX-License-Identifier: Apache-2.0
#include "data/pickled_dict.h"

#include <cstdint>
#include <unordered_map>

#include "core/printable.h"
#include "data/file_bytes.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

constexpr size_t kMost = 1 << 21;  // values, remembered values, open marks; CIFAR has some 150,000

/// The classes and functions that arrays of bytes are made of.
enum Callable : int64_t { kReconstruct, kArray, kDtype, kUnknown };

int64_t callable(std::string_view module, std::string_view name) {
  const bool multiarray = module == "numpy.core.multiarray" || module == "numpy._core.multiarray";
  if (multiarray && name == "_reconstruct") return kReconstruct;
  if (module == "numpy" && name == "ndarray") return kArray;
  if (module == "numpy" && name == "dtype") return kDtype;
  return kUnknown;
}

}  // namespace

/// Runs the opcodes of one pickle.
class PickledDict::Machine {
 public:
  using Kind = Value::Kind;

  explicit Machine(PickledDict& dict) : dict_(dict), values_(dict.values_) {}

  uint32_t run() {
    for (;;) {
      const size_t at = at_;
      const auto op = static_cast<uint8_t>(take(1)[0]);
      if (op == '.') return pop();
      if (!scalar(op) && !container(op) && !remembered(op) && !object(op))
        bad("opcode ", static_cast<int>(op), " at byte ", at, ", which pictures and labels do not need");
    }
  }

 private:
  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail("pickle: ", printable(dict_.path_), ": expected a pickled dict of arrays and lists, got ", parts...);
  }

  std::string_view take(uint64_t count) {
    const std::string_view all(reinterpret_cast<const char*>(dict_.bytes_.data()), dict_.bytes_.size());
    if (count > all.size() - at_) bad("a file that ends at byte ", all.size());
    at_ += count;
    return all.substr(at_ - count, count);
  }
  /// `count` bytes, little-endian.
  uint64_t number(size_t count) {
    uint64_t value = 0;
    const std::string_view bytes = take(count);
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return value;
  }
  std::string_view line() {
    const size_t begin = at_;
    while (take(1)[0] != '\n') {
    }
    return {reinterpret_cast<const char*>(dict_.bytes_.data()) + begin, at_ - begin - 1};
  }

  void push(Value value) {
    if (values_.size() >= kMost) bad("more than ", kMost, " values");
    values_.push_back(std::move(value));
    stack_.push_back(static_cast<uint32_t>(values_.size() - 1));
  }
  uint32_t pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) bad("an opcode that finds nothing, at byte ", at_ - 1);
    const uint32_t value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::vector<uint32_t> pop_last(size_t count) {
    std::vector<uint32_t> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  std::vector<uint32_t> pop_marked() {
    if (marks_.empty()) bad("an opcode without a mark, at byte ", at_ - 1);
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<uint32_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  uint32_t top_number() {
    const uint32_t value = pop();
    stack_.push_back(value);
    return value;
  }
  /// The value below what was taken off, which must be of this kind.
  Value& top(Kind kind) {
    Value& value = values_[top_number()];
    if (value.kind != kind) bad(name(value.kind), " where ", name(kind), " should be, at byte ", at_ - 1);
    return value;
  }
  const Value& expect(uint32_t value, Kind kind) const {
    if (values_[value].kind != kind)
      bad(name(values_[value].kind), " where ", name(kind), " should be, at byte ", at_ - 1);
    return values_[value];
  }

  void integer(int64_t value) { push({.kind = Kind::integer, .integer = value}); }
  void text(uint64_t length) { push({.kind = Kind::text, .text = take(length)}); }

  bool scalar(uint8_t op) {
    switch (op) {
      case 0x80:  // PROTO
        take(1);
        return true;
      case 0x95:  // FRAME
        take(8);
        return true;
      case 'N':
        push({});
        return true;
      case 0x88:
      case 0x89:
        push({.kind = Kind::boolean, .integer = op == 0x88});
        return true;
      case 'K':
        integer(static_cast<int64_t>(number(1)));
        return true;
      case 'M':
        integer(static_cast<int64_t>(number(2)));
        return true;
      case 'J':
        integer(static_cast<int32_t>(number(4)));
        return true;
      case 'U':   // SHORT_BINSTRING
      case 'C':   // SHORT_BINBYTES
      case 0x8c:  // SHORT_BINUNICODE
        text(number(1));
        return true;
      case 'T':  // BINSTRING
      case 'X':  // BINUNICODE
      case 'B':  // BINBYTES
        text(number(4));
        return true;
      case 0x8d:  // BINUNICODE8
      case 0x8e:  // BINBYTES8
        text(number(8));
        return true;
      default:
        return false;
    }
  }

  void extend(Value& list, const std::vector<uint32_t>& items) {
    list.items.insert(list.items.end(), items.begin(), items.end());
  }

  bool container(uint8_t op) {
    switch (op) {
      case '(':
        if (marks_.size() >= kMost) bad("more than ", kMost, " open marks");
        marks_.push_back(stack_.size());
        return true;
      case ']':
        push({.kind = Kind::list});
        return true;
      case '}':
        push({.kind = Kind::dict});
        return true;
      case ')':
        push({.kind = Kind::tuple});
        return true;
      case 't':
        push({.kind = Kind::tuple, .items = pop_marked()});
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        push({.kind = Kind::tuple, .items = pop_last(op - 0x84u)});
        return true;
      case 'a': {
        const std::vector<uint32_t> items = pop_last(1);
        extend(top(Kind::list), items);
        return true;
      }
      case 'e': {
        const std::vector<uint32_t> items = pop_marked();
        extend(top(Kind::list), items);
        return true;
      }
      case 's': {
        const std::vector<uint32_t> items = pop_last(2);
        extend(top(Kind::dict), items);
        return true;
      }
      case 'u': {
        const std::vector<uint32_t> items = pop_marked();
        if (items.size() % 2 != 0) bad("a key without a value, at byte ", at_ - 1);
        extend(top(Kind::dict), items);
        return true;
      }
      default:
        return false;
    }
  }

  void remember(uint64_t key) {
    if (memo_.size() >= kMost) bad("more than ", kMost, " remembered values");
    memo_[key] = top_number();
  }
  void recall(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) bad("a value that was never remembered, at byte ", at_ - 1);
    stack_.push_back(found->second);
  }

  bool remembered(uint8_t op) {
    switch (op) {
      case 'q':
        remember(number(1));
        return true;
      case 'r':
        remember(number(4));
        return true;
      case 0x94:  // MEMOIZE
        remember(memo_.size());
        return true;
      case 'h':
        recall(number(1));
        return true;
      case 'j':
        recall(number(4));
        return true;
      default:
        return false;
    }
  }

  bool object(uint8_t op) {
    switch (op) {
      case 'c': {
        const std::string_view module = line(), called = line();
        name_callable(module, called);
        return true;
      }
      case 0x93: {  // STACK_GLOBAL
        const uint32_t called = pop(), module = pop();
        name_callable(expect(module, Kind::text).text, expect(called, Kind::text).text);
        return true;
      }
      case 'R': {
        const uint32_t arguments = pop(), function = pop();
        call(expect(function, Kind::callable).integer, expect(arguments, Kind::tuple).items);
        return true;
      }
      case 'b': {
        const uint32_t state = pop();
        Value& target = values_[top_number()];
        if (target.kind == Kind::array)
          build_array(target, expect(state, Kind::tuple).items);
        else
          static_cast<void>(top(Kind::dtype));  // its state says nothing of bytes
        return true;
      }
      default:
        return false;
    }
  }

  void name_callable(std::string_view module, std::string_view called) {
    const int64_t which = callable(module, called);
    if (which == kUnknown)
      bad(printable(str(module.substr(0, 100), '.', called.substr(0, 100))), ", which pictures and labels do not need");
    push({.kind = Kind::callable, .integer = which});
  }
  void call(int64_t which, const std::vector<uint32_t>& arguments) {
    if (which == kReconstruct) {
      push({.kind = Kind::array});
    } else if (which == kDtype && !arguments.empty()) {
      const std::string_view of = expect(arguments[0], Kind::text).text;
      push({.kind = Kind::dtype, .text = of});
    } else {
      bad("a call that makes no array, at byte ", at_ - 1);
    }
  }
  /// (1, sizes, dtype, whether columns come first, bytes)
  void build_array(Value& array, const std::vector<uint32_t>& state) {
    if (state.size() != 5) bad("an array of ", state.size(), " parts");
    const std::vector<uint32_t>& sizes = expect(state[1], Kind::tuple).items;
    const std::string_view type = expect(state[2], Kind::dtype).text, bytes = expect(state[4], Kind::text).text;
    if (type != "u1") bad("an array of ", printable(std::string(type.substr(0, 20))), " instead of u1");
    if (expect(state[3], Kind::boolean).integer != 0) bad("an array in Fortran's order");
    uint64_t count = 1;
    std::vector<uint32_t> kept;
    for (const uint32_t size : sizes) {
      const int64_t length = expect(size, Kind::integer).integer;
      if (length < 0 || length > UINT32_MAX || (length > 0 && count > bytes.size() / static_cast<uint64_t>(length)))
        bad("an array whose sizes and ", bytes.size(), " bytes do not fit");
      count *= static_cast<uint64_t>(length);
      kept.push_back(static_cast<uint32_t>(length));
    }
    if (count != bytes.size()) bad("an array of ", count, " bytes with ", bytes.size(), " of them");
    array.items = std::move(kept);
    array.text = bytes;
  }

  PickledDict& dict_;
  std::deque<Value>& values_;
  size_t at_ = 0;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
};

PickledDict::PickledDict(const std::filesystem::path& path) : path_(path.string()), bytes_(read_file(path)) {
  root_ = Machine(*this).run();
  WEFT_CHECK(values_[root_].kind == Value::Kind::dict, "pickle: ", printable(path_),
             ": expected a pickled dict of arrays and lists, got ", name(values_[root_].kind));
}

const char* PickledDict::name(Value::Kind kind) {
  constexpr const char* kNames[] = {"None",    "a truth value", "a number",   "a text",  "a list",
                                    "a tuple", "a dict",        "a function", "a dtype", "an array"};
  return kNames[static_cast<size_t>(kind)];
}

const PickledDict::Value& PickledDict::at(std::string_view key, Value::Kind kind) const {
  const std::vector<uint32_t>& items = values_[root_].items;
  for (size_t i = items.size(); i > 0; i -= 2) {  // the last one of a key counts
    const Value &found = values_[items[i - 2]], &value = values_[items[i - 1]];
    if (found.kind != Value::Kind::text || found.text != key) continue;
    WEFT_CHECK(value.kind == kind, "pickle: ", printable(path_), ": expected ", name(kind), " as '", key, "', got ",
               name(value.kind));
    return value;
  }
  fail("pickle: ", printable(path_), ": expected a key '", key, "', got none");
}

const std::vector<uint32_t>& PickledDict::list(std::string_view key, Value::Kind of) const {
  const std::vector<uint32_t>& items = at(key, Value::Kind::list).items;
  for (const uint32_t item : items)
    WEFT_CHECK(values_[item].kind == of, "pickle: ", printable(path_), ": expected a list of which each is ", name(of),
               " as '", key, "', got ", name(values_[item].kind), " in it");
  return items;
}

std::vector<int64_t> PickledDict::integers(std::string_view key) const {
  std::vector<int64_t> out;
  for (const uint32_t item : list(key, Value::Kind::integer)) out.push_back(values_[item].integer);
  return out;
}

std::vector<std::string> PickledDict::texts(std::string_view key) const {
  std::vector<std::string> out;
  for (const uint32_t item : list(key, Value::Kind::text)) out.emplace_back(values_[item].text);
  return out;
}

PickledDict::Rows PickledDict::rows(std::string_view key) const {
  const Value& array = at(key, Value::Kind::array);
  WEFT_CHECK(array.items.size() == 2, "pickle: ", printable(path_), ": expected an array of two dimensions as '", key,
             "', got ", array.items.size());
  return {array.items[0], array.items[1], reinterpret_cast<const uint8_t*>(array.text.data())};
}

}  // namespace weft::data
