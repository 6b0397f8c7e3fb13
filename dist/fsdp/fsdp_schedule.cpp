// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/fsdp_schedule.h"

#include <algorithm>
#include <utility>

#include "core/autograd.h"
#include "dist/ddp/sync_batch_norm.h"

namespace weft::dist {

void FsdpUnit::add_gradient(FlatShard& shard, const ProcessGroupPtr& replicas, DType low_reduce) {
  const DType kept = shard.master().dtype();
  gradients_.push_back(std::make_unique<ShardGradient>(shard, replicas, shard.dtype() == kept ? kept : low_reduce));
}

bool FsdpUnit::has_frozen() const {
  return std::any_of(shards_.begin(), shards_.end(),
                     [](const auto& shard) { return shard->trained_parameters() < shard->parameters().size(); });
}

void FsdpUnit::start_gather() {
  const auto start = [this] {
    for (const auto& shard : shards_) shard->start_gather();
  };
  shards_.empty() ? start() : shards_.front()->group()->together(start);
}

void FsdpUnit::finish_gather() {
  for (const auto& shard : shards_) shard->finish_gather();
}

void FsdpUnit::free() {
  for (const auto& shard : shards_) shard->free();
  in_use = false;
}

bool FsdpUnit::holds_memory() const {
  return std::any_of(shards_.begin(), shards_.end(), [](const auto& shard) { return shard->holds_memory(); });
}

bool FsdpUnit::is_stale() const {
  return std::any_of(shards_.begin(), shards_.end(), [](const auto& shard) { return shard->is_stale(); });
}

size_t FsdpUnit::gathered_bytes() const {
  size_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->gathered_bytes();
  return bytes;
}

void FsdpUnit::prepare_gradients() {
  for (const auto& gradient : gradients_) gradient->prepare();
}

bool FsdpUnit::gradients_are_complete() const {
  return std::all_of(gradients_.begin(), gradients_.end(), [](const auto& g) { return g->is_complete(); });
}

namespace {

constexpr size_t kRoot = 0;

}  // namespace

FsdpSchedule::FsdpSchedule(const FsdpOptions& options, ProcessGroupPtr group, Device device,
                           std::vector<std::unique_ptr<FsdpUnit>> units)
    : options_(options), device_(device), units_(std::move(units)), group_(std::move(group)) {}

void FsdpSchedule::attach(const std::vector<std::pair<nn::Module*, size_t>>& owners,
                          std::function<void()> before_round) {
  before_round_ = std::move(before_round);
  // Graphs and modules may outlive the schedule, so hooks hold it weakly.
  const std::weak_ptr<FsdpSchedule> weak = weak_from_this();
  const auto hang = [this](nn::Module* module, nn::Module::Before before, nn::Module::After after) {
    module_hooks_.emplace_back(module, module->register_hooks(std::move(before), std::move(after), nn::Watch::calls));
  };
  for (size_t u = 0; u < units_.size(); ++u) {
    hang(
        units_[u]->module(),
        [weak, u](const nn::Module& module, const Tensor& x) {
          const auto self = weak.lock();
          if (!self) return;
          if (u == kRoot) self->before_root(module, x);
          self->before_unit(u, x);
        },
        [weak, u](const nn::Module& module, const Tensor&, const Tensor& y) {
          if (const auto self = weak.lock()) self->after_unit(u, y, module.is_training());
          return Tensor();
        });
  }
  // A module that runs outside of its unit's forward (inside checkpoint(), or called alone) gathers the unit too.
  for (const auto& [module, unit] : owners) {
    if (units_[unit]->module() == module) continue;
    const size_t u = unit;
    hang(
        module,
        [weak, u](const nn::Module&, const Tensor&) {
          const auto self = weak.lock();
          if (self && !self->units_[u]->in_use) self->need(u);
        },
        [weak, u](const nn::Module&, const Tensor&, const Tensor& y) {
          if (grad_enabled() && y.requires_grad())
            y.register_hook([weak, u](const Tensor&) {
              const auto self = weak.lock();
              if (self && !self->units_[u]->in_use) self->gradient_reaches(u);
              return Tensor();
            });
          return Tensor();
        });
  }
}

void FsdpSchedule::listen() {
  for (size_t u = 0; u < units_.size(); ++u)
    for (const auto& gradient : units_[u]->gradients())
      for (size_t i = 0; i < gradient->shard().parameters().size(); ++i) {
        const ShardedParameter& p = gradient->shard().parameters()[i];
        if (p.trained && listened_to_.insert(p.parameter.impl()).second)
          p.parameter.register_accumulated_hook([weak = weak_from_this(), u, i, g = gradient.get()](const Tensor&) {
            if (const auto self = weak.lock()) self->arrived(u, *g, i);
          });
      }
}

void FsdpSchedule::detach() {
  for (const auto& [module, number] : module_hooks_) module->remove_hooks(number);
  module_hooks_.clear();
}

void FsdpSchedule::before_root(const nn::Module& model, const Tensor& x) {
  if (recomputing()) return;
  const bool training = grad_enabled() || model.is_training();
  WEFT_CHECK(!training || (x.defined() && x.dim() > 0), "fsdp: expected an input [samples, …], got ", x);
  begin_round(training, training ? x.size(0) : 0);
}

void FsdpSchedule::begin_round(bool training, int64_t given) {
  in_backward_ = nullptr;
  if (buffers_) buffers_->check_bound("fsdp");
  if (std::exchange(pass_open_, false)) {  // a backward threw
    reducing_.clear();
    sharing_.clear();
    for (const auto& unit : units_) {
      unit->open_inputs = 0;
      for (const auto& gradient : unit->gradients()) gradient->drop();
    }
    free_all();
  }
  before_round_();
  for (const auto& unit : units_)
    for (const auto& gradient : unit->gradients()) gradient->drop_zeroed();
  for (size_t u = 0; u < units_.size(); ++u)
    if (!units_[u]->in_use || units_[u]->is_stale()) free(u);
  plan_ = training ? 1 : 0;
  plans_[plan_].begin();
  const auto said = std::exchange(next_samples_, std::nullopt);
  if (!training) return;
  WEFT_CHECK(given > 0, "fsdp: expected at least one sample on rank ", group_->rank(), ", got ", given);
  const int64_t samples = said.value_or(given);
  if (stands_in_ != (samples == 0)) set_stand_in(*units_[0]->module(), stands_in_ = samples == 0);
  if (weight_) weight_->wait();  // after a forward without backward
  weight_ = std::make_shared<SampleWeight>(group_);
  weight_->begin(samples, device_);
}

void FsdpSchedule::weigh_by(const std::shared_ptr<SampleWeight>& weight) {
  if (!weight) return;
  WEFT_CHECK(!in_backward_ || in_backward_->samples() == weight->samples(), "fsdp: one backward reaches a forward of ",
             weight->samples(), " samples and one of ", in_backward_ ? in_backward_->samples() : 0, " on rank ",
             group_->rank(), ", whose gradients weigh differently. Run a backward for each");
  in_backward_ = weight_ = weight;
}

void FsdpSchedule::before_unit(size_t u, const Tensor& x) {
  need(u);
  FsdpUnit& unit = *units_[u];
  // Frozen weights have no gradient that tells when they are done: keep them until the unit's input has its gradient.
  if (!unit.has_frozen() || !grad_enabled() || !x.defined() || !x.requires_grad()) return;
  ++unit.open_inputs;
  x.register_hook([weak = weak_from_this(), u](const Tensor&) {
    if (const auto self = weak.lock()) self->gradient_left(u);
    return Tensor();
  });
}

void FsdpSchedule::after_unit(size_t u, const Tensor& y, bool training) {
  if (grad_enabled() && y.requires_grad())
    y.register_hook(
        [weak = weak_from_this(), u, weight = u == kRoot && !recomputing() ? weight_ : nullptr](const Tensor&) {
          if (const auto self = weak.lock()) {
            self->weigh_by(weight);  // another forward may have run since
            self->gradient_reaches(u);
          }
          return Tensor();
        });
  const bool stays = options_.strategy == Sharding::shard_grad_op && (training || grad_enabled());
  // Recomputed operations run their backward at once.
  const bool soon = recomputing() && gathered_units() <= static_cast<size_t>(options_.max_gathered);
  if (stays || soon) return;
  release_after_use(u);
  if (u == kRoot && !recomputing())  // modules that ran outside of their unit
    for (size_t other = 0; other < units_.size(); ++other)
      if (units_[other]->in_use) free(other);
  look_ahead();
}

/// The last unit of a forward, and the root, are the first ones of its backward: they keep their memory, as the next
/// gather would take as much.
void FsdpSchedule::release_after_use(size_t u) {
  const std::optional<size_t> next = plans_[plan_].next(), second = plans_[plan_].next(1);
  if (next == u || (second == u && (next == kRoot || u == kRoot)))
    units_[u]->in_use = false;
  else
    free(u);
}

void FsdpSchedule::gradient_reaches(size_t u) {
  begin_pass();
  need(u);
  units_[u]->prepare_gradients();
}

void FsdpSchedule::gradient_left(size_t u) {
  begin_pass();
  FsdpUnit& unit = *units_[u];
  if (--unit.open_inputs > 0 || !unit.gradients_are_complete()) return;
  free(u);
  look_ahead();
}

void FsdpSchedule::arrived(size_t u, ShardGradient& gradient, size_t i) {
  begin_pass();
  WEFT_CHECK(group_->size() == 1 || weight_, "fsdp: backward without a forward of the whole model in training");
  gradient.take(i, weight_ ? weight_->get(gradient.shard().master().dtype()) : Tensor());
  if (units_[u]->gradients_are_complete()) unit_is_done(u);
}

void FsdpSchedule::begin_pass() {
  if (std::exchange(pass_open_, true)) return;
  after_backward([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->end_pass();
  });
  // After the forward the buffers are final for this step: backward does not change them.
  if (buffers_ && reduces_ && group_->size() > 1 && units_[kRoot]->module()->is_training())
    sharing_ = buffers_->broadcast(*group_, 0);
}

void FsdpSchedule::unit_is_done(size_t u) {
  if (reduces_) reduce(u);
  if (units_[u]->open_inputs > 0) return;
  free(u);
  look_ahead();
}

void FsdpSchedule::end_pass() {
  for (size_t u = 0; u < units_.size(); ++u) {
    if (reduces_) reduce(u);
    for (const auto& gradient : units_[u]->gradients()) gradient->hold();
    units_[u]->open_inputs = 0;
  }
  while (!reducing_.empty()) finish_oldest_reduction();
  in_backward_ = nullptr;
  for (const WorkPtr& work : sharing_) work->wait();
  if (!sharing_.empty()) buffers_->finish(*group_);
  sharing_.clear();
  free_all();
  pass_open_ = false;
}

void FsdpSchedule::need(size_t u) {
  FsdpUnit& unit = *units_[u];
  if (unit.in_use && !unit.is_stale()) return;
  if (unit.is_stale()) free(u);
  plans_[plan_].needed(u);
  if (!unit.holds_memory()) start_gather(u, FsdpEvent::Kind::gather);
  unit.finish_gather();
  unit.in_use = true;
  tell(FsdpEvent::Kind::use, u);
  look_ahead();
}

void FsdpSchedule::free(size_t u) {
  FsdpUnit& unit = *units_[u];
  if (unit.holds_memory()) {
    gathered_bytes_ -= unit.gathered_bytes();
    tell(FsdpEvent::Kind::free, u);
  }
  unit.free();
}

void FsdpSchedule::free_all() {
  for (size_t u = 0; u < units_.size(); ++u) free(u);
}

size_t FsdpSchedule::gathered_units() const {
  return static_cast<size_t>(
      std::count_if(units_.begin() + 1, units_.end(), [](const auto& unit) { return unit->holds_memory(); }));
}

void FsdpSchedule::look_ahead() {
  const auto most = static_cast<size_t>(options_.max_gathered);
  for (size_t others = 0; others + 1 < most; ++others) {
    const std::optional<size_t> next = plans_[plan_].next(others);
    if (!next) return;
    if (!units_[*next]->holds_memory()) start_gather(*next, FsdpEvent::Kind::prefetch);
  }
}

void FsdpSchedule::start_gather(size_t u, FsdpEvent::Kind why) {
  FsdpUnit& unit = *units_[u];
  unit.start_gather();
  if (!unit.holds_memory()) return;  // nothing to gather
  gathered_bytes_ += unit.gathered_bytes();
  peak_gathered_bytes_ = std::max(peak_gathered_bytes_, gathered_bytes_);
  tell(why, u);
}

void FsdpSchedule::reduce(size_t u) {
  std::vector<ShardGradient*> all;
  for (const auto& gradient : units_[u]->gradients()) {
    if (!gradient->has_any()) continue;
    while (gradient->is_reducing()) finish_oldest_reduction();
    all.push_back(gradient.get());
  }
  if (all.empty()) return;
  all.front()->shard().group()->together([&] {
    for (ShardGradient* gradient : all) gradient->start_reduce();
  });
  for (ShardGradient* gradient : all) {
    gradient->start_across();
    reducing_.push_back(gradient);
    tell(FsdpEvent::Kind::reduce, u);
  }
  const size_t most = static_cast<size_t>(options_.max_gathered);
  while (reducing_.size() > most) finish_oldest_reduction();
}

void FsdpSchedule::finish_oldest_reduction() {
  ShardGradient* oldest = reducing_.front();
  reducing_.pop_front();
  oldest->finish_reduce();
}

void FsdpSchedule::tell(FsdpEvent::Kind kind, size_t u) const {
  if (options_.on_event) options_.on_event({kind, units_[u]->name()});
}

}  // namespace weft::dist
