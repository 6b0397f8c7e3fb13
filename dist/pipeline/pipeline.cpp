// SPDX-License-Identifier: Apache-2.0
#include "dist/pipeline/pipeline.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/flat_parameters.h"
#include "core/ops/concat.h"
#include "core/random.h"
#include "core/trace.h"
#include "dist/ddp/agreement.h"
#include "dist/group/backends.h"
#include "dist/group/same_lines.h"

namespace weft::dist {
namespace {

constexpr int kMostDimensions = 8;

/// The names of all parameters and buffers, in the model's order; `drops` says which go.
struct Names : nn::Visitor {
  explicit Names(std::function<bool(const std::string&)> which = {}) : drops(std::move(which)) {}
  std::function<bool(const std::string&)> drops;
  std::vector<std::string> found;

  void parameter(const std::string& path, Tensor& tensor, nn::Layout) override {
    found.push_back(path);
    if (drops && drops(path)) tensor = Tensor();
  }
  void buffer_at(const std::string& path, Tensor& tensor) override { parameter(path, tensor, nn::Layout::as_stored); }
};

/// Dtype and sizes of x as a tensor that travels.
Tensor form_of(const Tensor& x) {
  std::vector<int64_t> form(2 + kMostDimensions);
  WEFT_CHECK(x.dim() <= kMostDimensions, "pipeline: expected activations of at most ", kMostDimensions,
             " dimensions, got ", x);
  form[0] = static_cast<int64_t>(x.dtype()), form[1] = x.dim();
  for (int d = 0; d < x.dim(); ++d) form[static_cast<size_t>(2 + d)] = x.size(d);
  return Tensor::from(form, x.device());
}

/// Waits for a form and reads it. On a GPU a failed message leaves anything in the tensor: the second wait says so.
std::pair<Shape, DType> read_form(const Tensor& form, Work& work) {
  work.wait();
  const auto values = form.to_vector<int64_t>();
  work.wait();
  return {Shape(std::vector<int64_t>(values.begin() + 2, values.begin() + 2 + values[1])),
          static_cast<DType>(values[0])};
}

std::vector<Tensor> split(const Tensor& x, int64_t parts) {
  std::vector<Tensor> result;
  const int64_t n = x.size(0);
  parts = std::min(parts, n);
  for (int64_t i = 0; i < parts; ++i) result.push_back(x.slice(0, n * i / parts, n * (i + 1) / parts - n * i / parts));
  return result;
}

std::string key_of(int stretch, const Tensor& sample, DType precision) {
  return str(stretch, ": ", sample.sizes(), ' ', precision);
}

/// An in-place collective of x, which an offload may keep on the host, on the group's device.
void on_device(Device device, const Tensor& x, const std::function<WorkPtr(const Tensor&)>& collective) {
  const Tensor there = x.to(device);
  collective(there)->wait();
  if (there.raw_data() != x.raw_data())
    x.copy_(there);
  else
    x.storage()->bump_version();
}

}  // namespace

/// Messages in one direction between two neighbours, in a group of their own: both sides name them in the same order,
/// and neither waits for the other direction.
class Pipeline::Channel {
 public:
  Channel(ProcessGroupPtr group, Device device) : group_(std::move(group)), device_(device) {}

  /// `used`: the step of the receiver, by its place in that one's schedule. `key`: what fixes the form of the message
  /// (dtype and sizes); the first message of a key follows its form. Empty: the receiver knows it.
  void send(const Tensor& x, size_t used, const std::string& name, const std::string& key = {}) {
    const Tensor dense = x.detach().contiguous();
    if (!key.empty() && forms_.try_emplace(key, dense.sizes(), dense.dtype()).second)
      under_way_.push_back({group_->send(form_of(dense), other(), {.name = "form of " + name, .scale = {}}), used});
    under_way_.push_back({group_->send(dense, other(), {.name = name, .scale = {}}), used});
    // A send on a GPU ends when it is received, and this rank's stream may have to do something for that first.
    while (!under_way_.empty() && under_way_.front().work->has_ended()) pop();
  }
  /// The message just received results from a step of the neighbour: messages for earlier steps have arrived.
  void has_done(size_t step) {
    while (!under_way_.empty() && under_way_.front().used < step) pop();
  }
  void finish() {
    while (!under_way_.empty()) pop();
  }
  uint64_t bytes_sent() const { return group_->bytes_sent(); }
  void abort(const std::string& reason) { group_->abort(reason); }

