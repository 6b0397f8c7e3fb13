// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <utility>

#include "core/state_dict.h"
#include "nn/visitor.h"

namespace weft::nn {

struct LoadOptions {
  bool strict = true;  ///< missing and unexpected names are errors; else they are only reported
};

/// Names that load_state_dict() did not use.
struct LoadReport {
  std::vector<std::string> missing;     ///< names of the model that the file lacks
  std::vector<std::string> unexpected;  ///< names of the file that the model lacks
};

/// The values that a module's hooks see.
enum class Watch : uint8_t {
  tensors,  ///< x and y, too: where a kernel that spans two modules never makes one of them, two kernels run
  calls,    ///< that the forward begins and ends: x or y is undefined where such a kernel never makes it
};

/// A part of a model: tensors, children and a forward. Members are the registration; fields() names them:
///   struct Linear : Module {
///     Tensor weight, bias;
///     void fields(Visitor& v) override { v("weight", weight); v("bias", bias); }
///   };
/// A parameter that fields() names requires a gradient, unless requires_grad_(false) froze it. A child that fields()
/// omits is an error of the optimizer's second step; an omitted plain tensor is a constant.
/// Copying is not possible (it would share the weights); models live in std::shared_ptr.
class Module {
 public:
  using Before = std::function<void(const Module&, const Tensor& x)>;
  using After = std::function<Tensor(const Module&, const Tensor& x, const Tensor& y)>;

  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Names every parameter, buffer and child, in the order of the state dict.
  virtual void fields(Visitor&) {}
  /// y = f(x). Errors: a module that takes something else than one tensor does not override this.
  virtual Tensor forward(const Tensor& x) const;
  /// The type in summary(): `Conv2d`.
  virtual std::string kind() const;
  /// Multiplications and additions of one forward, 2 per multiply-add; without children's.
  virtual int64_t flops(const Shape&, const Shape&) const { return 0; }

  /// forward() between the hooks. Parents call their children this way.
  Tensor operator()(const Tensor& x) const;
  /// `before` runs before each forward of this module, `after` after each, and may return a replacement for y, or an
  /// undefined tensor. Either may be empty. Sharding, summaries and debuggers use them. Returns a number for
  /// remove_hooks().
  int register_hooks(Before before, After after, Watch watch = Watch::tensors);
  void remove_hooks(int number);
  /// Whether a hook of Watch::tensors is registered.
  bool watches_tensors() const;
  /// `function()` between the hooks, as operator() does: for another form of forward, or a kernel that spans this
  /// module and another.
  Tensor with_hooks(const Tensor& x, const std::function<Tensor()>& function) const;

  /// Parameters and buffers move to the device / floating ones become `dtype`; the Tensor objects stay the same.
  void to(Device device);
  void to(DType dtype);
  Device device();

  /// Each once, under its first name, where several names share a tensor (tied weights, a child with two names).
  std::vector<NamedTensor> parameters();
  std::vector<NamedTensor> buffers();
  /// Every name of every parameter: a shared one several times.
  std::vector<NamedTensor> parameter_names();
  /// This module (named "") and everything below.
  std::vector<std::pair<std::string, Module*>> modules();

  /// Parameters and buffers under PyTorch's names and shapes: convolution weights as OIHW views. Shares memory. A
  /// shared tensor is there under each of its names.
  StateDict state_dict();
  /// Copies the tensors in (converting dtype and device). A `module.` before all names is stripped. Missing counters
  /// (num_batches_tracked) stay as they are. Errors: wrong shapes; when strict, missing or unexpected names; nothing
  /// has been changed then.
  LoadReport load_state_dict(const StateDict& dict, LoadOptions options = {});

  /// Training or evaluation (dropout, batch statistics) of this module and all below.
  void train(bool training = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  void zero_grad();
  /// Calls `function` with every child, deepest first, and at last with this module.
  void apply(const std::function<void(Module&)>& function);

 private:
  struct Hooks {
    int number;
    Before before;
    After after;
    Watch watch;
  };
  bool training_ = true;
  int next_hooks_ = 0;
  std::vector<Hooks> hooks_;
};

/// Number of elements of all parameters.
int64_t parameter_count(Module& module);

}  // namespace weft::nn
