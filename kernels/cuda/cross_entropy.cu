// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/cross_entropy.h"

#include <numeric>

#include "kernels/contracts/matmul.h"
#include "kernels/cuda/row.cuh"
#include "kernels/cuda/wrong_index.cuh"

// Grid, block, ownership: row.cuh. Forward reads the logits once for the log of the sum of exponentials; smoothing and
// probability targets read them again for the mean distance from that value. Backward recomputes the probabilities,
// which are never stored. Bytes per element of size e: forward e (2e with probability targets), backward 2e (3e); one
// exponential each way. Rows of a pitch of whole vectors are read in vectors, also where they end within one; backward
// may write over the logits, since each thread loads a unit before its store. 85% of the bandwidth for rows of 128
// bytes and more; few rows (a batch of 128 with 10 classes) are bound by latency.

namespace weft::kernels::cuda {

namespace {

/// Either classes or probabilities are given.
template <class T>
struct Target {
  const int64_t* classes;
  const T* probabilities;
  Accumulate<T> smoothing;
  int64_t ignore_index;
  bool is_part;
};

template <int kGroup, int V, int kUnits, class T>
__global__ void cross_entropy_forward_kernel(Accumulate<T>* loss, Accumulate<T>* lse_out, Accumulate<T>* weight,
                                             const T* logits, const Target<T> target, int64_t rows, int64_t C,
                                             int64_t pitch, const WrongIndexReport report) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  const bool valid = G::row() < rows;
  const int64_t row = valid ? G::row() : rows - 1;
  const T* z = logits + row * pitch;
  const Row<kGroup, V, kUnits, T, kUnits == 0> in(z, C);
  const RowExponentials<A> e = row_exponentials(in, C);
  const A log_sum = log(e.sum);
  const auto distance = [&](T logit) { return log_sum - (from<A>(logit) - e.maximum); };

  // Sums of -t ln p over the classes: with the given target t, and with t = 1 for every class.
  A with_target = 0, with_ones = 0;
  bool counts = true;
  if (target.probabilities != nullptr) {
    for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
      const Vec<T, V> unit = in.at(k, c), t = Vec<T, V>::load(target.probabilities + row * C + c);
      for (int i = 0; i < V; ++i) {
        const A weight_of_class = from<A>(t[i]);
        if (weight_of_class != A(0)) with_target += weight_of_class * distance(unit[i]);
      }
    });
    with_target = G::sum(with_target);
  } else {
    const int64_t label = target.classes[row];
    counts = label != target.ignore_index;
    const bool known = label >= 0 && label < C;
    if (counts) with_target = known ? distance(z[label]) : A(NAN);
    if (counts && !known && valid && G::lane() == 0) report(label, row);
  }
  if (target.smoothing > A(0)) {
    for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
      const Vec<T, V> unit = in.at(k, c);
      for (int i = 0; i < V; ++i)
        if (kUnits > 0 || c + i < C) with_ones += distance(unit[i]);
    });
    with_ones = G::sum(with_ones) * (target.smoothing / static_cast<A>(C));
  }
  if (valid && G::lane() == 0) {
    loss[row] = counts ? (A(1) - target.smoothing) * with_target + with_ones : A(0);
    lse_out[row] = e.maximum;
    lse_out[rows + row] = log_sum;
    if (weight != nullptr) weight[row] = counts ? A(1) : A(0);
  }
}

template <int kGroup, int V, int kUnits, class T>
__global__ void cross_entropy_backward_kernel(T* dlogits, const Accumulate<T>* dloss, int64_t dloss_stride,
                                              const T* logits, const Accumulate<T>* lse_in, const Target<T> target,
                                              int64_t rows, int64_t C, int64_t pitch) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  const bool valid = G::row() < rows;
  const int64_t row = valid ? G::row() : rows - 1;
  const A kept = A(1) - target.smoothing, spread = target.smoothing / static_cast<A>(C);
  A scale = dloss[row * dloss_stride], total = 1;
  const A maximum = lse_in[row], log_sum = lse_in[rows + row];
  int64_t label = -1;
  if (target.probabilities != nullptr) {
    A sum = 0;
    for_units<kGroup, V, kUnits>(C, [&](int, int64_t c) {
      const Vec<T, V> t = Vec<T, V>::load(target.probabilities + row * C + c);
      for (int i = 0; i < V; ++i) sum += from<A>(t[i]);
    });
    total = kept * G::sum(sum) + target.smoothing;
  } else {
    label = target.classes[row];
    if (label == target.ignore_index)
      scale = A(0), total = A(0);
    else if ((label < 0 || label >= C) && !target.is_part)
      scale = A(NAN);
  }
  const bool ignored = target.probabilities == nullptr && label == target.ignore_index;
  if (!valid) return;  // uniform over a warp, and after the last exchange
  const Row<kGroup, V, kUnits, T, kUnits == 0> in(logits + row * pitch, C);
  for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
    const Vec<T, V> unit = in.at(k, c);
    Vec<T, V> t, out;
    if (target.probabilities != nullptr) t = Vec<T, V>::load(target.probabilities + row * C + c);
    for (int i = 0; i < V; ++i) {
      const A aim = target.probabilities != nullptr ? from<A>(t[i]) : (c + i == label ? A(1) : A(0));
      const A p = exp((from<A>(unit[i]) - maximum) - log_sum);
      out[i] = to<T>(ignored ? A(0) : scale * (p * total - (kept * aim + spread)));
    }
    T* const to_unit = dlogits + row * pitch + c;
    if (kUnits > 0 || c + V <= C) {
      out.store(to_unit);
    } else {
      for (int i = 0; i < V; ++i)
        if (c + i < C) to_unit[i] = out[i];
    }
  });
}

