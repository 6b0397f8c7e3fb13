// SPDX-License-Identifier: Apache-2.0
#include "apps/gpt/options.h"

#include "apps/support/run_flags.h"

namespace weft::gpt {

bool parse_options(int argc, char** argv, Options& o) {
  support::Flags flags(o.program, "Trains a GPT on a text.");
  flags.group("Data and model");
  flags.add(
      "data", o.data,
      "a UTF-8 text, such as tiny shakespeare; JSON lines with a text, with a prompt and a completion, or with messages; "
      "a .bin file of tokens as nanoGPT and llm.c write it; or a folder of train.bin and val.bin");
  flags.add("val-share", o.val_share, "the share at the end of the file that is kept for validation",
            {.min = 0, .max = 0.9, .above = true});
  flags.add("tokenizer", o.tokenizer,
            "bytes (each that occurs is a token: characters), a folder with tokenizer.json, or vocab.json and "
            "merges.txt, or auto: that of "
            "the weights, else bytes");
  flags.add("model", o.model,
            "the sizes of a model with random weights: gpt2 (12 layers, 768 wide), gpt2_medium, gpt2_large, gpt2_xl, "
            "gpt_mini (6 layers, 384 wide), gpt_tiny (4 layers, 128 wide); of a decoder: llama_tiny, llama_mini (as "
            "gpt_tiny, gpt_mini), smollm_135m, llama3.2_1b, llama3.1_8b, mistral_7b, qwen2.5_0.5b, qwen3_0.6b, or a "
            "folder with Hugging Face's config.json");
  flags.add(
      "weights", o.weights,
      "random, or a folder under Hugging Face's names (config.json, model.safetensors), or the folder of a run, or "
      "nanoGPT's ckpt.pt");
  flags.add("weights-key", o.weights_key, "which dict of a PyTorch file, which part of a checkpoint; '': found");
  flags.add("context", o.context, "tokens of a sequence; 0: as many as the model has positions",
            {.min = 0, .max = 1e6});
  flags.add_choice("rows", o.rows, {"auto", "stream", "packed", "single"},
                   "stream: windows of one long text; of JSON lines also packed (rows of several documents, which do not "
                   "see each other) or single (a document a row); auto: stream for texts, else packed");
  flags.add_choice("loss-on", o.loss_on, {"answers", "all"},
                   "which tokens of packed and single rows are trained: completions, the assistant's messages and texts, "
                   "or all");
  flags.group("Training");
  flags.add("epochs", o.epochs,
            "of as many sequences as the training text has tokens for, at positions drawn again for each epoch",
            {.min = 1, .max = 1e6});
  flags.add("lr", o.lr, "learning rate of AdamW; falls to a tenth along a cosine", {.min = 0});
  flags.add("warmup-steps", o.warmup_steps, "steps in which the rate rises from 0", {.min = 0, .max = 1e9});
  flags.add("weight-decay", o.weight_decay, "of matrices; biases and norms have none", {.min = 0});
  flags.add("beta2", o.beta2, "of AdamW", {.min = 0, .max = 0.99999});
  flags.add("dropout", o.dropout, "of embeddings, attention weights and branches", {.min = 0, .max = 0.9});
  flags.add(
      "lora", o.lora,
      "rank of the adapters that a decoder trains in place of its weights; model/ has both together, adapter/ the "
      "adapters; 0: none",
      {.min = 0, .max = 4096});
  flags.add("lora-alpha", o.lora_alpha, "an adapter's result is multiplied by this over its rank; 0: twice the rank",
            {.min = 0, .max = 1e6});
  support::add_run_flags(
      flags, o,
      "batch-size accumulate clip-norm recompute fp8 graph device parallel backend grad-compression fsdp-strategy "
      "min-num-params fsdp-shard-size fsdp-offload fsdp-checkpoints fsdp-accumulate seed out overwrite resume "
      "max-steps save-interval dry-run");
  flags.add("log-interval", o.log_interval, "steps between two lines", {.min = 1});
  flags.group("Ranks");
  flags.add("tensor", o.tensor, "ranks that hold each layer together (tensor parallelism); a divisor of the heads",
            {.min = 1, .max = 1e6});
  flags.add("sequence", o.sequence,
            "the ranks of --tensor divide the sequence, too: each keeps its tokens for norms, dropout and sums, with as "
            "many bytes sent and less memory");
  flags.add("pipeline", o.pipeline, "stages of the model's layers, each on ranks of its own (pipeline parallelism)",
            {.min = 1, .max = 1e6});
  flags.add("chunks", o.chunks, "stretches of layers on each stage; above 1: the interleaved schedule",
            {.min = 1, .max = 1e6});
  flags.add("micro-batches", o.micro_batches,
            "parts of each batch that go through the stages one after another, as those of all batches of --accumulate "
            "do; 0: four in a step for each stage",
            {.min = 0, .max = 1e6});
  flags.example("train_gpt --data tinyshakespeare/input.txt --model gpt_tiny --epochs 1");
  flags.example("train_gpt --weights gpt2 --tokenizer gpt2 --context 256 --batch-size 4 --lr 3e-5 --precision bf16");
  flags.example("train_gpt --weights SmolLM2-135M-Instruct --data conversations.jsonl --context 1024 --lora 8 --lr 2e-4");
  flags.example(
      "weft-run --nproc_per_node 8 train_gpt --weights SmolLM2-135M --context 1024 --parallel fsdp --lr 5e-5");
  flags.example("weft-run --nproc_per_node 2 train_gpt --parallel fsdp --model gpt_mini --dropout 0.2");
  flags.example("weft-run --nproc_per_node 4 train_gpt --pipeline 2 --chunks 3 --batch-size 24 --micro-batches 8");
  flags.example("weft-run --nproc_per_node 8 train_gpt --tensor 2 --pipeline 2 --model gpt2 --batch-size 8");
  flags.example("weft-run --nproc_per_node 8 train_gpt --tensor 2 --parallel fsdp --model gpt2_large --batch-size 8");
  if (!flags.parse(argc, argv)) return false;
  if (o.sequence && o.tensor == 1) throw train::UsageError("--sequence: expected --tensor above 1, got 1");
  if (o.pipeline == 1 && (o.chunks > 1 || o.micro_batches > 0))
    throw train::UsageError("--chunks and --micro-batches: expected --pipeline above 1, got 1: there is no pipeline");
  if (o.lora == 0 && o.lora_alpha > 0) throw train::UsageError("--lora-alpha: expected --lora above 0, got 0");
  if (o.precision == "fp8" && o.tensor * o.pipeline > 1)
    throw train::UsageError("--precision fp8: expected whole blocks on each rank, got --tensor or --pipeline");
  if (o.tensor * o.pipeline > 1 && o.parallel == "none")
    throw train::UsageError("--tensor and --pipeline: expected --parallel auto, ddp or fsdp, got none");
  o.toml = flags.toml();
  return true;
}

}  // namespace weft::gpt
