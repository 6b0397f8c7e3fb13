// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/flat_parameters.h"

namespace weft::optim {

/// Parameters that share a learning rate and a weight decay; the optimizer's if left out.
struct ParameterGroup {
  std::vector<NamedTensor> parameters = {};
  std::optional<double> lr = {}, weight_decay = {};
};

/// Groups of parameters; a plain list of parameters is one group.
struct ParameterGroups : std::vector<ParameterGroup> {
  ParameterGroups(const std::vector<ParameterGroup>& groups) : vector(groups) {}
  ParameterGroups(const std::vector<NamedTensor>& parameters) { push_back({.parameters = parameters}); }
  ParameterGroups(std::initializer_list<NamedTensor> parameters)
      : ParameterGroups(std::vector<NamedTensor>(parameters)) {}
};

/// Two groups: weights, and parameters of at most one dimension (biases, norms) with weight decay 0 (Goyal et al. 2017
/// and He et al. 2019, "Bag of tricks").
std::vector<ParameterGroup> without_decay_on_vectors(const std::vector<NamedTensor>& parameters);

/// Those that require a gradient.
std::vector<NamedTensor> trainable(const std::vector<NamedTensor>& parameters);

/// Changes parameters by their gradients, in place. The parameters are moved into flat buffers (core/flat_parameters.h)
/// unless they already are, group by group, so that a step is one kernel per group. Learning rate, step count
/// and gradient scale are in device memory, so a captured step can be replayed. Parameters that do not require a
/// gradient are left out; one that no backward reached has gradient 0 (PyTorch skips it).
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update of all parameters. Errors: a parameter or its gradient has left the flat buffers; the last two backward
  /// passes left gradients in a leaf that nobody knows, such as a child that fields() left out (core/unclaimed_leaf.h).
  void step();
  void zero_grad() { flat_->zero_grad(); }

  int groups() const { return static_cast<int>(groups_.size()); }
  double lr(int group = 0) const { return groups_.at(static_cast<size_t>(group)).lr; }
  /// The group's initial learning rate, the base of schedules.
  double base_lr(int group = 0) const { return groups_.at(static_cast<size_t>(group)).base_lr; }
  double weight_decay(int group = 0) const { return groups_.at(static_cast<size_t>(group)).weight_decay; }
  /// The trained parameters of a group.
  const std::vector<NamedTensor>& parameters(int group) const {
    return groups_.at(static_cast<size_t>(group)).parameters;
  }
  void set_lr(double lr);             ///< of all groups
  void set_lr(double lr, int group);  ///< of one group
  /// Steps so far; waits for the device.
  int64_t steps() const;
  const std::shared_ptr<FlatParameters>& flat() const { return flat_; }

  /// The moving averages under the names of PyTorch (`fc.weight.exp_avg`) in the parameters' sizes (convolution weights
  /// OHWI), the step count, the learning rates. Shares memory.
  StateDict state_dict() const;
  /// Errors: missing or unexpected names, wrong shapes, another number of groups; then nothing is changed.
  void load_state_dict(const StateDict& dict);

 protected:
  /// The data of one launch.
  struct Range {
    Tensor w, g, compute_copy, scalars;
    std::vector<Tensor> states;
    double weight_decay;
  };

  /// The places in Range::scalars.
  enum Scalar { kLr, kStep, kGradientScale, kScalars };

  /// `states`: the names of the per-element buffers that the update rule keeps.
  Optimizer(const char* name, const std::vector<ParameterGroup>& groups, double lr, double weight_decay,
            std::vector<std::string> states);
  /// What a step does. A rule on single elements overrides update(), which gets each range of each group; one that
  /// needs more than a range overrides update_all().
  virtual void update_all();
  virtual void update(const Range&) {}
  /// One place of the flat buffers, with what belongs to a group.
  Range range(int group, FlatRange place);
  /// The flat buffers from end to end, with what belongs to a group.
  Range whole_range(int group) { return range(group, {0, flat_->numel()}); }
  /// What a state begins with, unless that is 0.
  void fill_state(size_t state, double value) { states_.at(state).fill_(value); }

  /// A state of another size than the parameters', under its name in state_dict(). Shares memory.
  void add_state(std::string name, Tensor state) { own_states_.push_back({std::move(name), std::move(state)}); }

 private:
  struct Group {
    std::vector<NamedTensor> parameters;
    std::vector<FlatRange> ranges;
    double lr, base_lr, weight_decay;
  };

  const char* name_;
  std::vector<Group> groups_;
  std::shared_ptr<FlatParameters> flat_;
  std::vector<std::string> state_names_;
  std::vector<Tensor> states_;
  std::vector<NamedTensor> own_states_;
  Tensor scalars_;  // [groups, 3]: lr, step, gradient scale
  Tensor one_;
};

}  // namespace weft::optim
