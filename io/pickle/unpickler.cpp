// SPDX-License-Identifier: Apache-2.0
#include "io/pickle/unpickler.h"

#include <bit>
#include <cstring>
#include <unordered_map>

#include "io/pickle/pickle_opcodes.h"
#include "kernels/error.h"

namespace weft {
namespace {

constexpr size_t kLongestName = 256;  // of a module or class
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
    if (object == nullptr)
      bad("the file names '", module, ".", name, "', which ", vocabulary_.holds, " do not need; nothing of it was run",
          vocabulary_.advice);
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
    // Copied from an argument, which many calls could share.
    copied_ += dict != nullptr ? dict->items.size() : items != nullptr ? items->items.size() : 0;
    copied_bytes_ += text != nullptr ? text->size() : 0;
    if (copied_ > pickle_.opcodes || copied_bytes_ > bytes_.position())
      bad("expected about as many values as the file describes, got far more by repetition");
    charge(value.as<PickleObject>() != nullptr ? 4 : 0);  // a tensor's description
    push(std::move(value.is));
  }

  /// Attributes of dicts are left out: `_metadata` of PyTorch's OrderedDicts, those of parameters in old files.
  void build() {
    const PickleRef state = pop(), target = top();
    if (auto* object = std::get_if<std::unique_ptr<PickleObject>>(&target->is))
      (*object)->build(*state, bad_);
    else if (target->as<PickleDict>() == nullptr)
      bad("expected a dict to give attributes to, got ", target->kind());
  }

  void persistent() {
    if (!vocabulary_.load_persistent) refuse();
    const PickleRef id = pop();
    PickleValue value;
    vocabulary_.load_persistent(*id, value, bad_);
    push(std::move(value.is));
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
  const auto bytes = [&](int length_bytes) {
    if (!vocabulary_.has_bytes) refuse();
    text(length_bytes);
  };
  switch (op) {
    case PickleOp::proto: {
      const uint64_t version = number(1);
      if (version < 2 || version > 5) bad("expected pickle protocol 2 to 5, got ", version);
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
      return text(4);
    case PickleOp::short_bin_unicode:
    case PickleOp::short_bin_string:
      return text(1);
    case PickleOp::bin_unicode8:
      return text(8);
    case PickleOp::bin_bytes:
      return bytes(4);
    case PickleOp::short_bin_bytes:
      return bytes(1);
    case PickleOp::bin_bytes8:
      return bytes(8);
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
      return push(PickleList{{}, false, offset_});
    case PickleOp::append: {
      const PickleRef item = pop();
      top_list().items.push_back(item);
      return;
    }
    case PickleOp::appends: {
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
