// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  ParameterGroups(const std::vector<ParameterGroup>& groups);
  ParameterGroups(const std::vector<NamedTensor>& parameters);
  ParameterGroups(std::initializer_list<ParameterGroup> groups);
  ParameterGroups(std::initializer_list<NamedTensor> parameters);
};

/// Two groups: weights, and parameters of at most one dimension (biases, norms) with weight decay 0 (Goyal et al. 2017
/// and He et al. 2019, "Bag of tricks").
std::vector<ParameterGroup> without_decay_on_vectors(const std::vector<NamedTensor>& parameters);

/// The parameters that require a gradient.
std::vector<NamedTensor> trainable(const std::vector<NamedTensor>& parameters);

/// A learning rate for each group of an optimizer; a number where they are all the same.
struct Rates : std::vector<double> {
  using vector::vector;
  /// Errors: rates that differ.
  operator double() const;  // NOLINT(google-explicit-constructor)
};

/// The count of steps of one parameter in an optimizer's state_dict().
double steps_of(const StateDict& state, const std::string& parameter);

/// Changes parameters by their gradients, in place. The parameters are moved into flat buffers (core/flat_parameters.h)
/// unless they already are, group by group. A step is then one kernel per group. Learning rate, step count
/// and gradient scale are in device memory, so a captured step can be replayed. As in PyTorch a step passes over each
/// parameter without a gradient (Tensor::has_gradient()), be it frozen or not used: neither decay nor averages move it,
/// and its own count of steps stays. Frozen parameters take no memory here; one that is thawed later joins at the next
/// step.
class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update of all parameters that have a gradient. Errors: a parameter or its gradient has left the flat buffers;
  /// the last two backward passes left gradients in a leaf that nobody knows, such as a child that fields() left out
  /// (core/unclaimed_leaf.h); at the replay of a captured step: a parameter was frozen or thawed since.
  void step();
  /// Sets the gradients of this optimizer's parameters to none, frozen parameters too.
  void zero_grad();

  int groups() const { return static_cast<int>(groups_.size()); }
  double lr(int group) const { return group_at(group).lr; }
  Rates lr() const;  ///< learning rate of each group
  /// The group's initial learning rate, the base of schedules.
  double base_lr(int group) const { return group_at(group).base_lr; }
  Rates base_lr() const;  ///< base rate of each group
  double weight_decay(int group = 0) const { return group_at(group).weight_decay; }
  /// The trained parameters of a group.
  const std::vector<NamedTensor>& parameters(int group) const { return group_at(group).parameters; }
  /// Parameters that have not been trained yet.
  const std::vector<NamedTensor>& frozen(int group) const { return group_at(group).frozen; }
  /// Sets the rate of all groups. Errors: groups whose base_lr() differ; for each form: a negative rate, one that is
  /// not finite; then nothing is changed.
  void set_lr(double lr);
  void set_lr(double lr, int group);  ///< sets one group's rate
  /// Sets each group's rate: set_lr(schedule.lr(step, base_lr())). Errors: not one rate per group.
  void set_lr(const Rates& rates);
  /// Steps so far, of the parameter that has had most.
  int64_t steps() const;
  const std::shared_ptr<FlatParameters>& flat() const { return flat_; }

  /// The moving averages under the names of PyTorch (`fc.weight.exp_avg`) in the parameters' sizes (convolution weights
  /// OHWI), the step count, the learning rates. Parameters with fewer steps have a count of their own
  /// (`fc.weight.step`), or all of them with `all_counts`. Shares memory.
  StateDict state_dict(bool all_counts = false) const;
  /// Errors: missing or unexpected names, wrong shapes, another number of groups, a rate or a count of steps that
  /// is none; then nothing is changed.
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
  /// Parameters of one group that a step moves together: they have a gradient, and the same count of steps.
  struct Launch {
    int group;
    int64_t row;  // row in the scalars
    std::vector<NamedTensor> parameters;
    std::vector<FlatRange> ranges;
  };

  /// The rule of a step. A rule on single elements overrides update(), which gets each range of each launch; other
  /// rules override update_all().
  virtual void update_all();
  virtual void update(const Range&) {}
  const std::vector<Launch>& launches() const { return launches_; }
  /// launches() are others from here on.
  virtual void launches_changed() {}
  /// A parameter was thawed; it is in parameters(group) now.
  virtual void added(int /*group*/, const NamedTensor&) {}
  /// A place in the flat buffers, with a launch's scalars and states.
  Range range(const Launch& launch, FlatRange place);
  /// The flat buffers from end to end, with what belongs to a launch.
  Range whole_range(const Launch& launch) { return range(launch, {0, flat_->numel()}); }
  /// Sets a state's initial value, unless 0.
  void fill_state(size_t state, double value);

  /// A state of another size than the parameters', under its name in state_dict(). Shares memory.
  void add_state(std::string name, Tensor state);

 private:
  struct Group {
    std::vector<NamedTensor> parameters, frozen;
    double lr, base_lr, weight_decay;
  };
  /// A trained parameter: a row of the scalars.
  struct Row {
    NamedTensor parameter;
    int group;
    int64_t steps = 0;
  };

  /// Errors: no such group.
  const Group& group_at(int group) const;
  void take_in_thawed();
  /// Per row the first one of its launch, -1 where there is no gradient.
  std::vector<int64_t> leaders() const;
  void arrange(std::vector<int64_t> leaders);
  /// Whether each parameter requires a gradient; frozen ones are at the end of each group.
  std::vector<bool> trained() const;
  /// Errors: a captured step would not be the right one any more.
  void check_before(const std::vector<bool>& trained, const std::vector<int64_t>& leaders) const;
  /// Calls `function` with the rows that `wanted` chooses, neighbours at once.
  void for_rows(const std::function<bool(size_t)>& wanted,
                const std::function<void(const Tensor& rows)>& function) const;
  void add_rows(int group, const std::vector<NamedTensor>& parameters);

  const char* name_;
  std::vector<Group> groups_;
  std::shared_ptr<FlatParameters> flat_;
  std::vector<std::string> state_names_;
  std::vector<Tensor> states_;
  std::vector<double> state_begins_;
  std::vector<NamedTensor> own_states_;
  std::vector<Row> rows_;
  Tensor scalars_;  // [rows, 3]: lr, step, gradient scale
  Tensor ones_;     // [rows]
  std::vector<Launch> launches_;
  std::vector<int64_t> leaders_;  // first parameters of launches_
};

}  // namespace weft::optim
