// SPDX-License-Identifier: Apache-2.0
#include "nn/models/decoder.h"

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "kernels/runtime/allocator.h"
#include "tests/nn/leaves.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::nn {
namespace {

using testing::HasSubstr;

constexpr DecoderOptions kSmallDecoder{
    .vocabulary = 13, .positions = 200, .width = 16, .depth = 2, .heads = 4, .groups = 2};

Tensor some_ids(int64_t count, int64_t tokens) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count * tokens; ++i) ids.push_back(i * i * 5 % 13);
  return Tensor::from(ids, {count, tokens});
}

// The counts that the publishers' cards state.
TEST(Decoder, HasThePublishedSizes) {
  const SkipInit sizes_alone;
  const auto count = [](const char* name) {
    Decoder model(decoder_options(name));
    return parameter_count(model);
  };
  EXPECT_EQ(count("smollm_135m"), 134'515'008);
  EXPECT_EQ(count("llama3.2_1b"), 1'235'814'400);
  EXPECT_EQ(count("llama3.1_8b"), 8'030'261'248);
  EXPECT_EQ(count("mistral_7b"), 7'241'732'096);
  EXPECT_EQ(count("qwen2.5_0.5b"), 494'032'768);
  EXPECT_EQ(count("qwen3_0.6b"), 596'049'920);
  EXPECT_THAT(error_text([] { decoder_options("llama3"); }), HasSubstr("no model is called 'llama3'"));
}

TEST(Decoder, EveryMemberIsNamedAndTakesPart) {
  DecoderOptions options = kSmallDecoder;
  options.qkv_bias = options.qk_norm = true;
  for (const bool tied : {false, true}) {
    options.tied = tied;
    Decoder model(options);
    EXPECT_EQ(forgotten_members(model, some_ids(2, 8)), 0u);
    EXPECT_EQ(idle_members(model, some_ids(2, 8)), 0u);
  }
}

TEST(Decoder, AWindowIsOneForWholeTextsAndForTokens) {
  manual_seed(1);
  DecoderOptions options = kSmallDecoder;
  for (const int64_t window : {3, 70}) {
    options.window = window;
    Decoder model(options);
    model.to(DType::f64);
    const NoGrad no_grad;
    const Tensor x = some_ids(1, 150), whole = model(x);
    std::vector<KeysAndValues> past;
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < 150; ++i) parts.push_back(model.extend(x.slice(1, i, 1), past));
    const Tensor apart = concat(parts, 1) - whole;
    EXPECT_LT(max(apart * apart).item(), 1e-20) << window;
    // One layer's window: what lies further back does not count.
    options.depth = 1;
    Decoder one(options);
    std::vector<int64_t> other = x.to_vector<int64_t>();
    other[100] = (other[100] + 1) % 13;
    const Tensor change = one(Tensor::from(other, {1, 150})) - one(x);
    const Tensor seen = sum(change * change, {2}).flatten();
    for (int64_t i = 0; i < 150; ++i)
      EXPECT_EQ(seen.select(0, i).item() > 0, i >= 100 && i < 100 + window) << i << " of " << window;
    options.depth = 2;
  }
}

// Room at the end, room that runs out, copies that go on apart, rows that are left out, and gradients.
TEST(KeysAndValues, AppendAsConcatDoes) {
  for (const DeviceKind kind : tests::test_devices())
    for (const int64_t capacity : {0, 5, 300}) {
      const auto some = [&](int64_t tokens, int64_t seed) {
        manual_seed(static_cast<uint64_t>(seed));
        return normal({3, tokens, 2, 4}).to(Device{kind});
      };
      const auto check = [](const KeysAndValues& got, const Tensor& keys, const Tensor& values) {
        EXPECT_EQ(got.keys.to(Device{}).contiguous().to_vector<float>(), keys.to(Device{}).to_vector<float>());
        EXPECT_EQ(got.values.to(Device{}).contiguous().to_vector<float>(), values.to(Device{}).to_vector<float>());
      };
      KeysAndValues past{.capacity = capacity};
      Tensor keys = some(4, 1), values = some(4, 2);
      past.append(keys, values);
      const void* place = nullptr;
      for (int64_t i = 0; i < 60; ++i) {
        const Tensor k = some(1, 10 + i), v = some(1, 100 + i);
        past.append(k, v);
        keys = concat({keys, k}, 1), values = concat({values, v}, 1);
        if (i == 4) place = past.keys.raw_data();
      }
      check(past, keys, values);
      EXPECT_EQ(past.keys.raw_data(), place) << "the tokens were moved";
      KeysAndValues other = past;
      const Tensor k = some(1, 7), v = some(1, 8);
      past.append(k, k), other.append(v, v);
      check(past, concat({keys, k}, 1), concat({values, k}, 1));
      check(other, concat({keys, v}, 1), concat({values, v}, 1));
      KeysAndValues rest{past.keys.slice(0, 1, 2), past.values.slice(0, 1, 2), past.capacity};
      rest.append(k.slice(0, 0, 2), v.slice(0, 0, 2));
      EXPECT_EQ(rest.keys.sizes(), (Shape{2, 66, 2, 4}));
      KeysAndValues first = past;  // rows from the first on begin where the room does
      first.keys = first.keys.slice(0, 0, 1), first.values = first.values.slice(0, 0, 1);
      const Tensor before = first.keys.clone();
      first.append(k.slice(0, 1, 1), v.slice(0, 1, 1));
      check(first, concat({before, k.slice(0, 1, 1)}, 1), concat({past.values.slice(0, 0, 1), v.slice(0, 1, 1)}, 1));
      const Tensor trained = some(1, 9).requires_grad_();
      past.append(trained, v);
      sum(past.keys * past.keys).backward();
      EXPECT_EQ(trained.grad().to(Device{}).to_vector<float>(),
                (trained.detach() * 2.0).to(Device{}).to_vector<float>());
    }
}

TEST(Decoder, IsTheSameOnEveryDevice) {
  for (const DeviceKind kind : tests::test_devices())
    for (const int64_t window : {0, 3}) {
      DecoderOptions options = kSmallDecoder;
      options.window = window;
      manual_seed(7);
      Decoder here(options);
      manual_seed(7);
      Decoder there(options);
      there.to(Device{kind});
      const Tensor ids = some_ids(2, 6), same_ids = ids.to(Device{kind});
      cross_entropy(here(ids), ids).backward();
      cross_entropy(there(same_ids), same_ids).backward();
      for (size_t i = 0; i < here.parameters().size(); ++i) {
        const auto [name, parameter] = here.parameters()[i];
        const Tensor apart = parameter.grad() - there.parameters()[i].tensor.grad().to(Device{});
        EXPECT_LT(max(abs(apart)).item(), 1e-6) << name;
      }
      const NoGrad no_grad;
      std::vector<KeysAndValues> past;
      there.extend(same_ids.slice(1, 0, 5), past);
      const Tensor next = there.extend(same_ids.slice(1, 5, 1), past).select(1, 0).to(Device{});
      EXPECT_LT(max(abs(next - here(ids).select(1, 5))).item(), 1e-6);
    }
}

TEST(Decoder, SharedKeysAndValuesAreNotCopiedInTraining) {
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    constexpr int64_t kTokens = 128, kHeads = 8, kSize = 64;
    constexpr size_t kAllHeads = sizeof(float) * kTokens * kHeads * kSize;  // keys, if each head had its own
    struct Bytes {
      size_t kept, peak;  // after a forward, for its backward; of both
    };
    const auto bytes_of = [&](int64_t groups, int64_t window) {
      DecoderAttention layer({.width = 16, .heads = kHeads, .groups = groups, .head_size = kSize, .window = window}, 0);
      layer.to(device);
      const Tensor x = normal({1, kTokens, 16}, 0, 1, DType::f32, device);
      kernels::CachingAllocator& memory = kernels::CachingAllocator::of(device);
      memory.reset_peak();
      const size_t before = memory.stats().live;
      const Tensor y = layer(x);
      const size_t kept = memory.stats().live - before;
      y.backward(x);
      return Bytes{kept, memory.stats().peak_live - before};
    };
    const Bytes own = bytes_of(kHeads, 0), shared = bytes_of(1, 0), windowed = bytes_of(1, 9);
    EXPECT_GT(own.kept - shared.kept, kAllHeads * 3 / 2);  // k and v of 7 heads of 8
    EXPECT_GT(own.peak - shared.peak, kAllHeads * 3);      // and their gradients
    EXPECT_EQ(windowed.kept, shared.kept);
    EXPECT_EQ(windowed.peak, shared.peak);
  }
}

TEST(Decoder, RunsInStretches) {
  manual_seed(2);
  Decoder model(kSmallDecoder);
  const Tensor ids = some_ids(2, 6);
  const NoGrad no_grad;
  EXPECT_EQ(model.run({1, 2}, model.run({0, 1}, ids, ids), ids).to_vector<float>(), model(ids).to_vector<float>());
  for (const NamedTensor& parameter : model.parameters())
    EXPECT_TRUE(model.uses({0, 1}, parameter.name) || model.uses({1, 2}, parameter.name)) << parameter.name;
  EXPECT_FALSE(model.uses({1, 2}, "model.embed_tokens.weight"));
  EXPECT_FALSE(model.uses({0, 1}, "lm_head.weight"));
  EXPECT_FALSE(model.uses({0, 1}, "model.layers.1.self_attn.q_proj.weight"));
}

TEST(Decoder, RecomputationGivesTheSameGradients) {
  DecoderOptions options = kSmallDecoder;
  std::vector<float> gradients[2];
  for (const bool again : {false, true}) {
    manual_seed(3);
    options.recompute = again;
    Decoder model(options);
    cross_entropy(model(some_ids(2, 6)), some_ids(2, 6)).backward();
    gradients[again] = model.blocks[0]->self_attn.k_proj.weight.grad().to_vector<float>();
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(Lora, TrainsAdaptersAloneAndMergesThem) {
  manual_seed(4);
  DecoderOptions options = kSmallDecoder;
  options.qkv_bias = true;
  Decoder model(options);
  const Tensor ids = some_ids(2, 6), before = model(ids).detach();
  const StateDict plain = model.state_dict();
  EXPECT_EQ(add_lora(model, {.rank = 3, .alpha = 6}), 2 * 7);
  EXPECT_EQ(model(ids).to_vector<float>(), before.to_vector<float>()) << "B is 0 at first";
  const Tensor first = model.blocks[0]->mlp.up_proj.lora_a;
  EXPECT_EQ(error_text([&] { add_lora(model); }),
            "add_lora: the module has adapters already. merge_lora() comes first");
  EXPECT_TRUE(model.blocks[0]->mlp.up_proj.lora_a.is_same(first));
  cross_entropy(model(ids), ids).backward();
  for (const NamedTensor& parameter : model.parameters()) {
    EXPECT_EQ(parameter.tensor.requires_grad(), is_lora(parameter.name)) << parameter.name;
    EXPECT_EQ(parameter.tensor.has_gradient(), is_lora(parameter.name)) << parameter.name;
  }
  {
    const NoGrad no_grad;
    for (const NamedTensor& parameter : model.parameters())
      if (parameter.name.ends_with("lora_B.weight")) parameter.tensor.add_(parameter.tensor.grad(), -0.5);
  }
  const NoGrad no_grad;
  const Tensor adapted = model(ids);
  const auto apart = [](const Tensor& a, const Tensor& b) { return max(abs(a - b)).item(); };
  EXPECT_GT(apart(adapted, before), 1e-3);
  Decoder other(options);
  const StateDict merged = merged_lora(model.state_dict(), 2);
  ASSERT_EQ(merged.tensors.size(), plain.tensors.size());
  other.load_state_dict(merged);
  EXPECT_LT(apart(other(ids), adapted), 1e-6);
  merge_lora(model);
  EXPECT_EQ(model.state_dict().tensors.size(), plain.tensors.size());
  EXPECT_EQ(model(ids).to_vector<float>(), other(ids).to_vector<float>());
  EXPECT_EQ(add_lora(model), 2 * 7) << "a second training";
  merge_lora(model);
  Linear none(2, 2);
  EXPECT_THAT(error_text([&] { add_lora(none); }),
              HasSubstr("add_lora: expected a module with layers that take adapters, such as Decoder, got Linear"));
  for (const NamedTensor& parameter : none.parameters()) EXPECT_TRUE(parameter.tensor.requires_grad());
  EXPECT_THAT(error_text([&] { add_lora(model, {.rank = 0}); }), HasSubstr("expected a rank of at least 1, got 0"));
}

TEST(Decoder, SaysWhatIsWrong) {
  const Decoder model(kSmallDecoder);
  EXPECT_THAT(error_text([&] { model(some_ids(1, 201)); }), HasSubstr("Decoder: expected at most 200 tokens, got 201"));
  EXPECT_THAT(error_text([&] {
                model(Tensor::zeros({2, 0}, DType::i64));
              }),
              HasSubstr("Decoder: expected at least one token, got i64[2,0]"));
  EXPECT_THAT(error_text([] {
                KeysAndValues().attend(Tensor::zeros({1, 1, 1, 8}), {.bias = Tensor::zeros({1, 1})});
              }),
              HasSubstr("KeysAndValues: expected options without a bias"));
  const auto refused = [](const auto& change) {
    DecoderOptions options = kSmallDecoder;
    change(options);
    return error_text([&] { Decoder{options}; });
  };
  EXPECT_EQ(refused([](DecoderOptions& o) { o.depth = 0; }), "Decoder: expected a depth of at least 1, got 0");
  EXPECT_EQ(refused([](DecoderOptions& o) { o.positions = 0; }), "Decoder: expected positions of at least 1, got 0");
  EXPECT_EQ(refused([](DecoderOptions& o) { o.window = -3; }), "Decoder: expected a window of at least 0, got -3");
  EXPECT_EQ(refused([](DecoderOptions& o) { o.groups = -2; }), "Decoder: expected groups of at least 0, got -2");
  EXPECT_EQ(refused([](DecoderOptions& o) { o.head_size = -4; }),
            "Decoder: expected a head size of at least 0, got -4");
  EXPECT_EQ(refused([](DecoderOptions& o) { o.hidden = -1; }),
            "Decoder: expected a hidden width of at least 0, got -1");
  EXPECT_THAT(error_text([&] { model(Tensor::zeros({3}, DType::i64)); }),
              HasSubstr("Decoder: expected ids [N, tokens], got i64[3]"));
  EXPECT_THAT(
      error_text([] { Decoder({.width = 20, .heads = 4, .groups = 3}); }),
      HasSubstr("Decoder: expected heads that divide the width and are a multiple of the groups, got a width of "
                "20, 4 heads and 3 groups"));
  EXPECT_THAT(error_text([] { Decoder({.width = 9, .heads = 3}); }),
              HasSubstr("expected heads of an even size, got 3"));
  EXPECT_THAT(error_text([] { Decoder({.width = 8, .heads = 2, .rotary = {.factor = 0}}); }),
              HasSubstr("expected a positive factor and a theta above 1 of rotary positions, got 0 and 10000"));
}

}  // namespace
}  // namespace weft::nn
