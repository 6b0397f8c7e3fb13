// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/flat_parameters.h"
#include "dist/group/process_group.h"

namespace weft::dist {

/// A range of the flat gradient that is reduced at once: the parameters first … last - 1 of the flat slices.
struct Bucket {
  size_t first = 0, last = 0;
  FlatRange range;   ///< in elements, padding included
  std::string name;  ///< `layer4.1.conv2.weight…fc.bias`
};

struct BucketOptions {
  int64_t first_bytes = 1 << 20;  ///< size of the bucket that fills first, small so that communication begins early
  int64_t bytes = 25 << 20;       ///< size of all other buckets
};

/// From MiB. Errors: values that are not above 0 and below 1e6; `who` begins the text.
BucketOptions bucket_options(double first_bucket_mb, double bucket_mb, const char* who);

/// Cuts the flat gradient at parameter boundaries, from its end backwards or in `order` (of all slices): that in which
/// backward makes gradients. The parameter that fills a bucket ends it, so a bucket may be larger by less than that
/// parameter; each run of neighbours among its parameters is a bucket. Before a parameter of the size of a bucket, the
/// size of a first one is enough. A parameter above the size (and above 1 MiB) would delay its neighbours: it is a
/// bucket alone. Pieces would cost a start each, since all have their gradients at once. Errors: sizes that are not
/// positive.
std::vector<Bucket> make_buckets(const FlatParameters& flat, const BucketOptions& options = {},
                                 std::vector<size_t> order = {});

/// A parameter that a backward pass gave no gradient: an error that names it, or a gradient of zero on this rank. If no
/// rank has a gradient, optimizers skip the parameter. The ranks agree on that once per pass, which waits for the
/// device.
enum class Unused : uint8_t { error, zero };

struct ReducerOptions {
  BucketOptions buckets = {};
  Unused unused = Unused::error;
  bool compress_bf16 = false;  ///< gradients travel as bf16
  bool wait_later = false;     ///< the end of backward does not wait: wait() does
  const char* who = "ddp";     ///< begins error texts
};

/// Turns the flat gradient of each rank into the weighted mean over all ranks while backward runs: a bucket's
/// all_reduce begins when the last of its gradients has come, buckets in the same order on all ranks; the end of
/// backward begins what is left and waits. Gradients are reduced where they lie; nothing is copied (but for bf16).
///
/// The first pass only counts how many gradients each parameter gets in a backward (several for a module in several
/// checkpoint() segments). It reduces all at the end; later passes begin early by that count.
/// At its end, once, all ranks cut the buckets again, in the order of arrival of rank 0's modules.
class Reducer : public std::enable_shared_from_this<Reducer> {
 public:
  /// The state at the beginning of a pass, the same on each rank.
  struct Start {
    Tensor weight;                    ///< factor of this rank's gradients, [1] of their dtype; undefined: 1
    std::vector<WorkPtr> works = {};  ///< to be waited for at the end of the pass
  };

  struct Callbacks {
    std::function<Start()> begin;  ///< called by the first gradient of each pass, but see begin_pass()
    std::function<void()> end;     ///< when all is reduced
  };

  /// Use make_reducer().
  Reducer(std::shared_ptr<FlatParameters> flat, ProcessGroupPtr group, const ReducerOptions& options,
          Callbacks callbacks);

  /// Off: backward leaves each rank its own gradients, which add up until the next pass that reduces.
  void enable(bool enabled) { enabled_ = enabled; }
  bool enabled() const { return enabled_; }
  /// From here to end_pass() all backwards are one pass, in which each parameter gets the gradients of `backwards` of
  /// them: of micro-batches. The first gradient may come long before the first bucket is full: Callbacks::begin is
  /// called then.
  void begin_pass(int64_t backwards) { open_pass(backwards); }
  void end_pass() { finish(); }
  /// Forgets a pass that ended with an exception.
  void abandon_pass();
  /// Waits for what the last pass has begun; gradients are reduced then. Once per pass, with wait_later only.
  void wait();
  /// Reduces gradients that earlier passes have left, outside of any backward.
  void reduce_kept();
  /// A backward without reduction has left gradients that the next reduction will take.
  bool keeps_gradients() const { return keeps_; }
  /// Cuts the buckets again after all ranks froze, thawed or added the same parameters. The next pass counts again.
  void take_in_changes();
  /// Multiplies all gradients on this rank by `factor` [1].
  void scale_gradients(const Tensor& factor);

  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  friend std::shared_ptr<Reducer> make_reducer(std::shared_ptr<FlatParameters>, ProcessGroupPtr, const ReducerOptions&,
                                               Callbacks);

  void arrived(size_t slice);
  void open_pass(int64_t backwards);
  void start_pass();
  void launch_full_buckets();
  void launch(size_t bucket);
  void finish();
  void check_unused() const;
  /// A parameter with a gradient on any rank has a gradient on all: optimizers must agree.
  void share_use();
  void share_order();
  void set_buckets(std::vector<Bucket> buckets);

  std::shared_ptr<FlatParameters> flat_;
  ProcessGroupPtr group_;
  std::string of_model_;  // in the names of collectives: several models of one group must not meet
  ReducerOptions options_;
  Callbacks callbacks_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // per slice
  std::vector<bool> trained_;      // per slice: a frozen one is not waited for
  Tensor gradient_;                // the flat one
  std::vector<Tensor> low_;        // per bucket: the gradients as they travel, when compressed
  std::vector<bool> listens_;      // per slice: it has a hook

  bool enabled_ = true;
  bool keeps_ = false;
  std::vector<int64_t> expected_;  // gradients per slice and backward; empty before the first pass

  // The pass under way.
  struct Begun {
    WorkPtr work;
    const Bucket* low = nullptr;  // has travelled as bf16
  };
  bool running_ = false, started_ = false;
  bool learns_ = false;  // its counts are expected of later passes
  int64_t backwards_ = 1;
  Tensor weight_;
  std::vector<int64_t> arrivals_;  // per slice
  std::vector<int64_t> came_;      // per slice: how many had come before its last gradient
  int64_t coming_ = 0;
  Tensor order_;                    // rank 0's came_, on its way after the first pass
  WorkPtr order_work_;              // the broadcast of order_
  std::vector<size_t> incomplete_;  // per bucket: slices that wait for a gradient
  size_t launched_ = 0;             // buckets
  std::vector<bool> sent_;          // per bucket: launched, and not all of it frozen
  std::vector<Begun> works_;
  Tensor used_;  // per slice: whether it has a gradient; with Unused::zero
  bool uses_all_ = false;
};

/// A reducer whose hooks hang on the parameters; they do nothing any more when it has gone.
std::shared_ptr<Reducer> make_reducer(std::shared_ptr<FlatParameters> flat, ProcessGroupPtr group,
                                      const ReducerOptions& options, Reducer::Callbacks callbacks);

}  // namespace weft::dist
