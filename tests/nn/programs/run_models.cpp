// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/layers/attention.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/reduce.h"
#include "io/weights/weights_file.h"
#include "nn/activation.h"
#include "nn/batch_norm.h"
#include "nn/copy_of.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/pool2d.h"
#include "nn/recurrent.h"
#include "nn/sequential.h"
#include "nn/transformer.h"
#include "nn/upsample.h"
#include "nn/weight_norm.h"
#include "optim/ema.h"
#include "optim/reduce_on_plateau.h"
#include "optim/schedule.h"
#include "tests/support/random_programs.h"
#include "train/torch_optimizer.h"

// Usage: run_models DEVICE f32|f64 < PROGRAMS
// Builds and trains the models that random_models.py draws and prints outputs, gradients and states. Models, optimizers
// and schedules are trees: a name, its numbers, its parts, each with a count before them.

namespace {

using namespace weft;
using tests::counted, tests::Numbers, tests::print, tests::Tensors;

struct Node {
  std::string name;
  Numbers n;
  std::vector<Node> parts;

  explicit Node(std::istream& in) {
    in >> name;
    n = counted<double, Numbers>(in);
    size_t count = 0;
    for (in >> count; count > 0; --count) parts.emplace_back(in);
  }
};

using ModulePtr = std::shared_ptr<nn::Module>;
using Modules = std::vector<ModulePtr>;

// Modules that only this program has.

/// y = f(x), with what f needs of a body.
struct Around : nn::Module {
  using Function = Tensor (*)(const nn::Module& body, const Tensor& x);
  ModulePtr body;
  Function function;
  Around(ModulePtr inner, Function f) : body(std::move(inner)), function(f) {}
  Tensor forward(const Tensor& x) const override { return function(*body, x); }
  void fields(nn::Visitor& v) override { v("body", body); }
};

struct Plain : nn::Module {
  using Function = Tensor (*)(const Tensor& x);
  Function function;
  explicit Plain(Function f) : function(f) {}
  Tensor forward(const Tensor& x) const override { return function(x); }
};

struct Branches : nn::Module {
  ModulePtr a, b;
  Branches(ModulePtr first, ModulePtr second) : a(std::move(first)), b(std::move(second)) {}
  Tensor forward(const Tensor& x) const override { return concat({(*a)(x), (*b)(x)}, -1); }
  void fields(nn::Visitor& v) override {
    v("a", a);
    v("b", b);
  }
};

/// A batch norm of sequences and volumes, whose positions become rows.
struct BatchNormOfRows : nn::BatchNorm2d {
  using BatchNorm2d::BatchNorm2d;
  Tensor forward(const Tensor& x) const override {
    return BatchNorm2d::forward(x.reshape({-1, x.size(-1)})).reshape(x.sizes());
  }
};

/// relu?(bn(conv(x)) + x?)
struct ConvNorm : nn::Module {
  std::shared_ptr<nn::Conv2d> conv;
  std::shared_ptr<nn::BatchNorm2d> bn;
  bool relu, residual;
  ConvNorm(const ModulePtr& c, const ModulePtr& b, bool with_relu, bool with_residual)
      : conv(std::dynamic_pointer_cast<nn::Conv2d>(c)),
        bn(std::dynamic_pointer_cast<nn::BatchNorm2d>(b)),
        relu(with_relu),
        residual(with_residual) {}
  Tensor forward(const Tensor& x) const override {
    return nn::conv_bn(*conv, *bn, x, {.relu = relu, .residual = residual ? x : Tensor()});
  }
  void fields(nn::Visitor& v) override {
    v("conv", conv);
    v("bn", bn);
  }
};

/// Attention whose masks follow from the sizes.
struct MaskedAttention : nn::MultiHeadAttention {
  bool causal, lengths, mask;
  explicit MaskedAttention(const Numbers& n)
      : MultiHeadAttention(n.at(0), n.at(1), {.bias = n.flag(2), .dropout = n.real(3)}),
        causal(n.flag(4)),
        lengths(n.flag(5)),
        mask(n.flag(6)) {}
  Tensor forward(const Tensor& x) const override {
    const int64_t N = x.size(0), T = x.size(1);
    std::vector<int64_t> counts, seen;
    for (int64_t b = 0; b < N; ++b) {
      counts.push_back(1 + b % T);
      for (int64_t j = 0; j < T; ++j) seen.push_back(j == 0 || (b + j) % 3 != 0);
    }
    AttentionOptions options{.causal = causal};
    if (lengths) options.key_lengths = Tensor::from(counts, x.device());
    if (mask) options.key_mask = ne(Tensor::from(seen, {N, T}, x.device()), 0.0);
    return MultiHeadAttention::forward(x, options);
  }
};

/// From states of 0.25, with the last ones added to each output.
template <class Layer>
struct FromStates : Layer {
  using Layer::Layer;
  Tensor forward(const Tensor& x) const override {
    const bool batch_first = this->options().batch_first;
    const int64_t B = x.size(batch_first ? 0 : 1);
    const Tensor h =
        Tensor::full({this->options().layers * this->directions(), B, this->hidden()}, 0.25, x.dtype(), x.device());
    Tensor y, last;
    if constexpr (std::is_same_v<Layer, nn::LSTM>) {
      const nn::LstmOutput all = (*this)(x, h, h);
      y = all.y;
      last = sum(all.h + all.c, {0}, false);
    } else {
      const nn::GruOutput all = (*this)(x, h);
      y = all.y;
      last = sum(all.h, {0}, false);
    }
    if (this->directions() == 2) last = concat({last, last}, -1);
    return y + last.unsqueeze(batch_first ? 1 : 0);
  }
};

/// A model of language: tokens, a body, logits by the tokens' table.
struct Tied : nn::Module {
  nn::Embedding embedding;
  ModulePtr body;
  Tied(int64_t count, int64_t size, ModulePtr inner) : embedding(count, size), body(std::move(inner)) {}
  Tensor forward(const Tensor& x) const override { return embedding.tied_linear((*body)(embedding(x))); }
  void fields(nn::Visitor& v) override {
    v("embedding", embedding);
    v("body", body);
  }
};

template <class Layer, class... Arguments>
ModulePtr made(Arguments&&... arguments) {
  return std::make_shared<Layer>(std::forward<Arguments>(arguments)...);
}

Size2d size2(const Numbers& n, size_t first) { return {n.at(first), n.at(first + 1)}; }
Size3d size3(const Numbers& n, size_t first) { return {n.at(first), n.at(first + 1), n.at(first + 2)}; }

Tensor rows(const Tensor& x) { return x.reshape({x.size(0), x.numel() / x.size(0) / x.size(-1), x.size(-1)}); }

Conv2dOptions conv2d_options(const Numbers& n) {  // in, out, groups, bias, kernel, stride, padding, dilation
  Conv2dOptions options;
  options.stride = size2(n, 6);
  options.padding = size2(n, 8);
  options.dilation = size2(n, 10);
  options.groups = n.at(2);
  return options;
}

ModulePtr conv2d_of(const Numbers& n) {
  return made<nn::Conv2d>(n.at(0), n.at(1), size2(n, 4), conv2d_options(n), nn::Conv2dWeights{.bias = n.flag(3)});
}

nn::BatchNorm2dOptions batch_norm_options(const Numbers& n) {
  return {.eps = n.real(1), .momentum = n.real(2), .affine = n.flag(3), .track_running_stats = n.flag(4)};
}

Pool2dOptions pool_options(const Numbers& n) {
  return {.kernel = size2(n, 0),
          .stride = size2(n, 2),
          .padding = size2(n, 4),
          .count_include_pad = n.flag(6),
          .ceil_mode = n.flag(7)};
}

ModulePtr recurrent_of(const std::string& name, const Numbers& n) {
  const nn::RecurrentOptions options{
      .layers = n.at(2), .bias = n.flag(3), .batch_first = n.flag(4), .dropout = n.real(5), .bidirectional = n.flag(6)};
  const int64_t in = n.at(0), hidden = n.at(1);
  if (name == "lstm")
    return n.flag(7) ? made<FromStates<nn::LSTM>>(in, hidden, options) : made<nn::LSTM>(in, hidden, options);
  return n.flag(7) ? made<FromStates<nn::GRU>>(in, hidden, options) : made<nn::GRU>(in, hidden, options);
}

using Maker = ModulePtr (*)(const Numbers&, const Modules&);
#define LAYER(name, ...)                                                                                \
  {                                                                                                     \
    name, [](const Numbers& n, const Modules& p) -> ModulePtr { return (void)n, (void)p, __VA_ARGS__; } \
  }
#define AROUND(name, ...) \
  LAYER(name, made<Around>(p[0], [](const nn::Module& body, const Tensor& x) { return __VA_ARGS__; }))
#define PLAIN(name, ...) LAYER(name, made<Plain>([](const Tensor& x) { return __VA_ARGS__; }))

const std::map<std::string, Maker> kLayers = {
    LAYER("linear", made<nn::Linear>(n.at(0), n.at(1), nn::LinearOptions{.bias = n.flag(2)})),
    LAYER("conv1d",
          made<nn::Conv1d>(n.at(0), n.at(1), n.at(4),
                           Conv1dOptions{.stride = n.at(5), .padding = n.at(6), .dilation = n.at(7), .groups = n.at(2)},
                           nn::Conv2dWeights{.bias = n.flag(3)})),
    LAYER("conv2d", conv2d_of(n)),
    LAYER(
        "conv3d",
        made<nn::Conv3d>(
            n.at(0), n.at(1), size3(n, 4),
            Conv3dOptions{.stride = size3(n, 7), .padding = size3(n, 10), .dilation = size3(n, 13), .groups = n.at(2)},
            nn::Conv2dWeights{.bias = n.flag(3)})),
    LAYER("conv_transpose2d", made<nn::ConvTranspose2d>(n.at(0), n.at(1), size2(n, 4),
                                                        ConvTranspose2dOptions{.stride = size2(n, 6),
                                                                               .padding = size2(n, 8),
                                                                               .dilation = size2(n, 10),
                                                                               .output_padding = size2(n, 12),
                                                                               .groups = n.at(2)},
                                                        nn::Conv2dWeights{.bias = n.flag(3)})),
    LAYER("patch_embed", made<nn::PatchEmbed>(n.at(0), n.at(1), n.at(2))),
    LAYER("batch_norm", n.flag(5) ? made<BatchNormOfRows>(n.at(0), batch_norm_options(n))
                                  : made<nn::BatchNorm2d>(n.at(0), batch_norm_options(n))),
    LAYER("layer_norm", made<nn::LayerNorm>(n.at(0), n.real(1))),
    LAYER("rms_norm", made<nn::RMSNorm>(n.at(0), n.real(1))),
    LAYER("group_norm", made<nn::GroupNorm>(n.at(0), n.at(1), n.real(2))),
    LAYER("instance_norm",
          made<nn::InstanceNorm>(n.at(0), nn::InstanceNormOptions{.eps = n.real(1), .affine = n.flag(2)})),
    LAYER("max_pool2d", made<nn::MaxPool2d>(pool_options(n))),
    LAYER("avg_pool2d", made<nn::AvgPool2d>(pool_options(n))),
    LAYER("adaptive_avg_pool2d", made<nn::AdaptiveAvgPool2d>(size2(n, 0))),
    LAYER("upsample",
          made<nn::Upsample>(nn::UpsampleOptions{.size = n.flag(2) ? std::optional(size2(n, 3)) : std::nullopt,
                                                 .scale = {n.real(3), n.real(4)},
                                                 .interpolation = static_cast<Interpolation>(n.at(0)),
                                                 .align_corners = n.flag(1)})),
    LAYER("relu", made<nn::ReLU>()),
    LAYER("leaky_relu", made<nn::LeakyReLU>(n.real(0))),
    LAYER("elu", made<nn::ELU>(n.real(0))),
    LAYER("silu", made<nn::SiLU>()),
    LAYER("softplus", made<nn::Softplus>()),
    LAYER("mish", made<nn::Mish>()),
    LAYER("sigmoid", made<nn::Sigmoid>()),
    LAYER("tanh", made<nn::Tanh>()),
    LAYER("gelu", made<nn::GELU>(static_cast<Gelu>(n.at(0)))),
    LAYER("dropout", made<nn::Dropout>(n.real(0))),
    LAYER("drop_path", made<nn::DropPath>(n.real(0))),
    LAYER("flatten", made<nn::Flatten>()),
    LAYER("identity", made<nn::Identity>()),
    LAYER("embedding", made<nn::Embedding>(n.at(0), n.at(1), nn::EmbeddingOptions{.padding = n.at(2)})),
    LAYER("embedding_bag",
          made<nn::EmbeddingBag>(n.at(0), n.at(1),
                                 EmbeddingBagOptions{.mode = static_cast<Bag>(n.at(2)), .padding = n.at(3)})),
    LAYER("mlp", made<nn::Mlp>(n.at(0), n.at(1))),
    LAYER("swiglu", made<nn::SwiGlu>(n.at(0), n.at(1))),
    LAYER("layer_scale", made<nn::LayerScale>(n.at(0), 1.0)),
    LAYER("attention", made<MaskedAttention>(n)),
    LAYER("block",
          made<nn::TransformerBlock>(nn::TransformerBlockOptions{.width = n.at(0),
                                                                 .heads = n.at(1),
                                                                 .hidden = n.at(2),
                                                                 .feed_forward = static_cast<nn::FeedForward>(n.at(3)),
                                                                 .layer_scale = n.real(4),
                                                                 .eps = n.real(5)})),
    LAYER("lstm", recurrent_of("lstm", n)),
    LAYER("gru", recurrent_of("gru", n)),
    LAYER("weight_norm", made<nn::WeightNorm<nn::Linear>>(std::dynamic_pointer_cast<nn::Linear>(p[0]))),
    LAYER("weight_norm2d", made<nn::WeightNorm<nn::Conv2d>>(std::dynamic_pointer_cast<nn::Conv2d>(p[0]))),
    LAYER("sequential", made<nn::Sequential>(p)),
    LAYER("branches", made<Branches>(p[0], p[1])),
    LAYER("conv_norm", made<ConvNorm>(p[0], p[1], n.flag(0), n.flag(1))),
    LAYER("tied", made<Tied>(n.at(0), n.at(1), p[0])),
    AROUND("residual", x + body(x)),
    AROUND("unused", ((void)body, x)),
    AROUND("recomputed", checkpoint([f = &body](const Tensors& t) { return (*f)(t[0]); }, {x})),
    PLAIN("tokens", rows(x)),
    PLAIN("mean", mean(rows(x), {1})),
};

ModulePtr build(const Node& node) {
  Modules parts;
  for (const Node& part : node.parts) parts.push_back(build(part));
  return kLayers.at(node.name)(node.n, parts);
}

// Optimizers and schedules.

/// A default where the number is negative.
std::optional<double> given(double number) { return number < 0 ? std::nullopt : std::optional(number); }

struct Rule {
  std::unique_ptr<optim::Optimizer> optimizer;
  TorchObject::Dict options = {};
};

Rule make_optimizer(const Node& node, const std::vector<optim::ParameterGroup>& groups) {
  using namespace optim;
  const Numbers& n = node.n;
  const auto r = [&](size_t i) { return n.real(i); };
  if (node.name == "sgd") {
    const SgdOptions o{r(0), r(1), r(2), n.flag(3), r(4), n.flag(5)};
    return {std::make_unique<SGD>(groups, o), train::torch_options(o)};
  }
  if (node.name == "adam") {
    const AdamOptions o{r(0), r(1), r(2), r(3), r(4), n.flag(5), n.flag(6)};
    return {std::make_unique<Adam>(groups, o), train::torch_options(o)};
  }
  if (node.name == "adamw") {
    const AdamWOptions o{r(0), r(1), r(2), r(3), r(4), n.flag(5), n.flag(6)};
    return {std::make_unique<AdamW>(groups, o),
            train::torch_options(AdamOptions{r(0), r(1), r(2), r(3), r(4), n.flag(5), n.flag(6)})};
  }
  if (node.name == "adagrad")
    return {std::make_unique<Adagrad>(groups, AdagradOptions{r(0), r(1), r(2), r(3), r(4), n.flag(5)})};
  if (node.name == "adadelta")
    return {std::make_unique<Adadelta>(groups, AdadeltaOptions{r(0), r(1), r(2), r(3), n.flag(4)})};
  if (node.name == "rmsprop")
    return {std::make_unique<RMSprop>(groups, RMSpropOptions{r(0), r(1), r(2), r(3), r(4), n.flag(5), n.flag(6)})};
  if (node.name == "adafactor")
    return {
        std::make_unique<Adafactor>(groups, AdafactorOptions{r(0), r(1), given(r(2)), r(3), r(4), r(5), n.flag(6)})};
  if (node.name == "lion") return {std::make_unique<Lion>(groups, LionOptions{r(0), r(1), r(2), r(3)})};
  if (node.name == "lars")
    return {std::make_unique<LARS>(groups, LarsOptions{r(0), r(1), n.flag(2), r(3), r(4), r(5), n.flag(6)})};
  if (node.name == "lamb")
    return {std::make_unique<LAMB>(groups, LambOptions{r(0), r(1), r(2), r(3), r(4), n.flag(5), n.flag(6)})};
  fail("no optimizer '", node.name, "'");
}

optim::SchedulePtr make_schedule(const Node& node) {
  using namespace optim;
  const Numbers& n = node.n;
  std::vector<SchedulePtr> parts;
  for (const Node& part : node.parts) parts.push_back(make_schedule(part));
  if (node.name == "step") return std::make_shared<StepSchedule>(n.at(0), n.real(1));
  if (node.name == "multi_step") return std::make_shared<MultiStepSchedule>(n.from(1), n.real(0));
  if (node.name == "exponential") return std::make_shared<ExponentialSchedule>(n.real(0));
  if (node.name == "polynomial") return std::make_shared<PolynomialSchedule>(n.at(0), n.real(1));
  if (node.name == "lambda")
    return std::make_shared<LambdaSchedule>([](int64_t step) { return 1 / (1 + 0.5 * static_cast<double>(step)); });
  if (node.name == "linear")
    return std::make_shared<LinearSchedule>(n.at(0), LinearScheduleOptions{n.real(1), n.real(2)});
  if (node.name == "cosine") return std::make_shared<CosineSchedule>(n.at(0), n.real(1));
  if (node.name == "restarts") return std::make_shared<CosineRestarts>(n.at(0), n.at(1), n.real(2));
  if (node.name == "one_cycle")
    return std::make_shared<OneCycleSchedule>(OneCycleOptions{.max_lr = n.real(0),
                                                              .steps = n.at(1),
                                                              .rise = n.real(2),
                                                              .start_divisor = n.real(3),
                                                              .end_divisor = n.real(4),
                                                              .linear = n.flag(5),
                                                              .three_phase = n.flag(6)});
  if (node.name == "sequential") return std::make_shared<SequentialSchedule>(parts, n.from(0));
  if (node.name == "chained") return std::make_shared<ChainedSchedule>(parts);
  fail("no schedule '", node.name, "'");
}

// Losses.

Reduction reduction(const Numbers& n) { return static_cast<Reduction>(n.at(0)); }
Tensor optional(const Tensors& t, size_t i) { return i < t.size() ? t[i] : Tensor(); }

#define LOSS WEFT_PROGRAM_OP
const std::map<std::string, tests::Op> kLosses = {
    LOSS("cross_entropy", cross_entropy(t[0], t[1],
                                        {.label_smoothing = n.real(1),
                                         .ignore_index = n.at(2),
                                         .reduction = reduction(n),
                                         .weight = optional(t, 2)})),
    LOSS("nll_loss", nll_loss(log_softmax(t[0], -1), t[1], {.ignore_index = n.at(2), .reduction = reduction(n)})),
    LOSS("mse_loss", mse_loss(t[0], t[1], reduction(n))),
    LOSS("l1_loss", l1_loss(t[0], t[1], reduction(n))),
    LOSS("smooth_l1_loss", smooth_l1_loss(t[0], t[1], n.real(1), reduction(n))),
    LOSS("kl_div", kl_div(log_softmax(t[0], -1), softmax(t[1], -1), reduction(n))),
    LOSS("bce_with_logits",
         bce_with_logits(t[0], sigmoid(t[1]), {.positive_weight = optional(t, 2), .reduction = reduction(n)})),
    LOSS("triplet_margin_loss",
         triplet_margin_loss(t[0], t[1], t[2], {.margin = n.real(1), .swap = n.flag(2), .reduction = reduction(n)})),
};

// Programs.

/// The parameters and how each lies in memory.
struct Layouts : nn::Visitor {
  struct Found {
    NamedTensor parameter;
    nn::Layout layout;
  };
  std::vector<Found> all;
  explicit Layouts(nn::Module& model) { model.fields(*this); }
  void parameter(const std::string& path, Tensor& tensor, nn::Layout layout) override {
    all.push_back({{path, tensor}, layout});
  }
};

class Training : public tests::RandomProgram {
 public:
  Training(Device device, DType dtype) : RandomProgram(device, dtype, kLosses) {}

