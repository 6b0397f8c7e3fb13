// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <any>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/random.h"
#include "core/tensor.h"
#include "data/draw.h"

namespace weft::data {

/// One tensor of a batch: [samples, sizes …]. Sizes {}: a number of each sample.
struct Part {
  DType dtype = DType::f32;
  Shape sizes = {};
};

/// Where a worker writes one sample: its row of each part.
class Row {
 public:
  Row(const std::vector<Tensor>& parts, int64_t position) : parts_(parts), position_(position) {}
  /// The first of the row's elements.
  template <class T>
  T* part(size_t number) const {
    const Tensor& whole = parts_[number];
    const int64_t bytes = whole.view().strides[0] * static_cast<int64_t>(size_of(whole.dtype()));
    return reinterpret_cast<T*>(static_cast<std::byte*>(whole.raw_data()) + position_ * bytes);
  }
  /// Copies a field of a sample. Errors: another dtype or other sizes than the part has, another device than the CPU.
  void put(size_t number, const char* field, const Tensor& value) const;

 private:
  const std::vector<Tensor>& parts_;
  int64_t position_;
};

/// How samples become batches, for the loader's engine, which knows no type of a sample. Workers `write` each sample
/// into its row of `parts` if all samples have the same sizes. Else they `get` all samples and `collate` them, with
/// padding, say. Both functions are called by several threads at once.
struct Collation {
  std::vector<Part> parts = {};
  std::function<void(int64_t index, Draw& draw, const Row& row)> write = {};

  std::function<std::any(int64_t index, Draw& draw)> get = {};
  /// Host tensors of a batch, from samples that it may empty.
  std::function<std::vector<Tensor>(std::vector<std::any>& samples)> collate = {};

  /// The last work on the device, enqueued on the current stream of the thread that calls next(): from the tensors that
  /// were copied to the batch's. Absent: the copied tensors are the batch.
  std::function<std::vector<Tensor>(std::vector<Tensor> arrived)> on_device = {};

  int64_t size = -1;  ///< samples of the set, which a sampler must have, too; -1: not known
  /// Of the batch's tensors, by which the fields of a batch find them; absent: those are in the batch's order.
  std::vector<std::string> names = {};
  /// Where the value at `place` of a sample's row of tensor `number` comes from: `1979.h5, time 3, channel 0`.
  std::function<std::string(int64_t index, size_t number, const Shape& place)> origin = {};

