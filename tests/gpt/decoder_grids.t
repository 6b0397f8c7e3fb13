# A decoder on every grid is the one of a single process

needs: ranks

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ sed -i s/gpt_tiny/llama_tiny/ tiny.toml
  $ train() { train_gpt --config tiny.toml "$@" > log 2>&1 || cat log; }
  $ two() { ranks 2 train_gpt --config tiny.toml "$@" > log 2>&1 || cat log; }
  $ train --batch-size 4 --max-steps 5 --out one
  $ on 2 ddp --batch-size 2 --parallel ddp
  $ on 2 fsdp --batch-size 2 --parallel fsdp --min-num-params 2000
  $ on 2 blocks --batch-size 2 --parallel fsdp --min-num-params 0 --recompute
  $ on 2 stages --batch-size 4 --pipeline 2 --chunks 2

Fine-tuning begins with the folder of one run.

  $ train --batch-size 4 --weights ddp --max-steps 5 --out tuned
  $ two --batch-size 2 --parallel fsdp --min-num-params 0 --weights ddp --max-steps 5 --out tuned_fsdp; equal tuned_fsdp tuned

Or it trains adapters alone: the published model is the base and them.

  $ train --batch-size 4 --weights ddp --max-steps 5 --lora 4 --lr 1e-2 --out lora
  $ two --batch-size 2 --parallel fsdp --min-num-params 0 --recompute --weights ddp --max-steps 5 --lora 4 --lr 1e-2 --out lora_fsdp; equal lora_fsdp lora
  $ two --batch-size 2 --parallel ddp --weights ddp --max-steps 5 --lora 4 --lr 1e-2 --out lora_ddp; equal lora_ddp lora
  $ distance ddp lora | jq '. > 1e-4'
  true
  $ weft-weights diff $(weights ddp) $(weights lora) | sed -n '/norm/p; $p'
  11 equal, 28 different, 0 only in ddp/model/model.safetensors, 0 only in lora/model/model.safetensors
  [1]
  $ weft-weights show lora/adapter/adapter_model.safetensors | grep -e tensors -e 'layers.0.*k_proj.lora_B'
  lora/adapter/adapter_model.safetensors: safetensors, 56 tensors, 36992 elements, 144.5 KiB
  base_model.model.model.layers.0.self_attn.k_proj.lora_B.weight  f32    [64,4]
  $ jq -c '[.r, .lora_alpha]' lora/adapter/adapter_config.json
  [4,8]
  $ train --batch-size 4 --lr 0 --max-steps 1 --weights lora --out merged; distance merged lora
  0.0

So are Qwen-3 (norms of heads, tied) and Mistral with a window that is shorter than the text.

  $ family() {
  >   mkdir "$1" && cd "$1" && cp ../text ../tiny.toml . && jq ". + {model_type: \"$1\"}" ../sizes.json > config.json && sed -i "s/llama_tiny/./" tiny.toml
  >   train --batch-size 4 --max-steps 5 --out one; jq -c '[.model_type, .sliding_window, .tie_word_embeddings]' one/model/config.json
  >   on 2 ddp --batch-size 2 --parallel ddp
  >   on 2 fsdp --batch-size 2 --parallel fsdp --min-num-params 0
  >   train --batch-size 4 --weights one --max-steps 5 --lora 4 --lr 1e-2 --out lora
  >   for how in ddp fsdp; do two --batch-size 2 --parallel $how --weights one --max-steps 5 --lora 4 --lr 1e-2 --out lora_$how; equal lora_$how lora; done
  >   cd ..
  > }
  $ jq -n '{vocab_size: 22, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 8, intermediate_size: 48, max_position_embeddings: 16}' > sizes.json
  $ jq -c '. + {sliding_window: 5, tie_word_embeddings: true}' sizes.json > all.json; mv all.json sizes.json
  $ family qwen3
  ["qwen3",null,true]
  $ family mistral
  ["mistral",5,true]

Its layers do not divide.

  $ ranks 2 train_gpt --config tiny.toml --tensor 2 --out parts > log 2>&1
  [2]
  $ sort -u log | grep "train_gpt: error"
  train_gpt: error: --tensor: expected a GPT-2, whose layers can be divided, got a decoder (train_gpt --help lists the flags)