  /// The next message: of a key, or into `memory`.
  Tensor receive(const std::string& name, const std::string& key) {
    if (!posted_.defined() && !forms_.contains(key)) {
      const Tensor form = Tensor::empty({2 + kMostDimensions}, DType::i64, device_);
      const WorkPtr work = group_->receive(form, other(), {.name = "form of " + name, .scale = {}, .at_once = true});
      forms_.emplace(key, read_form(form, *work));
    }
    return receive(name, posted_.defined() ? Tensor() : made(key));
  }
  Tensor receive(const std::string& name, const Tensor& memory) {
    if (!posted_.defined()) post(name, memory, /*at_once=*/true);
    std::exchange(posting_, nullptr)->wait();
    return std::exchange(posted_, Tensor());
  }
  /// Begins to receive the next message while this rank computes; of a key whose form is not known yet: does nothing.
  void expect(const std::string& name, const std::string& key) {
    if (forms_.contains(key)) expect(name, made(key));
  }
  void expect(const std::string& name, const Tensor& memory) { post(name, memory, /*at_once=*/false); }

 private:
  Tensor made(const std::string& key) const {
    const auto& [sizes, dtype] = forms_.at(key);
    return Tensor::empty(sizes, dtype, device_);
  }
  void post(const std::string& name, const Tensor& memory, bool at_once) {
    posted_ = memory;
    posting_ = group_->receive(posted_, other(), {.name = name, .scale = {}, .at_once = at_once});
  }
  void pop() {
    under_way_.front().work->wait();
    under_way_.pop_front();
  }
  int other() const { return 1 - group_->rank(); }