 private:
  /// The objects that a resumed program makes again.
  struct Parts {
    ModulePtr model;
    std::vector<optim::ParameterGroup> groups;
    Rule rule;
    std::unique_ptr<optim::Scheduler> scheduler;
    std::unique_ptr<optim::ReduceOnPlateau> plateau;
    std::unique_ptr<optim::Ema> ema;

    train::TorchOptimizer torch() const { return {*model, *rule.optimizer, groups, rule.options}; }
  };

  ModulePtr fresh_model() const {
    ModulePtr model = build(*model_);
    model->to(dtype_);
    model->to(device_);
    const std::vector<NamedTensor> all = model->parameters();
    for (const int64_t i : frozen_) Tensor(all[static_cast<size_t>(i)].tensor).requires_grad_(false);
    return model;
  }

  void set_optimizer(Parts& parts) const {
    const std::vector<NamedTensor> all = parts.model->parameters();
    for (const Node& group : optimizer_->parts) {
      optim::ParameterGroup& own = parts.groups.emplace_back();
      own.lr = given(group.n.real(0));
      own.weight_decay = given(group.n.real(1));
      for (const int64_t i : group.n.from(2, group.n.size())) own.parameters.push_back(all[static_cast<size_t>(i)]);
    }
    parts.rule = make_optimizer(*optimizer_, parts.groups);
    if (schedule_ && schedule_->name == "plateau") {
      const Numbers& n = schedule_->n;
      parts.plateau = std::make_unique<optim::ReduceOnPlateau>(
          *parts.rule.optimizer, optim::ReduceOnPlateauOptions{.maximize = n.flag(0),
                                                               .factor = n.real(1),
                                                               .patience = n.at(2),
                                                               .threshold = n.real(3),
                                                               .absolute_threshold = n.flag(4),
                                                               .cooldown = n.at(5),
                                                               .min_lr = n.real(6)});
    } else if (schedule_) {
      parts.scheduler = std::make_unique<optim::Scheduler>(*parts.rule.optimizer, make_schedule(*schedule_));
    }
    if (!ema_.empty())
      parts.ema = std::make_unique<optim::Ema>(parts.rule.optimizer->flat(), parts.model->buffers(),
                                               optim::EmaOptions{.decay = ema_.real(0), .warmup = ema_.flag(1)});
  }

