// SPDX-License-Identifier: Apache-2.0
// A GPT of one's own, its embedding also the output layer, sharded over the ranks by FSDP; alone there is one shard.
//   weft-run --nproc_per_node 2 gpt [STEPS]
#include <weft/weft.h>

#include <iostream>
#include <string>

using namespace weft;

const std::string kText =
    "The weft runs from side to side. The warp runs from end to end. The weaver lifts a shed of warp, sends the weft "
    "from side to side, and beats it home. Over one and under one is a plain weave. Over two and under two is a twill. "
    "The weft runs from end to end of the shed, and the cloth grows by a thread. ";
constexpr int64_t kContext = 32;

struct Block : nn::Module {
  nn::LayerNorm norm1, norm2;
  nn::MultiHeadAttention attention;
  nn::Mlp mlp;

  Block(int64_t width, int64_t heads) : norm1(width), norm2(width), attention(width, heads), mlp(width, 4 * width) {}
  Tensor forward(const Tensor& x) const override {
    const Tensor y = x + attention(norm1(x), {.causal = true});
    return y + mlp(norm2(y));
  }
  void fields(nn::Visitor& v) override {
    v("norm1", norm1);
    v("attention", attention);
    v("norm2", norm2);
    v("mlp", mlp);
  }
};

struct Gpt : nn::Module {
  nn::Embedding tokens, places;
  std::vector<std::shared_ptr<Block>> blocks;
  nn::LayerNorm norm;

  Gpt(int64_t vocabulary, int64_t width, int64_t depth)
      : tokens(vocabulary, width, {.std = 0.02}), places(kContext, width, {.std = 0.02}), norm(width) {
    for (int64_t i = 0; i < depth; ++i) blocks.push_back(std::make_shared<Block>(width, /*heads=*/4));
  }
  /// Logits [N, T, vocabulary] of ids [N, T].
  Tensor forward(const Tensor& ids) const override {
    Tensor x = tokens(ids) + places(Tensor::arange(ids.size(1), DType::i64, ids.device()));
    for (const auto& block : blocks) x = (*block)(x);
    return tokens.tied_linear(norm(x));
  }
  void fields(nn::Visitor& v) override {
    v("tokens", tokens);
    v("places", places);
    v("blocks", blocks);
    v("norm", norm);
  }
};

int main(int argc, char** argv) {
  return train::guarded_main("gpt", [&] {
    const int steps = argc > 1 ? std::stoi(argv[1]) : 100;
    manual_seed(1);
    const auto world = dist::init();
    const data::BytePair characters = data::BytePair::of_bytes(kText);
    const auto text = std::make_shared<const std::vector<int64_t>>(characters.encode(kText));
    const auto windows = std::make_shared<const data::TokenWindows>(text, kContext, /*stride=*/1);
    data::Loader loader(windows, data::Sampler(windows->size(), {.rank = world.rank(), .world = world.size()}),
                        {.batch_size = 16, .device = world.device()});

    const auto make = [&] { return std::make_shared<Gpt>(characters.size(), /*width=*/64, /*depth=*/2); };
    dist::FSDP fsdp(make(), world, {.policy = {.kinds = {"Block"}}, .device = world.device()});
    optim::AdamW adam(optim::without_decay_on_vectors(fsdp.parameters()), {.lr = 3e-3});  // updates this rank's shards
    int step = 0;
    for (int64_t epoch = 0; step <= steps; ++epoch) {
      loader.start(epoch);
      while (const auto batch = step <= steps ? loader.next() : std::nullopt) {
        const Tensor logits = fsdp(batch->tensors[0]);
        const Tensor loss = cross_entropy(logits.flatten(0, 1), batch->tensors[1].flatten());
        adam.zero_grad();
        loss.backward();
        fsdp.clip_grad_norm(1);  // the norm over all shards
        adam.step();
        const double mean = world.sum({loss.item()}, "loss")[0] / world.size();
        if (world.is_first() && step % 20 == 0) std::cout << "step " << step << " loss " << mean << '\n';
        ++step;
      }
    }

    const StateDict state = full_state_dict(fsdp);  // every rank helps, rank 0 gets it
    if (!world.is_first()) return train::kExitOk;
    write_safetensors("gpt.safetensors", state);
    const auto whole = make();
    whole->load_state_dict(read_safetensors("gpt.safetensors").state);
    const NoGrad no_grad;
    std::vector<int64_t> ids = characters.encode("The weft");
    for (int i = 0; i < 24; ++i) {
      const Tensor logits = (*whole)(Tensor::from(ids, {1, static_cast<int64_t>(ids.size())}));
      ids.push_back(argmax(logits.select(1, -1), -1).to_vector<int64_t>()[0]);
    }
    std::cout << characters.decode(ids) << '\n';
    return train::kExitOk;
  });
}
