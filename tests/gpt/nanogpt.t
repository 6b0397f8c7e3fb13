# A checkpoint of nanoGPT

needs: zip

`nanogpt.py` wrote nanogpt.pt with PyTorch, and printed the likeliest text.

  $ echo '#version: 0.2' > merges.txt; jq -nc '"ĊĠabcdefghi" / "" | to_entries | map({(.value): .key}) | add' > vocab.json; cat vocab.json
  {"Ċ":0,"Ġ":1,"a":2,"b":3,"c":4,"d":5,"e":6,"f":7,"g":8,"h":9,"i":10}
  $ likeliest() { sample_gpt --device cpu --prompt abc --tokens 29 --temperature 0 "$@"; }
  $ likeliest --weights "$WEFT"/tests/gpt/nanogpt.pt --tokenizer .
  abchhhhhhhha ihddddhhchdd hhchhf

Training leaves Hugging Face's files, which give the same text.

  $ printf 'a%.0s' {1..40} > text; printf 'b%.0s' {1..40} >> text
  $ train() { train_gpt --device cpu --val-share 0.45 --batch-size 1 --weights "$WEFT"/tests/gpt/nanogpt.pt --tokenizer . --data text "$@"; }
  $ train --epochs 1 --lr 0 --out run
  device  cpu …
  data    text: 44 tokens, 36 for validation, of 11
  model   2 layers, 8 wide, 2 heads, 2144 parameters, weights …/nanogpt.pt, f32
  run     run
  warning: the learning rate is 0, so nothing is learned
  …
  … rank 0: epoch 1/1  step 1/1 …
  $ likeliest --weights run
  abchhhhhhhha ihddddhhchdd hhchhf
  $ jq -c '[.activation_function, .vocab_size]' run/model/config.json
  ["gelu",16]
  $ weft-weights show run/model/model.safetensors | grep 'h.1.attn.c_attn.weight'
  transformer.h.1.attn.c_attn.weight  f32    [8,24]

  $ train --weights-key model --dry-run | grep ^model
  model   2 layers, 8 wide, 2 heads, 2144 parameters, weights …/nanogpt.pt, f32
  $ fails train --weights-key ema --dry-run; fails likeliest --weights "$WEFT"/tests/gpt/nanogpt.pt; fails likeliest --weights text --tokenizer .
  train_gpt: error: --weights …/nanogpt.pt: pytorch: …/nanogpt.pt: expected a dict under the key 'ema', got none. There are: model, optimizer, model_args, config [1]
  sample_gpt: error: --tokenizer: expected the folder of a tokenizer, got none: the checkpoint …/nanogpt.pt holds weights alone [1]
  sample_gpt: error: model: expected a folder with config.json, or nanoGPT's checkpoint, got the file text: weights: text: expected safetensors, a safetensors index, a PyTorch file or a Weft checkpoint, got something else [1]