  void print_state(int number) {
    for (const auto& [name, tensor] : now_.model->state_dict().tensors) print("state", str(number, '.', name), tensor);
    const TorchObject state = now_.torch().state();
    for (const auto& [key, entries] : std::get<TorchObject::Dict>(state.at("state", "state").is))
      for (const auto& [name, value] : std::get<TorchObject::Dict>(entries.is))
        print("moment", str(number, '.', std::get<int64_t>(key), '.', std::get<std::string>(name)),
              std::get<Tensor>(value.is));
    int group = 0;
    for (const TorchObject& entry : std::get<TorchObject::List>(state.at("param_groups", "state").is))
      print("lr", str(number, '.', group++), Tensor::full({}, entry.at("lr", "group").number("lr"), DType::f64));
  }

  void save(const std::string& file) {
    TorchObject::Dict all{{"model", TorchObject::of(now_.model->state_dict())}, {"optimizer", now_.torch().state()}};
    write_torch(file, TorchObject{std::move(all)});
  }

  /// A new model and optimizer go on: from a file of Weft's or PyTorch's, or without any.
  void resume(const std::string& file) {
    Parts next;
    const int64_t steps = now_.rule.optimizer->steps();
    if (file == "-") {
      next.model = nn::copy_of(*now_.model, [this] { return fresh_model(); });
      set_optimizer(next);
      next.rule.optimizer->load_state_dict(now_.rule.optimizer->state_dict());
    } else {
      next.model = fresh_model();
      set_optimizer(next);
      const TorchObject saved = read_torch(file);
      next.model->load_state_dict(saved.at("model", file).state(file));
      next.torch().load(saved.at("optimizer", file), steps, file);
      const auto modes = now_.model->modules();
      for (const auto& [name, module] : next.model->modules())
        for (const auto& [other, same] : modes)
          if (other == name) module->train(same->is_training());
    }
    if (next.scheduler) next.scheduler->load_state_dict(now_.scheduler->state_dict());
    if (next.plateau) next.plateau->load_state_dict(now_.plateau->state_dict());
    if (next.ema) next.ema->load_state_dict(now_.ema->state_dict(), now_.ema->buffers());
    now_ = std::move(next);
  }

