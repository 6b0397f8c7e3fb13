// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/runtime/queue.h"
#include "kernels/view.h"

namespace weft::kernels::ladder {

/// Sizes that a step takes. A step that needs multiples of its tile throws for others.
enum class Sizes : uint8_t { any, multiples };

/// One rung: a whole implementation of its ladder's formula, for the device cuda.
struct Step {
  const char* name;  ///< `matmul_f32/3_shared_tile`, as its file
  const char* idea;  ///< in a few words
  Sizes sizes;
  void (*run)(const Queue& queue, const View& y, std::span<const View> inputs);
  bool (*runs_on)(const Queue& queue) = nullptr;  ///< condition of steps that not every GPU runs

  bool available(const Queue& queue) const { return runs_on == nullptr || runs_on(queue); }
  int number() const;         ///< 3
  std::string title() const;  ///< `3_shared_tile`
};

/// One problem of a ladder.
struct Problem {
  DType dtype;
  std::vector<std::vector<int64_t>> inputs;
  std::vector<int64_t> output;
  double flop = 0;       ///< 0 where memory is the limit: then GB/s count
  double bytes() const;  ///< bytes of inputs and output: the least memory traffic
};

struct Ladder {
  const char* name;     ///< `matmul_f32`
  const char* formula;  ///< the formula that all its steps compute
  const char* letters;  ///< the names of its sizes: `M N K`
  const char* vendor;   ///< the library of the last step under Engine::vendor, or nullptr
  Problem (*problem)(std::span<const int64_t> sizes);
  std::vector<int64_t> timed;    ///< sizes for a GPU
  std::vector<int64_t> counted;  ///< sizes for the emulator: whole tiles of every step
};

/// All ladders, in the order in which they teach.
const std::vector<Ladder>& all();
/// Errors: an unknown name.
const Ladder& find(const std::string& name);
/// A ladder's steps, from the naive one to Weft's own.
std::vector<Step> steps(const Ladder& ladder);

/// How a step file announces itself: `const Rung<run> rung("transpose/1_naive", "one thread per element");`, where run
/// is `void run(const Queue&, const View& y, const View& x)` with as many inputs as the ladder has.
void add(const Step& step);

template <auto kRun>
struct Rung;
template <class... Inputs, void (*kRun)(const Queue&, const View&, Inputs...)>
struct Rung<kRun> {
  Rung(const char* name, const char* idea, Sizes sizes = Sizes::any, bool (*runs_on)(const Queue&) = nullptr) {
    add({name, idea, sizes,
         [](const Queue& queue, const View& y, std::span<const View> inputs) {
           WEFT_CHECK(inputs.size() == sizeof...(Inputs), "ladder: expected ", sizeof...(Inputs), " inputs, got ",
                      inputs.size());
           call(queue, y, inputs, std::index_sequence_for<Inputs...>());
         },
         runs_on});
  }

 private:
  template <size_t... kIndex>
  static void call(const Queue& queue, const View& y, std::span<const View> inputs, std::index_sequence<kIndex...>) {
    kRun(queue, y, inputs[kIndex]...);
  }
};

}  // namespace weft::kernels::ladder
