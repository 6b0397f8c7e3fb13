// SPDX-License-Identifier: Apache-2.0
#include "io/pickle/unpickler.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "io/pickle/pickle_opcodes.h"
#include "kernels/error.h"

namespace weft {
namespace {

constexpr size_t kLongestName = 256;  // limit of a module or class
constexpr uint64_t kPlaceBytes = sizeof(PickleValue) + 4 * sizeof(void*);

/// The machine: a stack of values, the positions of the marks, and the memo.
class Machine {
 public:
  Machine(ByteStream& bytes, const PickleVocabulary& vocabulary, const ByteStream::Fail& fail)
      : bytes_(bytes), vocabulary_(vocabulary), fail_(fail) {}

  Pickle run() {
    none_ = make(PickleNone{});
    true_ = make(true);
    false_ = make(false);
    while (true) {
      offset_ = bytes_.position();
      opcode_ = bytes_.byte("a pickle");
      if (++pickle_.opcodes > vocabulary_.most_opcodes)
        bad("expected at most ", vocabulary_.most_opcodes, " opcodes, got more");
      const auto op = static_cast<PickleOp>(opcode_);
      if (op == PickleOp::stop) break;
      step(op);
    }
    pickle_.root = pop();
    if (!stack_.empty() || !marks_.empty()) bad("expected one value at the end, got more");
    pickle_.end = bytes_.position();
    return std::move(pickle_);
  }

 private:
  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail_(str("pickle: ", pickle_opcode_name(opcode_), " at byte ", offset_, ": ", parts...));
    std::abort();  // not reached: fail_ throws
  }

  /// A value, a place on the stack, in the memo, in a list or dict: some 100 bytes, of a few in the file.
  void charge(uint64_t places) {
    if (vocabulary_.memory != nullptr) vocabulary_.memory->take(places * kPlaceBytes, "a pickle's values", bad_);
  }

  template <class Value>
  PickleRef make(Value&& value) {
    charge(1);
    pickle_.arena.push_back({std::forward<Value>(value)});
    return &pickle_.arena.back();
  }
  template <class Value>
  void push(Value&& value) {
    stack_.push_back(make(std::forward<Value>(value)));
  }

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }  // values below a mark cannot be popped
  PickleRef pop() {
    if (stack_.size() <= floor()) bad("expected a value on the stack, got none");
    const PickleRef top = stack_.back();
    stack_.pop_back();
    return top;
  }
  PickleRef top() {
    if (stack_.size() <= floor()) bad("expected a value on the stack, got none");
    return stack_.back();
  }
  std::vector<PickleRef> pop_to_mark() {
    if (marks_.empty()) bad("expected a MARK before, got none");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleRef> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }
  template <class Kind>
  Kind& top_as(const char* expected) {
    auto* value = std::get_if<Kind>(&top()->is);
    if (value == nullptr) bad("expected ", expected, ", got ", top()->kind());
    return *value;
  }
  PickleList& top_list() {
    auto& list = top_as<PickleList>("a list");
    if (list.is_tuple) bad("expected a list, got a tuple");
    return list;
  }
  std::string pop_name() {
    const PickleRef value = pop();
    const auto* text = value->as<std::string>();
    if (text == nullptr) bad("expected a string, got ", value->kind());
    if (text->size() > kLongestName) bad("expected a name of at most ", kLongestName, " bytes, got ", text->size());
    return *text;
  }

  void tuple_of(size_t count) {
    PickleList tuple{std::vector<PickleRef>(count), true};
    for (size_t i = count; i-- > 0;) tuple.items[i] = pop();
    push(std::move(tuple));
  }

  void set_items(PickleDict& dict, const std::vector<PickleRef>& items) {
    if (items.size() % 2 != 0) bad("expected keys with values, got ", items.size(), " of both");
    for (size_t i = 0; i < items.size(); i += 2) dict.items.emplace_back(items[i], items[i + 1]);
  }

  void long_integer(const std::string& digits) {
    if (digits.size() > 8) return push(PickleBigInteger{digits});
    uint64_t value = 0;
    std::memcpy(&value, digits.data(), digits.size());
    const bool negative = !digits.empty() && (digits.back() & 0x80) != 0;
    if (negative && digits.size() < 8) value |= ~uint64_t{0} << (8 * digits.size());
    push(static_cast<int64_t>(value));
  }

