// SPDX-License-Identifier: Apache-2.0
// Adapters of low rank (Hu et al. 2021): a decoder whose weights are frozen learns a text by a few numbers beside
// them, which are then added to the weights. FOLDER has Hugging Face's files of a Llama, Mistral, Qwen or SmolLM;
// without one a small decoder learns another text first.
//   lora [DEVICE] [STEPS] [FOLDER]
#include <weft/weft.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

using namespace weft;

const std::string kFirstText =
    "The weaver lifts a shed of warp, sends the weft from side to side, and beats it home. The weft runs from end to "
    "end of the shed, and the cloth grows by a thread. ";
const std::string kText =
    "The weft runs from side to side. The warp runs from end to end. Over one and under one is a plain weave. Over two "
    "and under two is a twill. ";
constexpr int64_t kContext = 32;

/// AdamW's steps on windows of a text. A loss every 20 steps goes to `says`.
void learn(const nn::Decoder& model, const std::vector<NamedTensor>& parameters, const std::vector<int64_t>& ids,
           int steps, double lr, Device device, const char* says) {
  optim::AdamW adam(parameters, {.lr = lr, .weight_decay = 0});
  const auto text = std::make_shared<const std::vector<int64_t>>(ids);
  const auto windows = std::make_shared<const data::TokenWindows>(text, kContext, /*stride=*/1);
  data::Loader loader(windows, data::Sampler(windows->size()), {.batch_size = 16, .device = device});
  int step = 0;
  for (int64_t epoch = 0; step <= steps; ++epoch) {
    loader.start(epoch);
    while (const auto batch = step <= steps ? loader.next() : std::nullopt) {
      const Tensor loss = cross_entropy(model(batch->tensors[0]).flatten(0, 1), batch->tensors[1].flatten());
      adam.zero_grad();
      loss.backward();
      adam.step();
      if (step % 20 == 0) std::cout << says << step << " loss " << loss.item() << '\n';
      ++step;
    }
  }
}

int main(int argc, char** argv) {
  return train::guarded_main("lora", [&] {
    manual_seed(1);
    const Device device = choose_device(argc > 1 ? argv[1] : "auto");
    const int steps = argc > 2 ? std::stoi(argv[2]) : 60;
    const std::filesystem::path folder = argc > 3 ? argv[3] : "";

    const data::BytePair tokenizer =
        folder.empty() ? data::BytePair::of_bytes(kFirstText + kText) : data::BytePair::from_folder(folder);
    nn::DecoderOptions sizes = folder.empty() ? nn::decoder_options("llama_tiny") : train::read_decoder_config(folder);
    if (folder.empty()) sizes.vocabulary = tokenizer.size();
    nn::Decoder model(sizes);
    if (!folder.empty()) train::load_weights(model, folder);
    model.to(device);
    if (folder.empty())
      learn(model, model.parameters(), tokenizer.encode(kFirstText), 80, 3e-3, device, "first text, ");

    const int64_t adapters = nn::add_lora(model, {.rank = 8, .alpha = 32});
    std::vector<NamedTensor> trained = model.parameters();
    std::erase_if(trained, [](const NamedTensor& parameter) { return !parameter.tensor.requires_grad(); });
    std::cout << adapters << " adapters, " << trained.size() << " of " << model.parameters().size()
              << " tensors are trained\n";
    learn(model, trained, tokenizer.encode(kText), steps, 1e-2, device, "step ");

    model.eval();
    const NoGrad no_grad;
    const std::vector<int64_t> prompt = tokenizer.encode("The weft");
    const nn::GenerateOptions likeliest{.tokens = 24, .temperature = 0, .below = tokenizer.size()};
    const Tensor ids = Tensor::from(prompt, {1, static_cast<int64_t>(prompt.size())}).to(device);
    const Tensor before = model(ids);
    const std::vector<int64_t> unmerged = nn::generate(model, prompt, likeliest);
    nn::merge_lora(model);
    const double apart = max(abs(model(ids) - before)).item() / max(abs(before)).item();
    const bool same = apart < 1e-4 && nn::generate(model, prompt, likeliest) == unmerged;
    std::cout << "merged " << (same ? "equals" : "differs from") << " unmerged\n";
    std::cout << "The weft" << tokenizer.decode(unmerged, /*continues=*/true) << '\n';
    return same ? train::kExitOk : train::kExitError;
  });
}
