// SPDX-License-Identifier: Apache-2.0
// bench_gpt_losses FILE MODEL SEQUENCES TOKENS STEPS: the losses of a GPT's first steps. FILE has its first weights as
// a checkpoint of llm.c, from which llm.c then trains (llm_c.py --losses).
#include <weft/weft.h>

#include <fstream>
#include <iomanip>
#include <iostream>

using namespace weft;

namespace {

/// 256 numbers, then the parameters in f32, all layers of a kind together.
void write_checkpoint(const std::string& path, nn::Gpt& model) {
  const nn::GptOptions& o = model.options;
  const int64_t padded = (o.vocabulary + 127) / 128 * 128;  // rows of zeros follow the vocabulary's
  std::vector<int32_t> header(256);
  int at = 0;
  for (const int64_t number :
       {int64_t{20240326}, int64_t{3}, o.positions, o.vocabulary, o.depth, o.heads, o.width, padded})
    header[static_cast<size_t>(at++)] = static_cast<int32_t>(number);
  std::ofstream file(path, std::ios::binary);
  const auto write = [&](const auto& values) {
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(values[0])));
  };
  write(header);
  const StateDict state = model.state_dict();
  const auto parameter = [&](const std::string& name) { return state.tensor(name).to_vector<float>(); };
  write(parameter("wte.weight"));
  write(std::vector<float>(static_cast<size_t>((padded - o.vocabulary) * o.width)));
  write(parameter("wpe.weight"));
  for (const char* name :
       {"ln_1.weight", "ln_1.bias", "attn.qkv.weight", "attn.qkv.bias", "attn.proj.weight", "attn.proj.bias",
        "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"})
    for (int64_t layer = 0; layer < o.depth; ++layer) write(parameter(str("h.", layer, '.', name)));
  write(parameter("ln_f.weight"));
  write(parameter("ln_f.bias"));
  WEFT_CHECK(file.flush(), "cannot write ", path);
}

}  // namespace

int main(int argc, char** argv) {
  return train::guarded_main("bench_gpt_losses", [&] {
    if (argc != 6) throw train::UsageError("expected FILE MODEL SEQUENCES TOKENS STEPS");
    const int64_t sequences = std::stoll(argv[3]), tokens = std::stoll(argv[4]);
    manual_seed(1);
    nn::Gpt model(nn::gpt_options(argv[2]));
    write_checkpoint(argv[1], model);
    optim::AdamW adam(model.parameters(), {.lr = 1e-4});
    const Tensor ids = Tensor::arange(sequences * tokens);
    for (int step = 0; step < std::stoi(argv[5]); ++step) {
      const Tensor loss = cross_entropy(model(ids.reshape({sequences, tokens})).flatten(0, 1), ids);
      adam.zero_grad();
      loss.backward();
      adam.step();
      std::cout << "loss " << std::fixed << std::setprecision(7) << loss.item() << '\n';
    }
    return train::kExitOk;
  });
}