  void put(uint64_t index) {
    // Writers number values in order: no valid number exceeds the number of opcodes.
    if (index >= vocabulary_.most_opcodes)
      bad("expected a number below ", vocabulary_.most_opcodes, " for a value in the memo, got ", index);
    charge(1);
    memo_[index] = top();
  }
  void get(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) bad("expected a value in the memo under number ", index, ", got none");
    stack_.push_back(found->second);
  }

  void global(const std::string& module, const std::string& name) {
    const PickleObject* object = vocabulary_.find(module, name);
    if (object == nullptr) {
      const std::string full = module + "." + name;
      const std::string why = vocabulary_.refusal ? vocabulary_.refusal(full) : "";
      if (!why.empty()) bad(why);
      bad("the file names '", full, "', which ", vocabulary_.holds, " do not need; nothing of it was run",
          vocabulary_.advice);
    }
    push(object);
  }

  void reduce() {
    const PickleRef arguments = pop(), callable = pop();
    const auto* function = callable->as<PickleFunction>();
    const auto* list = arguments->as<PickleList>();
    if (function == nullptr) bad("expected a function to call, got ", callable->kind());
    if (list == nullptr || !list->is_tuple) bad("expected a tuple of arguments, got ", arguments->kind());
    PickleValue value;
    function->call(*list, value, bad_);
    const auto* dict = value.as<PickleDict>();
    const auto* items = value.as<PickleList>();
    const auto* text = value.as<std::string>();
    count_copies(dict != nullptr    ? dict->items.size()
                 : items != nullptr ? items->items.size()
                                    : 0,
                 text != nullptr ? text->size() : 0);
    charge(value.as<PickleObject>() != nullptr ? 4 : 0);  // a tensor's description
    push(std::move(value.is));
  }

  /// Attributes of most dicts are left out: `_metadata` of PyTorch's OrderedDicts, those of parameters in old files.
  void build() {
    const PickleRef state = pop(), target = top();
    if (auto* object = std::get_if<std::unique_ptr<PickleObject>>(&target->is)) return (*object)->build(*state, bad_);
    auto* dict = std::get_if<PickleDict>(&target->is);
    if (dict == nullptr) bad("expected a dict to give attributes to, got ", target->kind());
    const auto* attributes = state->as<PickleDict>();
    if (!dict->takes_attributes || attributes == nullptr) return;
    count_copies(attributes->items.size(), 0);
    const auto items = attributes->items;  // a namespace may be its own state
    dict->items.insert(dict->items.end(), items.begin(), items.end());
  }

  /// Counts values copied into others, which many opcodes could share.
  void count_copies(uint64_t items, uint64_t text_bytes) {
    copied_ += items;
    copied_bytes_ += text_bytes;
    if (copied_ > pickle_.opcodes || copied_bytes_ > bytes_.position())
      bad("expected about as many values as the file describes, got far more by repetition");
    charge(items / 4);
  }

  void persistent() {
    if (!vocabulary_.load_persistent) refuse();
    const PickleRef id = pop();
    PickleValue value;
    vocabulary_.load_persistent(*id, value, bad_);
    push(std::move(value.is));
  }

  /// The argument of an opcode of protocol 0.
  std::string line(const char* what) { return bytes_.line(bytes_.left(), what); }

  template <class Number>
  Number number_of(std::string_view text, const char* expected) const {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      bad("expected ", expected, ", got '", text.substr(0, kLongestName), "'");
    return value;
  }

  /// `12`, or a bool as `00` and `01`.
  void integer_line() {
    const std::string text = line("a number");
    if (text == "00" || text == "01")
      stack_.push_back(text == "01" ? true_ : false_);
    else
      push(number_of<int64_t>(text, "a whole number of 64 bits"));
  }

  void long_line() {
    std::string text = line("a number");
    if (text.ends_with('L')) text.pop_back();
    push(number_of<int64_t>(text, "a whole number of 64 bits"));
  }

  /// Python 2's repr() of a string: between quotes, with escapes.
  std::string string_line() {
    const std::string quoted = line("text");
    const size_t size = quoted.size();
    if (size < 2 || (quoted[0] != '\'' && quoted[0] != '"') || quoted.back() != quoted[0])
      bad("expected text between quotes, got '", quoted.substr(0, kLongestName), "'");
    std::string result;
    for (size_t i = 1; i + 1 < size; ++i) {
      if (quoted[i] != '\\') {
        result += quoted[i];
        continue;
      }
      constexpr std::string_view letters = "\\'\"abfnrtv", meanings = "\\'\"\a\b\f\n\r\t\v";
      const size_t letter = letters.find(quoted[++i]);
      if (letter != std::string_view::npos)
        result += meanings[letter];
      else if (quoted[i] == 'x')
        result += static_cast<char>(hexadecimal(quoted, i, 2));
      else
        bad("expected an escape such as \\x0a, got '", quoted.substr(i - 1, 4), "'");
    }
    return result;
  }

  /// The number of `digits` hexadecimal digits after `at`, which moves to the last of them.
  uint32_t hexadecimal(const std::string& text, size_t& at, size_t digits) const {
    uint32_t value = 0;
    const char *first = text.data() + at + 1, *last = first + std::min(digits, text.size() - at - 1);
    const auto [end, error] = std::from_chars(first, last, value, 16);
    if (error != std::errc() || end != first + digits)
      bad("expected ", digits, " hexadecimal digits, got '", std::string(first, last), "'");
    at += digits;
    return value;
  }

  /// Python's raw-unicode-escape: characters below U+0100 as one byte, others as \uXXXX or \UXXXXXXXX.
  std::string unicode_line() {
    const std::string escaped = line("text");
    std::string result;
    for (size_t i = 0; i < escaped.size(); ++i) {
      uint32_t character = static_cast<unsigned char>(escaped[i]);
      const char next = i + 1 < escaped.size() ? escaped[i + 1] : '\0';
      if (character == '\\' && (next == 'u' || next == 'U')) character = hexadecimal(escaped, ++i, next == 'u' ? 4 : 8);
      if (character > 0x10FFFF) bad("expected characters up to U+10FFFF");
      append_utf8(result, character);
    }
    return result;
  }

  static void append_utf8(std::string& text, uint32_t character) {
    if (character < 0x80) {
      text += static_cast<char>(character);
      return;
    }
    const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    text += static_cast<char>((0xFF00 >> (more + 1) & 0xFF) | (character >> (6 * more)));
    for (int i = more; i-- > 0;) text += static_cast<char>(0x80 | (character >> (6 * i) & 0x3F));
  }

  PickleDict dict_to_mark() {
    PickleDict dict;
    set_items(dict, pop_to_mark());
    return dict;
  }

  [[noreturn]] void refuse() const { bad(vocabulary_.holds, " do not need this opcode, and it is not run"); }

  double big_endian_float() { return std::bit_cast<double>(__builtin_bswap64(bytes_.number(8, "a number"))); }

  void step(PickleOp op);

  ByteStream& bytes_;
  const PickleVocabulary& vocabulary_;
  const ByteStream::Fail& fail_;
  const ByteStream::Fail bad_ = [this](const std::string& text) { bad(text); };
  Pickle pickle_;
  std::vector<PickleRef> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleRef> memo_;
  PickleRef none_ = nullptr, true_ = nullptr, false_ = nullptr;
  uint64_t offset_ = 0, copied_ = 0, copied_bytes_ = 0;
  uint8_t opcode_ = 0;
};

