# A GPT-2 learns a text and is left as Hugging Face's files

`tiny.sh` writes a text of sentences such as "the cat sits.", and `tiny.toml` has the flags of a small model.

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ train_gpt --config tiny.toml --batch-size 4 --out run
  device  cpu …
  data    text: 1600 tokens, 400 for validation, of 22
  model   4 layers, 128 wide, 4 heads, 798208 parameters, weights random, f32
  run     run
  …
  … rank 0: epoch 2/2  step 25/25 …

It begins near log 22 = 3.1, a guess among 22 characters, and learns. Each line of metrics has what a user watches.

  $ jq -s '.[0].train_loss > 2' run/metrics.jsonl
  true
  $ jq -s 'map(keys[]) | unique - ["time"] | join(" ")' run/metrics.jsonl
  "epoch epoch_loss gradient_norm lr peak_tensor_bytes step tokens_per_second train_loss val_loss"
  $ jq .steps run/summary.json
  50
  $ learned run
  true

The model has GPT-2's names and layouts; its output layer is the embedding.

  $ ls run/model
  config.json
  merges.txt
  model.safetensors
  tokenizer_config.json
  vocab.json
  $ tensors run transformer.h.3.attn.c_attn.weight transformer.h.0.mlp.c_fc.weight transformer.wte.weight
  52
  ["transformer.h.0.mlp.c_fc.weight",[128,512]]
  ["transformer.h.3.attn.c_attn.weight",[128,384]]
  ["transformer.wte.weight",[22,128]]
  $ jq -c '[.n_layer, .n_positions, .activation_function, .eos_token_id]' run/model/config.json
  [4,16,"gelu_new",null]

Its own weights, at a rate of 0, score the same: names, layout, tokens and sizes came back.

  $ train_gpt --config tiny.toml --batch-size 4 --lr 0 --epochs 1 --weights run --out again 2> log | grep ^model
  model   4 layers, 128 wide, 4 heads, 798208 parameters, weights run, f32
  $ distance run again; [ $(val_loss run) = $(val_loss again) ]
  0.0
  $ train_gpt --config tiny.toml --batch-size 4 --precision bf16 --out low > log 2>&1 && learned low
  true

# Samples

A seed draws one text; without a temperature, or with the likeliest token alone, there is only one. It has learned lines.

  $ samples() { sample_gpt --device cpu --weights run --prompt "the cat" --tokens 60 "$@"; }
  $ samples --seed 1 > one; samples --seed 1 > again1; samples --seed 2 --temperature 2 > two
  $ same one again1; head -c 7 one; wc -c < one; cmp -s one two
  the cat68
  [1]
  $ samples --temperature 0 > likeliest; samples --top-k 1 | cmp - likeliest; grep -q '\.$' likeliest
  $ samples --samples 2 | grep -c -e '^---------------$' -e '^the cat'
  3
  $ sample_gpt --device cpu --weights run --prompt Z
  sample_gpt: error: byte pairs: the vocabulary has no token for the byte 90 of 'Z'
  [1]

# The values of config.json that change what is computed, or where a text ends

  $ model=run/model; cp $model/config.json original
  $ with() { jq ".$1 = $2" original > $model/config.json; sample_gpt --device cpu --weights $model --prompt "the cat" --temperature 0 --tokens 40; }
  $ with vocab_size 22 > plain; newline=$(jq '."Ċ"' $model/vocab.json) stop=$(jq '."."' $model/vocab.json)
  $ with eos_token_id $newline | cmp - <(head -1 plain)
  $ with eos_token_id "[-1, $newline]" | cmp - <(head -1 plain)

generation_config.json comes first, and goes with the model that is trained from it.

  $ echo "{\"eos_token_id\": $stop}" > $model/generation_config.json
  $ with eos_token_id null | cmp - <(text=$(<plain); echo "${text%%.*}")
  $ tune() { train_gpt --config tiny.toml --batch-size 4 --lr 0 --epochs 1 --weights run "$@"; }
  $ tune --out ended > log 2>&1 && same ended/model/generation_config.json $model/generation_config.json
  $ [ $(jq .eos_token_id ended/model/config.json) = $stop ] && rm $model/generation_config.json

