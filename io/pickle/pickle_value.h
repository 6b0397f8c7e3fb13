// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace weft {

/// Reads a file front to back through a small buffer: a stream of a few kilobytes at the start of a file of gigabytes
/// costs a few kilobytes.
class ByteStream {
 public:
  using Read = std::function<void(uint64_t offset, void* to, uint64_t bytes)>;
  using Fail = std::function<void(const std::string& text)>;  ///< must throw

  /// Bytes [begin, end) of `read`'s source.
  ByteStream(Read read, uint64_t begin, uint64_t end, Fail fail);
  /// Bytes in memory, which must outlive the stream.
  ByteStream(std::string_view bytes, Fail fail);

  uint64_t position() const { return buffer_start_ + next_; }
  uint64_t left() const { return end_ - position(); }

  /// Error of all: the stream ends too early; the message names `what`.
  uint8_t byte(const char* what);
  uint64_t number(int bytes, const char* what);  ///< little-endian, at most 8 bytes
  std::string take(uint64_t bytes, const char* what);
  std::string line(size_t longest, const char* what);  ///< up to the line break, without it

 private:
  void need(uint64_t bytes, const char* what) const;

  Read read_;
  Fail fail_;
  uint64_t end_, buffer_start_;
  std::string buffer_;
  size_t next_ = 0;
};

struct PickleValue;
using PickleRef = PickleValue*;  ///< owned by a Pickle's arena, so that cycles neither leak nor recurse

struct PickleNone {};
/// An integer beyond 64 bits: its bytes, little-endian two's complement.
struct PickleBigInteger {
  std::string bytes;
};
struct PickleList {
  std::vector<PickleRef> items;
  bool is_tuple = false;
  uint64_t begun_at = 0;  ///< the byte of EMPTY_LIST; 0: by another opcode, or by the first
};
struct PickleDict {
  using Item = std::pair<PickleRef, PickleRef>;
  std::vector<Item> items;
  uint64_t begun_at = 0;          ///< the byte of EMPTY_DICT; 0 as above
  bool takes_attributes = false;  ///< BUILD adds the attributes as items: of a namespace; else they are left out
};

/// A value that only some pickles hold, such as a tensor or an array. It may refer to values of its Pickle.
struct PickleObject {
  constexpr PickleObject() = default;
  constexpr virtual ~PickleObject() = default;
  virtual const char* kind() const = 0;  ///< `a tensor`: for errors
  /// BUILD: takes the object's state. Errors: through `fail`; most objects have no state.
  virtual void build(const PickleValue& state, const ByteStream::Fail& fail);
};

/// A callable, looked up in a table by its name; nothing is imported.
struct PickleFunction final : PickleObject {
  /// Sets `result` to the result of the call. Errors: through `fail`.
  using Call = void (*)(const PickleList& arguments, PickleValue& result, const ByteStream::Fail& fail);
  constexpr explicit PickleFunction(Call function) : call(function) {}
  const char* kind() const override { return "a function's name"; }

  Call call;
};

struct PickleValue {
  std::variant<PickleNone, bool, int64_t, double, std::string, PickleBigInteger, PickleList, PickleDict,
               std::unique_ptr<PickleObject>, const PickleObject*>
      is;  ///< an object of its own, or one of the vocabulary's names

  /// The value as a T, which may be a PickleObject of some kind, or null.
  template <class T>
  const T* as() const {
    if constexpr (std::is_base_of_v<PickleObject, T>) {
      if (const auto* own = std::get_if<std::unique_ptr<PickleObject>>(&is)) return dynamic_cast<const T*>(own->get());
      const auto* name = std::get_if<const PickleObject*>(&is);
      return name == nullptr ? nullptr : dynamic_cast<const T*>(*name);
    } else {
      return std::get_if<T>(&is);
    }
  }
  /// `a dict`, `a tensor`: for errors.
  const char* kind() const;
  /// The opcode that began a list or dict, and where: `EMPTY_LIST at byte 25`; for other values the kind.
  std::string begun() const;
};

/// The result of one pickle.
struct Pickle {
  std::deque<PickleValue> arena;
  PickleRef root = nullptr;
  uint64_t end = 0;      ///< the byte after STOP
  uint64_t opcodes = 0;  ///< executed
};

}  // namespace weft