  ProcessGroupPtr group_;
  Device device_;
  std::map<std::string, std::pair<Shape, DType>> forms_;
  struct Sent {
    WorkPtr work;
    size_t used;
  };
  std::deque<Sent> under_way_;
  Tensor posted_;
  WorkPtr posting_;
};

/// A group ends when all of its ranks have come to its end: channels end in the order of the stage that they lead from,
/// which is one order for all stages. Stage 0 has the first and, with several chunks, the last.
Pipeline::~Pipeline() {
  for (const bool first : {true, false}) {
    const bool out = first == (pipe_->rank() == 0);
    (out ? activations_out_ : activations_in_).reset();
    (out ? gradients_in_ : gradients_out_).reset();
  }
}

Pipeline::Pipeline(std::shared_ptr<nn::Module> model, Grid grid, PipelineOptions options)
    : model_(std::move(model)),
      staged_(dynamic_cast<nn::Staged*>(model_.get())),
      options_(options),
      pipe_(grid.pipe()) {
  WEFT_CHECK(staged_, "pipeline: expected a model that is an nn::Staged, got ", model_ ? model_->kind() : "none");
  check_same_lines(*pipe_,
                   str(options_.chunks, " chunks", options_.fsdp ? ", fsdp" : "",
                       blocks_device(*pipe_) ? ", CUDA_DEVICE_MAX_CONNECTIONS below 32" : ""),
                   "pipeline: the options are", "All ranks must pass the same");
  check_same_model(*pipe_, *model_, "pipeline");
  WEFT_CHECK(options_.chunks > 0, "pipeline: expected at least one chunk, got ", options_.chunks);
  WEFT_CHECK(options_.chunks == 1 || pipe_->size() > 1, "pipeline: ", options_.chunks,
             " chunks need at least two stages, got one");
  WEFT_CHECK(staged_->layers() >= static_cast<int64_t>(pipe_->size()) * options_.chunks,
             "pipeline: ", staged_->layers(), " layers are too few for ", pipe_->size(), " stages x ", options_.chunks,
             " chunks");
  drop_other_stages();
  options_.ddp.unused = Unused::zero;
  tensor_ = options_.fsdp ? std::make_unique<TensorParallel>(model_, std::move(grid), sharding())
                          : std::make_unique<TensorParallel>(model_, std::move(grid), options_.ddp);
  const ProcessGroup& data = *this->grid().data();
  if (!(options_.fsdp ? options_.fsdp->same_dropout : options_.ddp.same_dropout))
    set_dropout_rank(data.rank() + data.size() * pipe_->rank());
  blocks_device(*pipe_) ? make_batches() : make_channels();
  find_tied();
  set_norm();
}

nn::LayerRange Pipeline::range(int stage, int chunk) const {
  const int64_t stretches = static_cast<int64_t>(pipe_->size()) * options_.chunks, layers = staged_->layers();
  const int64_t at = chunk * pipe_->size() + stage;
  return {layers * at / stretches, layers * (at + 1) / stretches};
}

bool Pipeline::is_used_by(int stage, const std::string& parameter) const {
  for (int chunk = 0; chunk < options_.chunks; ++chunk)
    if (staged_->uses(range(stage, chunk), parameter)) return true;
  return false;
}

void Pipeline::drop_other_stages() {
  Names names([this](const std::string& name) { return !is_used_by(pipe_->rank(), name); });
  model_->fields(names);
  names_ = std::move(names.found);
  if (options_.device && !options_.fsdp) model_->to(*options_.device);
}

/// A tied parameter's module becomes a unit, which all of its stages divide at the same places.
FsdpOptions Pipeline::sharding() const {
  FsdpOptions options = *options_.fsdp;
  std::map<std::string, std::string> kinds;
  for (const auto& [path, module] : model_->modules()) kinds.emplace(path, module->kind());
  for (const std::string& name : names_) {
    int users = 0;
    for (int stage = 0; stage < pipe_->size(); ++stage) users += is_used_by(stage, name);
    const std::string owner = name.substr(0, std::min(name.rfind('.'), name.size()));
    if (users < 2) continue;
    WEFT_CHECK(kinds.contains(owner), "pipeline: fsdp: the tied parameter '", name, "' needs a module of its own");
    if (std::ranges::find(options.policy.kinds, kinds.at(owner)) == options.policy.kinds.end())
      options.policy.kinds.push_back(kinds.at(owner));
  }
  return options;
}

void Pipeline::make_channels() {
  const int P = pipe_->size(), rank = pipe_->rank();
  const Device device = model_->device();
  for (int from = 0; from < P; ++from) {
    const int to = (from + 1) % P;
    if (P == 1 || (to == 0 && options_.chunks == 1)) break;
    const int color = rank == from || rank == to ? 0 : -1;
    const auto channel = [&](const char* what) {
      const ProcessGroupPtr group = pipe_->split(color, rank == from ? 0 : 1, str(what, ' ', from, " to ", to));
      // NCCL connects two ranks at their first message, and both wait on the host: not within a schedule.
      if (group && group->backend() == "nccl") {
        const Tensor word = Tensor::zeros({1}, DType::u8, device);
        const CollectiveOptions first{.name = "first message", .scale = {}};
        (rank == from ? group->send(word, 1, first) : group->receive(word, 0, first))->wait();
      }
      return group ? std::make_unique<Channel>(group, device) : nullptr;
    };
    auto activations = channel("activations"), gradients = channel("gradients back from");
    if (rank == from) activations_out_ = std::move(activations), gradients_in_ = std::move(gradients);
    if (rank == to) activations_in_ = std::move(activations), gradients_out_ = std::move(gradients);
  }
}

/// Neighbours connect in both directions, as in make_channels().
void Pipeline::make_batches() {
  const int P = pipe_->size(), rank = pipe_->rank();
  batches_.emplace(Batches{.group = pipe_->split(0, rank, "messages between stages")});
  const ProcessGroupPtr& group = batches_->group;
  const Tensor word = Tensor::zeros({2}, DType::u8, model_->device());
  const CollectiveOptions first{.name = "first message", .scale = {}};
  for (int from = 0; from < P; ++from) {
    const int to = (from + 1) % P;
    if (rank != from && rank != to) continue;
    std::vector<WorkPtr> works;
    group->together([&] {
      works.push_back(group->send(word.slice(0, 0, 1), rank == from ? to : from, first));
      works.push_back(group->receive(word.slice(0, 1, 1), rank == from ? to : from, first));
    });
    for (const WorkPtr& work : works) work->wait();
  }
}

void Pipeline::find_tied() {
  std::map<std::string, Tensor> own;
  for (const NamedTensor& parameter : parameters())
    if (parameter.tensor.requires_grad()) own.emplace(parameter.name, parameter.tensor);
  std::map<std::set<int>, ProcessGroupPtr> groups;
  for (const std::string& name : names_) {
    std::set<int> users;
    for (int stage = 0; stage < pipe_->size(); ++stage)
      if (is_used_by(stage, name)) users.insert(stage);
    if (users.size() < 2) continue;
    const bool mine = users.contains(pipe_->rank());
    auto found = groups.find(users);
    if (found == groups.end())
      found = groups.emplace(users, pipe_->split(mine ? 0 : -1, pipe_->rank(), "tied parameters")).first;
    const auto parameter = own.find(name);
    if (!mine || parameter == own.end()) continue;
    tied_.push_back({found->second, {name, parameter->second}});
    const NoGrad no_grad;
    on_device(model_->device(), parameter->second.detach(), [&](const Tensor& x) {
      return found->second->broadcast(x, 0, {.name = name, .scale = {}, .at_once = true});
    });
  }
}

/// The norm of the whole model's gradient: of all stages, tied parameters once.
void Pipeline::set_norm() const {
  std::vector<NamedTensor> trained;
  for (const NamedTensor& parameter : parameters())
    if (parameter.tensor.requires_grad()) trained.push_back(parameter);
  std::set<const TensorImpl*> counted_elsewhere;
  for (const auto& [users, parameter] : tied_)
    if (users->rank() > 0) counted_elsewhere.insert(parameter.tensor.impl());
  FlatParameters::of(trained)->set_stages(
      {.gather =
           [group = pipe_, device = model_->device()](const Tensor& own, const char* name) {
             const Tensor all = Tensor::empty({group->size()}, own.dtype(), device);
             group->all_gather(all, own.reshape({1}).to(device), {.name = name, .scale = {}, .at_once = true})->wait();
             return all.to(own.device());
           },
       .is_elsewhere =
           [counted_elsewhere](const Tensor& parameter) { return counted_elsewhere.contains(parameter.impl()); },
       .others = pipe_->others(),
       .names = names_});
}

int Pipeline::first_stage(const std::string& name) const {
  int stage = 0;
  while (stage < pipe_->size() && !is_used_by(stage, name)) ++stage;
  return stage;
}

/// The index of a neighbour's step in its schedule; 0 outside of run().
size_t Pipeline::place(bool backward, int stretch, int64_t micro) const {
  const int P = pipe_->size();
  const auto found = places_.find({stretch % P, {backward, stretch / P, micro}});
  return found == places_.end() ? 0 : found->second;
}

int Pipeline::stretch(int chunk) const { return chunk * pipe_->size() + pipe_->rank(); }

bool Pipeline::is_last(int chunk) const { return stretch(chunk) + 1 == options_.chunks * pipe_->size(); }

/// The input of step `i`: from the samples, or from the previous stage.
Tensor Pipeline::input(const std::vector<PipelineStep>& steps, size_t i, const MicroBatches& batch) {
  const auto sample = [&](const PipelineStep& s) { return batch.inputs[static_cast<size_t>(s.micro)]; };
  if (stretch(steps[i].chunk) == 0) return sample(steps[i]);
  const auto name = [&](const PipelineStep& s) { return message(s.micro, stretch(s.chunk)); };
  const auto key = [&](const PipelineStep& s) { return key_of(stretch(s.chunk), sample(s), batch.precision); };
  if (batches_) {
    const Tensor x = batches_->tensors.extract({false, stretch(steps[i].chunk), steps[i].micro}).mapped();
    if (grad_enabled()) x.requires_grad_();
    return x;
  }
  const Tensor x = activations_in_->receive(name(steps[i]), key(steps[i]));
  gradients_out_->has_done(place(false, stretch(steps[i].chunk) - 1, steps[i].micro));
  for (size_t next = i + 1; next < steps.size(); ++next) {
    if (steps[next].backward || stretch(steps[next].chunk) == 0) continue;
    activations_in_->expect(name(steps[next]), key(steps[next]));
    break;
  }
  if (grad_enabled()) x.requires_grad_();
  return x;
}

void Pipeline::forward(const std::vector<PipelineStep>& steps, size_t i, const MicroBatches& batch) {
  const auto [is_backward, chunk, micro] = steps[i];
  Flight flight{.x = input(steps, i, batch), .y = {}};
  if (is_last(chunk)) {
    WEFT_CHECK(batch.loss, "pipeline: MicroBatches::loss: expected a function, got none");
    last_input_ = flight.x;
    sample_ = batch.inputs[static_cast<size_t>(micro)];
    flight.y = batch.loss(static_cast<size_t>(micro));
    last_input_ = sample_ = {};
  } else {
    const TraceScope scope("forward");
    const Autocast low(batch.precision);
    const Tensor& sample = batch.inputs[static_cast<size_t>(micro)];
    flight.y = staged_->run(range(pipe_->rank(), chunk), flight.x, sample);
    const int to = stretch(chunk) + 1;
    if (batches_)
      batches_->tensors[{false, to, micro}] = flight.y.detach().contiguous();
    else
      activations_out_->send(flight.y, place(false, to, micro), message(micro, to),
                             key_of(to, sample, batch.precision));
  }
  if (!grad_enabled()) return;
  flights_.emplace(Key{chunk, micro}, std::move(flight));
  most_in_flight_ = std::max(most_in_flight_, flights_.size());
}

void Pipeline::backward(size_t i) {
  const TraceScope scope("backward");
  const auto [is_backward, chunk, micro] = steps_[i];
  const Flight flight = flights_.extract(Key{chunk, micro}).mapped();
  const auto name = [&](const PipelineStep& s) { return "gradient of " + message(s.micro, stretch(s.chunk) + 1); };
  if (is_last(chunk)) {
    flight.y.backward();
  } else if (batches_) {
    weft::backward({flight.y}, {batches_->tensors.extract({true, stretch(chunk), micro}).mapped()});
  } else {
    const Tensor dy = gradients_in_->receive(name(steps_[i]), empty_like(flight.y));
    activations_out_->has_done(place(true, stretch(chunk) + 1, micro));
    for (size_t next = i + 1; next < steps_.size(); ++next) {
      if (!steps_[next].backward || is_last(steps_[next].chunk)) continue;
      const auto found = flights_.find(Key{steps_[next].chunk, steps_[next].micro});
      if (found != flights_.end()) gradients_in_->expect(name(steps_[next]), empty_like(found->second.y));
      break;
    }
    weft::backward({flight.y}, {dy});
  }
  if (stretch(chunk) > 0 && batches_)
    batches_->tensors[{true, stretch(chunk) - 1, micro}] = flight.x.grad().contiguous();
  else if (stretch(chunk) > 0)
    gradients_out_->send(flight.x.grad(), place(true, stretch(chunk) - 1, micro),
                         "gradient of " + message(micro, stretch(chunk)));
}

/// Messages name the number of micro-batches, in which ranks may differ.
std::string Pipeline::message(int64_t micro, int stretch) const {
  return str("micro-batch ", micro, " of ", micro_batches_, " into stretch ", stretch);
}

/// Ranks that wait for this one's messages get the text of its error.
void Pipeline::or_abort(const std::function<void()>& function) {
  const auto abort = [&](const std::string& error) {
    last_input_ = sample_ = {};
    if (pipe_->size() == 1) return;  // the next run may go well
    const std::string reason = str("stage ", pipe_->rank(), " of the pipeline ended with: ", error);
    for (const auto* channel : {&activations_in_, &activations_out_, &gradients_in_, &gradients_out_})
      if (*channel) (*channel)->abort(reason);
    if (batches_) batches_->group->abort(reason);
    for (const auto& [users, parameter] : tied_) users->abort(reason);
    pipe_->abort(reason);
  };
  try {
    function();
  } catch (const std::exception& error) {
    abort(error.what());
    throw;
  } catch (...) {
    abort("an exception of unknown type");
    throw;
  }
}

void Pipeline::finish_messages() {
  if (activations_out_) activations_out_->finish();
  if (gradients_out_) gradients_out_->finish();
}

/// With a form that is not known yet, messages of the whole run travel alone: a rank waits for a form on the host, and
/// must not hold back another message in a batch meanwhile. All stages know the same forms.
void Pipeline::plan_batches(const MicroBatches& batch, bool trains) {
  if (!batches_) return;
  batches_->plan = pipeline_messages(
      {.stages = pipe_->size(), .chunks = options_.chunks, .micro_batches = static_cast<int64_t>(batch.inputs.size())},
      pipe_->rank(), trains);
  batches_->tensors.clear();
  batches_->knows_forms = true;
  for (const auto& messages : batches_->plan)
    for (const PipelineMessage& m : messages) {
      const std::string key = key_of(m.stretch, batch.inputs[static_cast<size_t>(m.micro)], batch.precision);
      batches_->knows_forms = batches_->knows_forms && (m.backward || batches_->forms.contains(key));
    }
}

int Pipeline::other_side(const PipelineMessage& m) const {
  const int P = pipe_->size();
  return m.sends ? m.stretch % P : (m.stretch + (m.backward ? 1 : P - 1)) % P;
}

void Pipeline::exchange_form(const PipelineMessage& m, const std::string& key) {
  if (batches_->forms.contains(key)) return;
  const Tensor& x = batches_->tensors[{m.backward, m.stretch, m.micro}];
  const Tensor form = m.sends ? form_of(x) : Tensor::empty({2 + kMostDimensions}, DType::i64, model_->device());
  const CollectiveOptions options{.name = "form of " + message(m.micro, m.stretch), .scale = {}};
  ProcessGroup& group = *batches_->group;
  if (!m.sends) {
    batches_->forms.emplace(key, read_form(form, *group.receive(form, other_side(m), options)));
  } else {
    group.send(form, other_side(m), options)->wait();
    batches_->forms.emplace(key, std::pair(x.sizes(), x.dtype()));
  }
}

/// The messages before step `step`, sends first: WEFT_CHECK=1 has a receiver wait for the sender's call.
void Pipeline::exchange(size_t step, const MicroBatches& batch) {
  if (!batches_) return;
  std::vector<PipelineMessage> messages = batches_->plan[step];
  if (batches_->knows_forms)
    std::stable_partition(messages.begin(), messages.end(), [](const PipelineMessage& m) { return m.sends; });
  std::vector<WorkPtr> works;
  const auto begin = [&] {
    for (const PipelineMessage& m : messages) {
      const std::string key = key_of(m.stretch, batch.inputs[static_cast<size_t>(m.micro)], batch.precision);
      const std::string name = (m.backward ? "gradient of " : "") + message(m.micro, m.stretch + m.backward);
      const CollectiveOptions options{.name = name, .scale = {}};
      Tensor& x = batches_->tensors[{m.backward, m.stretch, m.micro}];
      if (!m.backward) exchange_form(m, key);
      if (m.sends) {
        works.push_back(batches_->group->send(std::exchange(x, {}), other_side(m), options));
        continue;
      }
      if (m.backward) {
        x = empty_like(flights_.at({m.stretch / pipe_->size(), m.micro}).y);
      } else {
        const auto& [sizes, dtype] = batches_->forms.at(key);
        x = Tensor::empty(sizes, dtype, model_->device());
      }
      works.push_back(batches_->group->receive(x, other_side(m), options));
    }
  };
  batches_->knows_forms ? batches_->group->together(begin) : begin();
  for (const WorkPtr& work : works) work->wait();
}

void Pipeline::begin_step(const MicroBatches& batch) {
  const int64_t samples = std::max<int64_t>(batch.samples, 1);
  if (batch.samples == 0) tensor_->stand_in();
  if (FSDP* const fsdp = tensor_->fsdp()) return fsdp->before_forward(samples);
  tensor_->ddp()->before_forward(samples);
  tensor_->ddp()->begin_pass(static_cast<int64_t>(batch.inputs.size()));
}

void Pipeline::run(const MicroBatches& batch) {
  WEFT_CHECK(grad_enabled(), "pipeline: run() trains: expected gradients, got NoGrad. pipeline(x) is the output alone");
  WEFT_CHECK(batch.samples >= 0, "pipeline: expected a number of samples, got ", batch.samples);
  const int P = pipe_->size(), rank = pipe_->rank();
  const PipelineSize size{
      .stages = P, .chunks = options_.chunks, .micro_batches = static_cast<int64_t>(batch.inputs.size())};
  steps_ = pipeline_schedule(size, rank);
  micro_batches_ = batch.inputs.size();
  places_.clear();
  for (const int neighbour : {(rank + 1) % P, (rank + P - 1) % P}) {
    const std::vector<PipelineStep> steps = pipeline_schedule(size, neighbour);
    for (size_t i = 0; i < steps.size(); ++i) places_[{neighbour, steps[i]}] = i;
  }
  flights_.clear();  // left from a run that ended with an exception
  most_in_flight_ = 0;
  for (const auto& [users, parameter] : tied_)  // earlier runs' gradients are sums over the stages: one stage has them
    if (users->rank() > 0) parameter.tensor.zero_grad();
  or_abort([&] { run_steps(batch); });
}

void Pipeline::run_steps(const MicroBatches& batch) {
  begin_step(batch);
  // DDP counts gradients; FSDP reduces what the step's last backward finds.
  std::shared_ptr<void> own = tensor_->fsdp() ? tensor_->no_sync() : nullptr;
  plan_batches(batch, /*trains=*/true);
  for (size_t i = 0; i < steps_.size(); ++i) {
    exchange(i, batch);
    if (i + 1 == steps_.size()) own = nullptr;
    if (steps_[i].backward)
      backward(i);
    else
      forward(steps_, i, batch);
  }
  exchange(steps_.size(), batch);
  finish_messages();
  if (tensor_->ddp()) tensor_->ddp()->end_pass();
  const NoGrad no_grad;
  for (const auto& [users, parameter] : tied_) {
    if (parameter.tensor.numel() == 0) continue;  // another data rank has it, on all stages
    const CollectiveOptions how{.name = "gradient of " + parameter.name, .scale = {}, .at_once = true};
    on_device(model_->device(), parameter.tensor.grad(),
              [&how, &group = users](const Tensor& x) { return group->all_reduce(x, ReduceOp::sum, how); });
  }
}

Tensor Pipeline::operator()(const Tensor& x) {
  WEFT_CHECK(x.defined() && x.dim() > 0 && x.size(0) > 0, "pipeline: expected at least one sample, got ", x);
  if (last_input_.defined()) {
    WEFT_CHECK(x.raw_data() == sample_.raw_data() && x.sizes() == sample_.sizes(),
               "pipeline: inside of loss(i): ", "expected the micro-batch inputs[i], ", sample_,
               ", got another tensor, ", x);
    return staged_->run(range(pipe_->size() - 1, options_.chunks - 1), last_input_, x);
  }
  WEFT_CHECK(!grad_enabled(), "pipeline: expected NoGrad, got a forward with gradients. Pipeline::run() trains");
  Tensor y;
  or_abort([&] { y = evaluated(x); });
  return y;
}

Tensor Pipeline::evaluated(const Tensor& x) {
  std::vector<Tensor> outputs;
  MicroBatches batch{.inputs = split(x, pipe_->size()), .precision = autocast_dtype().value_or(DType::f32)};
  // The data ranks of a sharded stage gather it together for each micro-batch: all have as many, whatever their rows.
  const size_t own = batch.inputs.size();
  while (tensor_->fsdp() && own > 0 && batch.inputs.size() < static_cast<size_t>(pipe_->size()))
    batch.inputs.push_back(batch.inputs.back());
  micro_batches_ = batch.inputs.size();
  batch.loss = [&](size_t micro) {
    const Tensor part = (*this)(batch.inputs[micro]);
    if (micro < own) outputs.push_back(part);
    return part;
  };
  std::vector<PipelineStep> steps = pipeline_schedule(
      {.stages = pipe_->size(), .chunks = options_.chunks, .micro_batches = static_cast<int64_t>(batch.inputs.size())},
      pipe_->rank());
  std::erase_if(steps, [](const PipelineStep& step) { return step.backward; });
  if (tensor_->fsdp()) tensor_->fsdp()->before_forward(x.size(0));
  plan_batches(batch, /*trains=*/false);
  for (size_t i = 0; i < steps.size(); ++i) {
    exchange(i, batch);
    forward(steps, i, batch);
  }
  exchange(steps.size(), batch);
  finish_messages();
  if (tensor_->fsdp()) tensor_->fsdp()->free_gathered();
  const std::string key = key_of(0, x, batch.precision);
  Tensor y = outputs.empty() ? Tensor() : concat(outputs, 0);
  if (!outputs_.contains(key)) {
    const Tensor form = y.defined() ? form_of(y) : form_of(Tensor::empty({0}, DType::f32, x.device()));
    const CollectiveOptions options{.name = "form of the output", .scale = {}, .at_once = true};
    outputs_.emplace(key, read_form(form, *pipe_->broadcast(form, pipe_->size() - 1, options)));
  }
  if (!y.defined()) y = Tensor::empty(outputs_.at(key).first, outputs_.at(key).second, x.device());
  broadcast_from_last(y, "output");
  return y;
}

uint64_t Pipeline::bytes_sent() const {
  uint64_t sum = batches_ ? batches_->group->bytes_sent() : 0;
  for (const auto* channel : {&activations_out_, &gradients_out_})
    if (*channel) sum += (*channel)->bytes_sent();
  return sum;
}

void Pipeline::broadcast_from_last(const Tensor& x, const std::string& name) {
  pipe_->broadcast(x, pipe_->size() - 1, {.name = name, .scale = {}, .at_once = true})->wait();
}

}  // namespace weft::dist