The two formulas of GELU differ by up to 5e-4; gelu_pytorch_tanh is another name of the first.

  $ with activation_function '"gelu_pytorch_tanh"' | cmp - plain
  $ with activation_function '"gelu"' > out; tune --out erf > log 2>&1 && jq .activation_function erf/model/config.json
  "gelu"
  $ [ $(val_loss erf) != $(val_loss ended) ]
  $ with resid_pdrop 0.1 > out; tune --dry-run --out dry | grep -o "dropout.*"
  dropout 0 (the weights' configuration: 0.1)

What it cannot compute is refused.

  $ fails with model_type '"gemma"'; fails with activation_function '"relu"'; fails with tie_word_embeddings false
  sample_gpt: error: model: run/model/config.json: expected model_type "gpt2", got "gemma" [1]
  sample_gpt: error: model: run/model/config.json: expected activation_function gelu_new or gelu, got "relu" [1]
  sample_gpt: error: model: run/model/config.json: expected tie_word_embeddings true, got false [1]
  $ fails with scale_attn_weights false; fails with scale_attn_by_inverse_layer_idx true; fails with add_cross_attention true; fails with n_inner 100
  sample_gpt: error: model: run/model/config.json: expected scale_attn_weights true, got false [1]
  sample_gpt: error: model: run/model/config.json: expected scale_attn_by_inverse_layer_idx false, got true [1]
  sample_gpt: error: model: run/model/config.json: expected add_cross_attention false, got true [1]
  sample_gpt: error: --weights run/model: load_state_dict: the weights do not fit Gpt; wrong shape: h.0.mlp.c_fc.weight (expected [100,128], got [512,128]), … [1]
  $ fails with vocab_size 10; fails with eos_token_id '"x"'
  sample_gpt: error: --tokenizer: expected at most the 10 tokens of the weights, got 22 [1]
  sample_gpt: error: run/model/config.json: eos_token_id: expected a whole number, got string [1]
  $ with activation_function '"relu"'; tune --out refused
  sample_gpt: error: model: run/model/config.json: expected activation_function gelu_new or gelu, got "relu"
  train_gpt: error: model: run/model/config.json: expected activation_function gelu_new or gelu, got "relu"
  [1]
  $ with n_layer 5; tune --out refused
  sample_gpt: error: --weights run/model: load_state_dict: the weights do not fit Gpt; missing: h.4.ln_1.weight, …
  train_gpt: error: --weights run/model: load_state_dict: the weights do not fit Gpt; missing: h.4.ln_1.weight, …
  [1]

# Mistakes

  $ wrong() { train_gpt --config tiny.toml --out none "$@" 2>&1 | grep error; }
  $ fails wrong --batch-size 2000; fails wrong --context 500; fails wrong --chunks 2; fails wrong --pipeline 2 --parallel none; fails wrong --sequence
  train_gpt: error: --data: a step of 2000 sequences of 16 tokens needs more than the 1600 tokens of the training text [1]
  train_gpt: error: --context: expected fewer than the 400 tokens of the validation text, got 500 [1]
  train_gpt: error: --chunks and --micro-batches: expected --pipeline above 1, got 1: there is no pipeline (train_gpt --help lists the flags) [2]
  train_gpt: error: --tensor and --pipeline: expected --parallel auto, ddp or fsdp, got none (train_gpt --help lists the flags) [2]
  train_gpt: error: --sequence: expected --tensor above 1, got 1 (train_gpt --help lists the flags) [2]
  $ fails wrong --pipeline 2; fails wrong --tensor 2
  train_gpt: error: --pipeline: 2 stages do not divide 1 rank (train_gpt --help lists the flags) [2]
  train_gpt: error: --tensor: 2 does not divide 1 rank (train_gpt --help lists the flags) [2]
