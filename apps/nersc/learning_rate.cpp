// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/learning_rate.h"

#include "optim/schedule.h"

namespace weft::nersc {
namespace {

using Dict = TorchObject::Dict;
using List = TorchObject::List;

constexpr optim::ReduceOnPlateauOptions kPlateau{};

double scalar(const StateDict& state, const char* name) { return state.scalar(name); }

}  // namespace

LearningRate::LearningRate(const Config& config, optim::Optimizer& optimizer)
    : config_(config), optimizer_(optimizer), base_lr_(config.lr) {
  if (config.scheduler == "reducelr")
    plateau_ = std::make_unique<optim::ReduceOnPlateau>(
        optimizer, optim::ReduceOnPlateauOptions{.factor = kPlateau.factor, .patience = config.patience});
}

void LearningRate::step(double val_loss) {
  ++epochs_;
  if (plateau_) plateau_->step(val_loss);
  if (config_.scheduler == "cosine")
    optimizer_.set_lr(optim::CosineSchedule(config_.max_cosine_lr_epochs).lr(epochs_, base_lr_));
}

TorchObject LearningRate::state() const {
  if (plateau_) return plateau_state();
  if (config_.scheduler == "cosine") return cosine_state();
  return {};
}

TorchObject LearningRate::cosine_state() const {
  return {Dict{{"T_max", {config_.max_cosine_lr_epochs}},
               {"eta_min", {int64_t{0}}},
               {"base_lrs", {List{{base_lr_}}}},
               {"last_epoch", {epochs_}},
               {"verbose", {false}},
               {"_step_count", {epochs_ + 1}},
               {"_get_lr_called_within_step", {false}},
               {"_last_lr", {List{{optimizer_.lr(0)}}}}}};
}

TorchObject LearningRate::plateau_state() const {
  const StateDict state = plateau_->state_dict();
  return {Dict{{"factor", {kPlateau.factor}},
               {"min_lrs", {List{{kPlateau.min_lr}}}},
               {"patience", {config_.patience}},
               {"verbose", {false}},
               {"cooldown", {kPlateau.cooldown}},
               {"cooldown_counter", {static_cast<int64_t>(scalar(state, "cooldown_left"))}},
               {"mode", {std::string("min")}},
               {"threshold", {kPlateau.threshold}},
               {"threshold_mode", {std::string("rel")}},
               {"best", {scalar(state, "best")}},
               {"num_bad_epochs", {static_cast<int64_t>(scalar(state, "bad_steps"))}},
               {"mode_worse", {std::numeric_limits<double>::infinity()}},
               {"eps", {kPlateau.eps}},
               {"last_epoch", {epochs_}},
               {"_last_lr", {List{{optimizer_.lr(0)}}}}}};
}

void LearningRate::load(const TorchObject& state, const std::string& what) {
  if (config_.scheduler == "none") return;
  epochs_ = state.at("last_epoch", what).integer(what);
  if (plateau_) {
    plateau_->load_state_dict(
        {{},
         {{"best", state.at("best", what).number(what)},
          {"bad_steps", static_cast<double>(state.at("num_bad_epochs", what).integer(what))},
          {"cooldown_left", static_cast<double>(state.at("cooldown_counter", what).integer(what))}}});
    return;
  }
  const auto* base = std::get_if<List>(&state.at("base_lrs", what).is);
  WEFT_CHECK(base != nullptr && base->size() == 1, what, ": expected one learning rate in 'base_lrs'");
  base_lr_ = base->front().number(what);
}

}  // namespace weft::nersc
