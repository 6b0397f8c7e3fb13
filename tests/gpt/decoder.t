# A decoder (Llama's layers) learns and is left as Hugging Face's files

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ train() { train_gpt --config tiny.toml --model llama_tiny --batch-size 4 --out "$@"; }
  $ train run
  device  cpu …
  data    text: 1600 tokens, 400 for validation, of 22
  model   4 layers, 128 wide, 4 heads, 731776 parameters, weights random, f32
  run     run
  …
  … rank 0: epoch 2/2  step 25/25 …
  $ learned run
  true
  $ tensors run model.layers.3.self_attn.k_proj.weight lm_head.weight
  39
  ["lm_head.weight",[22,128]]
  ["model.layers.3.self_attn.k_proj.weight",[64,128]]
  $ jq -c '[.model_type, .max_position_embeddings, .torch_dtype]' run/model/config.json
  ["llama",16,"float32"]
  $ train again --lr 0 --epochs 1 --weights run > log 2>&1
  $ distance run again; same run/model/config.json again/model/config.json && [ $(val_loss run) = $(val_loss again) ]
  0.0

The likeliest tokens make lines.

  $ samples() { sample_gpt --device cpu --weights run --prompt "the cat" --tokens 60 "$@"; }
  $ samples --temperature 0 > likeliest; samples --top-p 0.0001 | cmp - likeliest; grep -q '\.$' likeliest
  $ train bf16 --precision bf16 > log 2>&1 && learned bf16; tensors bf16
  true
  39
  $ train fp8 --precision fp8 > log 2>&1 && learned fp8; tensors fp8
  true
  39

The sizes of a model may be those of a folder, whose tokenizer goes with them; its weights are not read.

  $ train other --model run --lr 0 --max-steps 1 --seed 4 > log 2>&1
  $ tensors other; distance run other | jq '. > 1e-3'; same run/model/vocab.json other/model/vocab.json
  39
  true
  $ fails train none --model llama; fails train none --lora-alpha 3
  train_gpt: error: --model: expected gpt2, … or a folder with config.json, got 'llama'. Did you mean 'llama_tiny'? (train_gpt --help lists the flags) [2]
  train_gpt: error: --lora-alpha: expected --lora above 0, got 0 (train_gpt --help lists the flags) [2]