template <class T>
Target<T> target_of(const char* name, const View& target, const View& logits, const CrossEntropyArguments& arguments) {
  WEFT_CHECK(has_rows(logits), name, ": expected logits [N, C] with dense rows, got ", logits, " of strides ",
             logits.strides[0], ", ", logits.strides[1]);
  WEFT_CHECK(
      target.is_contiguous() && target.sizes[0] == logits.sizes[0] &&
          (target.rank == 1 ? target.dtype == DType::i64 : target.same_sizes(logits) && target.dtype == logits.dtype),
      name, ": expected classes i64[", logits.sizes[0], "] or probabilities like ", logits, ", got ", target);
  Target<T> t{nullptr, nullptr, static_cast<Accumulate<T>>(arguments.label_smoothing), arguments.ignore_index,
              arguments.is_part};
  if (target.rank == 1)
    t.classes = static_cast<const int64_t*>(target.data);
  else
    t.probabilities = static_cast<const T*>(target.data);
  return t;
}

/// The pitch for with_row_shape(): probabilities are read in the units of the logits, at a pitch of C.
template <class T>
int64_t unit_pitch(const Target<T>& target, int64_t pitch, int64_t C) {
  return target.probabilities != nullptr ? std::gcd(pitch, C) : pitch;
}

}  // namespace

void cross_entropy_forward(const Queue& queue, const View& loss, const View& lse, const View& weight,
                           const View& logits, const View& target, CrossEntropyArguments arguments) {
  with_dtype<float, bf16, f16, double>(logits.dtype, "cross_entropy_forward", [&]<class T>() {
    using A = Accumulate<T>;
    const Target<T> t = target_of<T>("cross_entropy_forward", target, logits, arguments);
    const int64_t rows = logits.sizes[0], C = logits.sizes[1];
    if (rows == 0 || C == 0) return;
    const int64_t pitch = row_pitch(logits);
    const WrongIndexReport report{wrong_index_record(queue.device),
                                  {.text = WrongIndex::Text::class_of_logits,
                                   .op = "cross_entropy",
                                   .dtype = logits.dtype,
                                   .limit = C,
                                   .rows = rows}};
    with_row_shape<T>(
        C, {logits.data, t.probabilities},
        [&]<int kGroup, int V, int kUnits>() {
          using G = RowGroup<kGroup>;
          launch(queue, "cross_entropy_forward", G::grid(rows), dim3(G::kThreads), 0,
                 &cross_entropy_forward_kernel<kGroup, V, kUnits, T>, loss.as<A>(), lse.as<A>(),
                 weight ? weight.as<A>() : nullptr, static_cast<const T*>(logits.data), t, rows, C, pitch, report);
        },
        unit_pitch(t, pitch, C));
  });
}

void cross_entropy_backward(const Queue& queue, const View& dlogits, const View& dloss, const View& logits,
                            const View& lse, const View& target, CrossEntropyArguments arguments) {
  with_dtype<float, bf16, f16, double>(logits.dtype, "cross_entropy_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const Target<T> t = target_of<T>("cross_entropy_backward", target, logits, arguments);
    const int64_t rows = logits.sizes[0], C = logits.sizes[1];
    if (rows == 0 || C == 0) return;
    WEFT_CHECK(is_laid_out_as(dlogits, logits), "cross_entropy_backward: expected a gradient laid out as ", logits,
               ", got ", dlogits, " of row strides ", logits.strides[0], " and ", dlogits.strides[0]);
    const int64_t pitch = row_pitch(logits);
    with_row_shape<T>(
        C, {dlogits.data, logits.data, t.probabilities},
        [&]<int kGroup, int V, int kUnits>() {
          using G = RowGroup<kGroup>;
          launch(queue, "cross_entropy_backward", G::grid(rows), dim3(G::kThreads), 0,
                 &cross_entropy_backward_kernel<kGroup, V, kUnits, T>, dlogits.as<T>(),
                 static_cast<const A*>(dloss.as<A>()), dloss.strides[0], static_cast<const T*>(logits.data),
                 static_cast<const A*>(lse.as<A>()), t, rows, C, pitch);
        },
        unit_pitch(t, pitch, C));
  });
}

}  // namespace weft::kernels::cuda
