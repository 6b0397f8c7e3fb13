# linear_probe prints the lines of the workflow, and keeps a run folder.

44 images: 16 do not divide them.

  $ probe() { linear_probe --data random:44x32x32x3 --model vit_tiny4 --workers 1 --precision f32 -e 2 -lr 1e-3 "$@"; }
  $ probe --batch_size 16 --out run 2> log | grep '^0\|^{'
  0 linear probe
  0 epoch
  \{'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)\} (re)
  0 epoch
  \{'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)\} (re)
  0 finetuning
  0 epoch
  \{'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)\} (re)
  0 epoch
  \{'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)\} (re)
  $ jq -c '[.epoch, .lr]' run/metrics.jsonl
  [1,0.001]
  [2,0.001]
  [3,0.000125]
  [4,0.000125]
  $ jq -c '[.probe_accuracy, .finetune_accuracy]' run/summary.json | diff - <(jq -sc '[.[1].accuracy, .[3].accuracy]' run/metrics.jsonl)

Fine-tuning holds the 2.69 million weights, their gradients and two moments; the probe of kept features little beside the weights.

  $ jq -c '[.finetune_peak_tensor_bytes > 16 * 2.6e6, .probe_peak_tensor_bytes > 4 * 2.6e6, .probe_peak_tensor_bytes < .finetune_peak_tensor_bytes]' run/summary.json
  [true,true,true]
  $ state run/finetuned.safetensors | grep 'class_names\|m.blocks.5.attn.qkv.weight\|^linear.weight'
  class_names ["0","1","2","3","4","5","6","7","8","9"]
  linear.weight F32 [10, 192] …
  m.blocks.5.attn.qkv.weight F32 [576, 192] …
  $ state run/probe.safetensors ; head -n 2 run/classes.txt
  class_names ["0","1","2","3","4","5","6","7","8","9"]
  bias F32 [10] …
  weight F32 [10, 192] …
  0	0
  1	1

Kept features change not a bit.

  $ for kept in on off; do probe -b 16 --cache-features $kept --out $kept > log 2>&1; same run/probe.safetensors $kept/probe.safetensors; same run/finetuned.safetensors $kept/finetuned.safetensors; done

A finished run is overwritten on request only, and nothing of it is left beside the next one.

  $ probe() { linear_probe --data random:8x32x32x3 --model vit_tiny4 -b 8 -e 1 --precision f32 --workers 0 "$@"; }
  $ probe --out one > log 2>&1; cp -r one before
  $ probe --phases probe --out one > log 2>&1
  [1]
  $ tail -n 1 log; diff -r before one
  linear_probe: error: run folder: expected a new folder, got one with checkpoint_last.safetensors of another run. --resume auto continues it, --out names another folder, --overwrite replaces it
  $ probe --resume one/checkpoint_last.safetensors --out one > log 2>&1
  $ probe --phases probe --overwrite --out one > log 2>&1 && ls one; wc -l < one/metrics.jsonl; grep overwrite one/config.toml
  checkpoint_last.safetensors
  classes.txt
  config.toml
  events.out.tfevents.…
  metrics.jsonl
  probe.safetensors
  summary.json
  1
  [1]

Small images are resized for a large input.

  $ probe --data random:4x32x32x3 --image-size 56 -b 4 --phases probe --out large 2>&1 | grep -o 'shortest edge.*'
  shortest edge 64, centre 56x56

It takes a backbone that train_image wrote. Fine-tuned at a rate of 0, the backbone stays that of the file.

  $ train_image --data random:16x32x32x3 --model vit_tiny4 --epochs 1 --batch-size 8 --lr 0.001 --augment none --export vit.safetensors --out train > log 2>&1
  $ linear_probe --data random:44x32x32x3 --model vit_tiny4 --precision f32 -e 2 -b 16 --phases probe --cache-features off --weights vit.safetensors --out frozen 2> log | grep -c accuracy
  2
  $ for key in model ema; do probe --dry-run --weights train/checkpoint_last.safetensors --weights-key $key --out key 2>&1 | tail -n 1; done
  dry run: would train probe,finetune, 1 epochs each, 1 steps an epoch, none; nothing is written
  linear_probe: error: --weights train/checkpoint_last.safetensors: checkpoint: expected a part 'ema', got model, optimizer. weft-weights --key and train_image --weights-key take one
  [1]
  $ probe -lr 0 --phases finetune --weights vit.safetensors --out still > log 2>&1
  $ of_blocks() { state $1 | sed -n "s/^$2\(blocks.3.mlp.fc1.weight\)/\1/p"; }
  $ diff <(of_blocks vit.safetensors '') <(of_blocks still/finetuned.safetensors m.); of_blocks vit.safetensors '' | wc -l
  1

It explains what is sharded, and how much memory a step takes.

  $ linear_probe --explain-sharding --min-num-params 1000000 | sed -n 1,5p
  dinov2_vitl14_reg with a classifier of 100 classes, min_num_params 1000000: 97 units and the root
        102500  root
       2161664  m
       3148800  m.blocks.0.attn.qkv
       1049600  m.blocks.0.attn.proj
  $ linear_probe --explain-sharding | head -n 1
  dinov2_vitl14_reg with a classifier of 100 classes, min_num_params 0: 24 units and the root
  $ linear_probe --explain-sharding --min-num-params 10000000 | sed -n 1,4p
  dinov2_vitl14_reg with a classifier of 100 classes, min_num_params 10000000: 24 units and the root
       2116708  root
      12598272  m.blocks.0
      12598272  m.blocks.1
  $ linear_probe --explain-memory --model dinov2_vitl14_reg -b 256 | sed -n 1,3p
  dinov2_vitl14_reg, 256 images of 224x224, bf16, GiB:
    --checkpointing   none  block
    weights           1.13   1.13

What is wrong is said in one line.

  $ wrong() { linear_probe --out wrong "$@" 2>&1 | grep error; }
  $ wrong --model dinov2_vits15
  linear_probe: error: --model: no backbone is called 'dinov2_vits15'. Did you mean 'dinov2_vits14'?
  [1]
  $ wrong --model vit_tiny4 --data random:8x32x32x1
  linear_probe: error: --data random:8x32x32x1: expected images of 3 channels, got 1
  [1]
  $ wrong --model vit_tiny4 --data random:8x32x32x3 --resize 20
  linear_probe: error: --resize: expected at least the input's 32 pixels, got 20 (linear_probe --help lists the flags)
  [2]
  $ wrong --model vit_tiny4 --data random:8x32x32x3 --image-size 30
  linear_probe: error: --image-size: expected a multiple of the patch's 4 pixels, got 30
  [1]
  $ wrong --model vit_tiny4 --data random:8x32x32x3 --weights /nowhere.safetensors
  linear_probe: error: --weights /nowhere.safetensors: there is no such file. `tools/fetch_weights vit_tiny4 /` brings a published backbone there, `--weights random` starts from nothing
  [1]
  $ wrong --model vit_tiny4 --data random:8x32x32x3 --phases tune
  linear_probe: error: --phases: unknown value 'tune'. Known: probe,finetune, probe, finetune. (linear_probe --help lists the flags)
  [2]
  $ wrong --lrr 3
  linear_probe: error: unknown flag --lrr. Did you mean --lr? (linear_probe --help lists the flags)
  [2]
