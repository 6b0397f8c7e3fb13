// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/cases.h"
#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "kernels/runtime/variants.h"
#include "nn/models/bert.h"
#include "nn/models/decoder.h"
#include "nn/models/dinov2.h"
#include "nn/models/gpt.h"
#include "nn/models/vision_transformer.h"
#include "optim/optimizers.h"

// Whole transformers, as in training (AdamW) and in use, without dropout: ViT-S/16 on 8 images of 224x224, BERT-base on
// 8 sequences of 128 tokens, GPT-2 with 124 million parameters on 4 sequences of 256 tokens. The suite gpu has larger
// batches: ViT-B/16 on 256 images, DINOv2's ViT-B/14 on 128, BERT-base on 64 sequences of 128 tokens, GPT-2 on 16
// sequences of 1024 tokens.

namespace weft::benchmarks {
namespace {

struct Transformer {
  std::shared_ptr<nn::Module> model;
  Tensor x, labels;
};

Tensor labels_of(int64_t count, int64_t classes, Device device) {
  std::vector<int64_t> labels(static_cast<size_t>(count));
  for (size_t n = 0; n < labels.size(); ++n) labels[n] = static_cast<int64_t>(n) % classes;
  return Tensor::from(labels, device);
}

Transformer vit(const Target& target, nn::VisionTransformerOptions options, int64_t full_batch) {
  if (target.tiny)
    options = {.width = 32,
               .depth = 1,
               .heads = 2,
               .patch = 8,
               .image = 16,
               .classes = 10,
               .layer_scale = options.layer_scale};
  const int64_t batch = target.size(full_batch, 2);
  return {std::make_shared<nn::VisionTransformer>(options),
          normal({batch, options.image, options.image, 3}, 0, 1, DType::f32, target.device),
          labels_of(batch, options.classes, target.device)};
}

/// Fine-tuning as `linear_probe` does it, with a classifier of 100.
Transformer make_dinov2(const Target& target) {
  nn::VisionTransformerOptions options = nn::dinov2_options("dinov2_vitb14");
  options.classes = 100;
  options.image = 224;
  options.mask_token = false;
  return vit(target, options, 128);
}
Transformer make_vit(const Target& target) { return vit(target, {}, 8); }
Transformer make_vit_b16_b256(const Target& target) { return vit(target, nn::vit_options("vit_base16"), 256); }

Transformer bert(const Target& target, int64_t full_batch) {
  nn::BertOptions options = nn::bert_options(target.tiny ? "bert_tiny" : "bert_base");
  options.dropout = 0;
  const int64_t batch = target.size(full_batch, 2), tokens = target.size(128, 8);
  const Tensor ids = Tensor::arange(batch * tokens, DType::i64, target.device, 1000);
  return {std::make_shared<nn::Bert>(options), ids.reshape({batch, tokens}),
          labels_of(batch, options.classes, target.device)};
}

Transformer gpt(const Target& target, int64_t full_batch, int64_t full_tokens) {
  const nn::GptOptions options = nn::gpt_options(target.tiny ? "gpt_tiny" : "gpt2");
  const int64_t batch = target.size(full_batch, 2), tokens = target.size(full_tokens, 8);
  const Tensor ids = Tensor::arange(batch * tokens, DType::i64, target.device);
  return {std::make_shared<nn::Gpt>(options), ids.reshape({batch, tokens}),
          labels_of(batch * tokens, options.vocabulary, target.device)};
}

Transformer make_bert(const Target& target) { return bert(target, 8); }
Transformer make_bert_b64(const Target& target) { return bert(target, 64); }
Transformer make_gpt(const Target& target) { return gpt(target, 4, 256); }
Transformer make_gpt_b16(const Target& target) { return gpt(target, 16, 1024); }

using Maker = Transformer (*)(const Target&);

Work train(Maker make, const Target& target, DType precision) {
  const auto net = std::make_shared<Transformer>(make(target));
  net->model->to(target.device);
  const auto adam = std::make_shared<optim::AdamW>(net->model->parameters(), optim::AdamWOptions{.lr = 1e-4});
  if (precision != DType::f32) adam->flat()->keep_compute_copy(precision);
  const auto step = [net, adam, precision] {
    Tensor loss;
    {
      const Autocast low(precision);
      const auto* const gpt = dynamic_cast<const nn::Gpt*>(net->model.get());
      if (gpt && kernels::takes(kernels::Variant::chunked_loss)) {
        loss = gpt->loss(net->x, net->labels.reshape(net->x.sizes()));
      } else {
        const Tensor logits = (*net->model)(net->x);
        loss = cross_entropy(logits.reshape({-1, logits.size(-1)}), net->labels);
      }
    }
    adam->zero_grad();
    loss.backward();
    adam->step();
  };
  return work_on(target, step, static_cast<double>(net->x.size(0)));
}

Work infer(Maker make, const Target& target, DType precision) {
  const auto net = std::make_shared<Transformer>(make(target));
  net->model->to(target.device);
  net->model->eval();
  const auto step = [net, precision] {
    const NoGrad no_grad;
    const Autocast low(precision);
    (*net->model)(net->x);
  };
  return work_on(target, step, static_cast<double>(net->x.size(0)));
}

/// As sample_gpt: 128 tokens after prompts of 64, by a decoder with 110 million parameters.
Work generate(const Target& target, DType precision, int64_t batch) {
  nn::DecoderOptions options{.vocabulary = 32000, .positions = 256, .width = 768, .depth = 12, .heads = 12};
  options.tied = true;
  if (target.tiny) options.vocabulary = 100, options.width = 32, options.depth = 1, options.heads = 2;
  const auto model = std::make_shared<nn::Decoder>(options);
  model->to(target.device);
  model->eval();
  std::vector<std::vector<int64_t>> prompts(static_cast<size_t>(batch));
  for (size_t row = 0; row < prompts.size(); ++row)
    for (size_t i = 0; i < 64; ++i) prompts[row].push_back(static_cast<int64_t>((i + 1) * (row + 3) % 100));
  const int64_t tokens = target.size(128, 4);
  const auto step = [=] {
    const Autocast low(precision);
    nn::generate_batch(*model, prompts, {.tokens = tokens, .temperature = 0});
  };
  return work_on(target, step, static_cast<double>(batch * tokens));
}

}  // namespace

void add_transformer_cases(Cases& cases, const Target& target) {
  struct Kind {
    std::string name;
    Maker make;
    const char* unit;
  };
  for (const auto& [name, make, unit] :
       {Kind{"vit_s16", &make_vit, "images/s"}, Kind{"bert_base", &make_bert, "sequences/s"},
        Kind{"gpt2", &make_gpt, "sequences/s"}})
    for (const DType precision : {DType::f32, DType::bf16}) {
      const std::string ending = "_" + std::string(weft::name(precision));
      cases.push_back({name + "_train" + ending, unit, [=] { return train(make, target, precision); }});
      cases.push_back({name + "_infer" + ending, unit, [=] { return infer(make, target, precision); }});
    }
  for (const DType precision : {DType::f32, DType::bf16})
    for (const int64_t batch : {1, 8})
      cases.push_back({str("decoder_generate_", weft::name(precision), "_b", batch), "tokens/s",
                       [=] { return generate(target, precision, batch); }});
}

void add_gpu_transformer_training_cases(Cases& cases, const Target& target) {
  struct Kind {
    const char* name;
    Maker make;
    const char* unit;
  };
  for (const auto& [name, make, unit] :
       {Kind{"vit_b16_b256", &make_vit_b16_b256, "images/s"},  // in the suite roofline, too
        Kind{"dinov2_b128", &make_dinov2, "images/s"}, Kind{"bert_base_b64", &make_bert_b64, "sequences/s"},
        Kind{"gpt2_b16", &make_gpt_b16, "sequences/s"}})
    cases.push_back({str(name, "_train_bf16"), unit, [=] { return train(make, target, DType::bf16); }});
}

}  // namespace weft::benchmarks