void Machine::step(PickleOp op) {
  const auto number = [&](int bytes) { return bytes_.number(bytes, "a pickle"); };
  const auto text = [&](int length_bytes) { push(bytes_.take(number(length_bytes), "text")); };
  switch (op) {
    case PickleOp::proto: {
      const uint64_t version = number(1);
      if (version > 5) bad("expected pickle protocol 0 to 5, got ", version);
      return;
    }
    case PickleOp::frame:
      static_cast<void>(number(8));
      return;
    case PickleOp::mark:
      marks_.push_back(stack_.size());
      return;
    case PickleOp::none:
      stack_.push_back(none_);
      return;
    case PickleOp::new_true:
      stack_.push_back(true_);
      return;
    case PickleOp::new_false:
      stack_.push_back(false_);
      return;
    case PickleOp::bin_int:
      return push(int64_t{static_cast<int32_t>(number(4))});
    case PickleOp::bin_int1:
      return push(static_cast<int64_t>(number(1)));
    case PickleOp::bin_int2:
      return push(static_cast<int64_t>(number(2)));
    case PickleOp::long1:
      return long_integer(bytes_.take(number(1), "a number"));
    case PickleOp::bin_float:
      return push(big_endian_float());
    case PickleOp::bin_unicode:
    case PickleOp::bin_string:
    case PickleOp::bin_bytes:
      return text(4);
    case PickleOp::short_bin_unicode:
    case PickleOp::short_bin_string:
    case PickleOp::short_bin_bytes:
      return text(1);
    case PickleOp::bin_unicode8:
    case PickleOp::bin_bytes8:
    case PickleOp::bytearray8:
      return text(8);
    case PickleOp::integer_line:
      return integer_line();
    case PickleOp::long_line:
      return long_line();
    case PickleOp::float_line:
      return push(number_of<double>(line("a number"), "a number"));
    case PickleOp::string_line:
      return push(string_line());
    case PickleOp::unicode_line:
      return push(unicode_line());
    case PickleOp::list:
    case PickleOp::frozen_set:
      return push(PickleList{pop_to_mark()});
    case PickleOp::dict:
      return push(dict_to_mark());
    case PickleOp::put_line:
      return put(number_of<uint64_t>(line("a number"), "a number of the memo"));
    case PickleOp::get_line:
      return get(number_of<uint64_t>(line("a number"), "a number of the memo"));
    case PickleOp::empty_tuple:
      return push(PickleList{{}, true});
    case PickleOp::tuple:
      return push(PickleList{pop_to_mark(), true});
    case PickleOp::tuple1:
      return tuple_of(1);
    case PickleOp::tuple2:
      return tuple_of(2);
    case PickleOp::tuple3:
      return tuple_of(3);
    case PickleOp::empty_list:
    case PickleOp::empty_set:  // in the file's order
      return push(PickleList{{}, false, offset_});
    case PickleOp::append: {
      const PickleRef item = pop();
      top_list().items.push_back(item);
      return;
    }
    case PickleOp::appends:
    case PickleOp::add_items: {
      const auto items = pop_to_mark();
      charge(items.size() / 4);
      auto& list = top_list().items;
      list.insert(list.end(), items.begin(), items.end());
      return;
    }
    case PickleOp::empty_dict:
      return push(PickleDict{{}, offset_});
    case PickleOp::set_item: {
      const PickleRef value = pop(), key = pop();
      return set_items(top_as<PickleDict>("a dict"), {key, value});
    }
    case PickleOp::set_items: {
      const auto items = pop_to_mark();
      return set_items(top_as<PickleDict>("a dict"), items);
    }
    case PickleOp::bin_put:
      return put(number(1));
    case PickleOp::long_bin_put:
      return put(number(4));
    case PickleOp::memoize:
      return put(memo_.size());
    case PickleOp::bin_get:
      return get(number(1));
    case PickleOp::long_bin_get:
      return get(number(4));
    case PickleOp::global: {
      const std::string module = bytes_.line(kLongestName, "a module's name");
      return global(module, bytes_.line(kLongestName, "a class name"));
    }
    case PickleOp::stack_global: {
      const std::string name = pop_name();
      return global(pop_name(), name);
    }
    case PickleOp::reduce:
    case PickleOp::new_object:  // of a class, with the arguments of its __new__()
      return reduce();
    case PickleOp::build:
      return build();
    case PickleOp::bin_persid:
      return persistent();
    case PickleOp::stop:
      return;
  }
  refuse();
}

}  // namespace

Pickle unpickle(ByteStream& bytes, const PickleVocabulary& vocabulary, const ByteStream::Fail& fail) {
  return Machine(bytes, vocabulary, fail).run();
}

}  // namespace weft