  void run_other(const std::string& op, int number, std::istream& in) override {
    if (op == "model") {
      model_.emplace(in);
      now_.model = fresh_model();
    } else if (op == "freeze") {
      for (const int64_t i : frozen_ = counted<int64_t>(in))
        now_.model->parameters().at(static_cast<size_t>(i)).tensor.requires_grad_(false);
    } else if (op == "load") {
      std::string file;
      in >> file;
      now_.model->load_state_dict(open_weights(file)->read_all());
    } else if (op == "optimizer") {
      optimizer_.emplace(in);
      set_optimizer(now_);
    } else if (op == "schedule") {  // before the optimizer, as ema
      schedule_.emplace(in);
    } else if (op == "ema") {
      ema_ = counted<double, Numbers>(in);
    } else if (op == "mode") {
      bool training = false;
      std::string path;
      in >> training >> path;
      for (const auto& [name, module] : now_.model->modules())
        if (name == (path == "." ? "" : path)) module->train(training);
    } else if (op == "run") {
      keep(number, (*now_.model)(tensors(in).at(0)));
    } else if (op == "evaluate") {
      const NoGrad no_grad;
      keep(number, (*now_.model)(tensors(in).at(0)));
    } else if (op == "zero") {
      now_.rule.optimizer->zero_grad();
    } else if (op == "coarse") {  // gradients that are multiples of 1 / n
      const NoGrad no_grad;
      const double n = counted<double, Numbers>(in).real(0);
      for (const NamedTensor& parameter : now_.model->parameters())
        if (parameter.tensor.has_gradient()) {
          const Tensor gradient = parameter.tensor.grad();
          gradient.copy_(round(gradient * n) * (1 / n));
        }
    } else if (op == "forget") {
      for (const int i : counted<int>(in)) now_.model->parameters().at(i).tensor.zero_grad();
    } else if (op == "clip") {
      keep(number, clip_grad_norm(now_.model->parameters(), counted<double, Numbers>(in).real(0)));
    } else if (op == "gradients") {
      for (const auto& [parameter, layout] : Layouts(*now_.model).all) {
        const Tensor gradient = parameter.tensor.has_gradient() ? parameter.tensor.grad() : Tensor();
        if (parameter.tensor.requires_grad())
          print("gradient", str(number, '.', parameter.name),
                gradient.defined() && layout == nn::Layout::ohwi ? to_file_order(gradient) : gradient);
      }
    } else if (op == "step") {
      const Numbers metric = counted<double, Numbers>(in);
      now_.rule.optimizer->step();
      if (now_.scheduler) now_.scheduler->step();
      if (now_.plateau) now_.plateau->step(metric.real(0));
      if (now_.ema) now_.ema->update();
    } else if (op == "rate") {
      const Numbers n = counted<double, Numbers>(in);
      now_.rule.optimizer->set_lr(n.real(1), static_cast<int>(n.at(0)));
    } else if (op == "state") {
      print_state(number);
    } else if (op == "average") {
      const auto averaged = now_.ema->swapped();
      for (const auto& [name, tensor] : now_.model->state_dict().tensors)
        print("average", str(number, '.', name), tensor);
    } else if (op == "save" || op == "resume") {
      std::string file;
      in >> file;
      op == "save" ? save(file) : resume(file);
    } else {
      fail("no op '", op, "'");
    }
  }

  std::optional<Node> model_, optimizer_, schedule_;
  std::vector<int64_t> frozen_;
  Numbers ema_;
  Parts now_;
};

}  // namespace

int main(int argc, char** argv) { return tests::run_random_programs<Training>(argc, argv); }