  bool whole_batch = false;                       ///< a batch size above the number of samples is an error
  const char* unit = "samples";                   ///< in error texts
  std::string description = {};                   ///< names the set in error texts
  const char* assemble_scope = "assemble batch";  ///< names in profiles: literals
  const char* upload_scope = "upload batch";
};

/// Sample `index`. A set whose samples are random or augmented takes the draw of (seed, epoch, index), too.
template <class Set>
auto sample_of(const Set& set, int64_t index, [[maybe_unused]] Draw& draw) {
  if constexpr (requires { set.get(index, draw); })
    return set.get(index, draw);
  else if constexpr (requires { set.get(index); })
    return set.get(index);
  else
    static_assert(sizeof(Set) == 0,
                  "a set has `Sample get(int64_t index) const`, or `Sample get(int64_t index, data::Draw& draw) const` "
                  "where samples are random; const, because several threads call it");
}

template <class Set>
using SampleOf = decltype(sample_of(std::declval<const Set&>(), 0, std::declval<Draw&>()));

/// The set's size and its description in error texts. Errors: no set, or one without a sample.
template <class Set>
Collation of_set(const std::shared_ptr<Set>& set) {
  static_assert(
      requires(const Set& some) { static_cast<int64_t>(some.size()); },
      "a set has `int64_t size() const`: its number of samples");
  WEFT_CHECK(set, "loader: expected a set, got a null pointer");
  Collation collation;
  collation.size = static_cast<int64_t>(set->size());
  if constexpr (requires { set->describe(); }) collation.description = set->describe();
  WEFT_CHECK(collation.size > 0, "loader: expected a set of at least one sample, got ", collation.size,
             collation.description.empty() ? "" : ": ", collation.description);
  return collation;
}

template <class Field>
concept Number = std::is_same_v<Field, bool> || std::is_same_v<Field, uint8_t> || std::is_same_v<Field, int32_t> ||
    std::is_same_v<Field, int64_t> || std::is_same_v<Field, float> || std::is_same_v<Field, double>;

/// Calls visit(name, field) for each field of a sample: fields named by its fields(), a tuple's elements, or itself.
template <class Sample, class Visit>
void each_field(Sample& sample, Visit&& visit) {
  const auto checked = [&]<class Field>(const char* name, Field& field) {
    using Plain = std::remove_const_t<Field>;
    static_assert(
        Number<Plain> || std::is_same_v<Plain, Tensor>,
        "a field of a sample is a Tensor, or a float, double, int32_t, int64_t, uint8_t or bool. A struct names "
        "its fields by `void fields(auto& v) { v(\"x\", x), v(\"y\", y); }`, a vector becomes one by "
        "Tensor::from(…); samples of any other type take a collate function");
    visit(name, field);
  };
  if constexpr (requires { sample.fields(checked); })
    sample.fields(checked);
  else if constexpr (requires { std::tuple_size<Sample>::value; })
    std::apply([&](auto&... fields) { (checked("field", fields), ...); }, sample);
  else
    checked("sample", sample);
}

/// Seeds this thread's generators, which are its own (ThreadGenerators), for one sample: what get() draws by normal(),
/// uniform() and the like is a function of these three. `seed`: see sample_seed().
void seed_sample(uint64_t seed, int64_t epoch, int64_t index);
/// Combines a loader's seed with that of manual_seed().
uint64_t sample_seed(uint64_t loader, uint64_t manual);

/// Stacks the samples of anything with `size()` and `get(index)` or `get(index, draw)`. A sample is a number, a Tensor
/// on the CPU, a tuple of those, or a struct that names its fields as a Module does:
///   struct Reading {
///     Tensor trace;
///     int64_t kind;
///     void fields(auto& v) { v("trace", trace), v("kind", kind); }
///   };
/// The first sample sets dtypes and sizes, the others are held to them.
template <class Set>
Collation stacking(std::shared_ptr<Set> set) {
  Collation collation = of_set(set);
  Draw draw = Draw::of_sample(0, 0, 0);
  const ThreadGenerators own;  // the first sample, which only says sizes, draws no number of the caller's
  SampleOf<Set> first = sample_of(*set, 0, draw);
  each_field(first, [&]<class Field>(const char* name, Field& field) {
    collation.names.emplace_back(name);
    if constexpr (std::is_same_v<std::remove_const_t<Field>, Tensor>) {
      WEFT_CHECK(field.defined(), "loader: expected a Tensor '", name, "' in sample 0, got an undefined one");
      collation.parts.push_back({field.dtype(), field.sizes()});
    } else {
      collation.parts.push_back({dtype_of<std::remove_const_t<Field>>, {}});
    }
  });
  collation.write = [set](int64_t index, Draw& its, const Row& row) {
    SampleOf<Set> sample = sample_of(*set, index, its);
    size_t number = 0;
    each_field(sample, [&]<class Field>(const char* name, Field& field) {
      if constexpr (std::is_same_v<std::remove_const_t<Field>, Tensor>)
        row.put(number++, name, field);
      else
        *row.part<std::remove_const_t<Field>>(number++) = field;
    });
  };
  return collation;
}

/// Collates the samples of such a set, which may be of any type, as by padding them.
template <class Set>
Collation collating(std::shared_ptr<Set> set, std::function<std::vector<Tensor>(std::vector<SampleOf<Set>>)> collate) {
  Collation collation = of_set(set);
  collation.get = [set](int64_t index, Draw& draw) { return std::any(sample_of(*set, index, draw)); };
  collation.collate = [collate = std::move(collate)](std::vector<std::any>& samples) {
    std::vector<SampleOf<Set>> all;
    for (std::any& sample : samples) all.push_back(std::any_cast<SampleOf<Set>&&>(std::move(sample)));
    return collate(std::move(all));
  };
  return collation;
}

/// Rows of tensors, [rows, …] each, that are on their device already: only the rows' numbers travel. Errors: no tensor,
/// other numbers of rows.
Collation rows_of(std::vector<Tensor> tensors);

}  // namespace weft::data
