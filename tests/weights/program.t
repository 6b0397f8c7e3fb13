# weft-weights shows, converts and compares files of weights

`a.safetensors` has two tensors.

  $ weights() { python3 "$WEFT"/tests/weights/write_safetensors.py "$@"; }
  $ weights a.safetensors 'fc.steps I64 - 7' 'fc.weight F32 2,2 1,-2,0.5,4' epoch=3

# show

  $ weft-weights show a.safetensors
  a.safetensors: safetensors, 2 tensors, 5 elements, 24 bytes
    epoch = 3
  fc.steps   i64    []
  fc.weight  f32    [2,2]
  $ weft-weights show --json --prefix fc. --add-prefix head. a.safetensors | jq -c '.format, .elements, .bytes, .metadata.epoch, .tensors[1]'
  "safetensors"
  5
  24
  "3"
  {"name":"head.weight","dtype":"f32","stored":"F32","shape":[2,2],"bytes":16}
  $ golden=$WEFT/tests/weights/golden
  $ weft-weights show $golden/every_kind_legacy.pt | grep i16
  dtype.i16        i32 (I16)  [2,3]
  $ weft-weights show --key optimizer.state.0 $golden/nested_legacy.pt | grep 'exp_avg '
  exp_avg     f32    [3,2,3,3]

Names of classes are listed.

  $ weights classes.safetensors 'fc.weight F32 1 1' 'class_names=["cat","a \"dog\"\n"]'; weft-weights show classes.safetensors
  classes.safetensors: safetensors, 1 tensors, 1 elements, 4 bytes
    class 0 = cat
    class 1 = a "dog"\x0a
  fc.weight  f32    [1]
  $ weights classes.safetensors 'fc.weight F32 1 1' 'class_names=cat'; weft-weights show classes.safetensors | grep class
  classes.safetensors: safetensors, 1 tensors, 1 elements, 4 bytes
    class_names = cat

# convert

  $ weft-weights convert a.safetensors b.safetensors; weft-weights diff a.safetensors b.safetensors
  wrote   b.safetensors
          2 tensors, 24 bytes
  2 equal, 0 different, 0 only in a.safetensors, 0 only in b.safetensors
  $ weft-weights convert --dtype bf16 --prefix fc. a.safetensors b.safetensors > log && weft-weights show b.safetensors
  b.safetensors: safetensors, 2 tensors, 5 elements, 16 bytes
    epoch = 3
    format = pt
  steps   i64    []
  weight  bf16   [2,2]
  $ weft-weights convert --add-prefix fc. b.safetensors c.safetensors > log && weft-weights diff --ignore-dtype a.safetensors c.safetensors
  2 equal, 0 different, 0 only in a.safetensors, 0 only in c.safetensors
  $ weft-weights convert --max-shard-size 10B a.safetensors d.safetensors; weft-weights diff a.safetensors d.safetensors.index.json
  wrote   d-00001-of-00002.safetensors
  wrote   d-00002-of-00002.safetensors
  wrote   d.safetensors.index.json
          2 tensors, 24 bytes
  2 equal, 0 different, 0 only in a.safetensors, 0 only in d.safetensors.index.json
  $ weft-weights convert a.safetensors d.safetensors; rm d*
  warning: beside d.safetensors lies what an earlier conversion wrote: d-00001-of-00002.safetensors, d-00002-of-00002.safetensors, d.safetensors.index.json. Remove it
  wrote   d.safetensors
          2 tensors, 24 bytes
  $ fails weft-weights convert a.safetensors ./a.safetensors
  weft-weights: error: convert: expected two files, got ./a.safetensors twice… [2]
  $ weft-weights convert --dtype bf16 --dry-run a.safetensors e.safetensors; ls e.safetensors
  would write e.safetensors
          2 tensors, 16 bytes
  ls: cannot access 'e.safetensors': No such file or directory
  [2]

A checkpoint's model is converted, or all of it.

  $ head -c 2000 /dev/zero | tr '\0' 'a' > text; train_gpt --data text --model gpt_tiny --context 16 --device cpu --max-steps 1 --out run > log 2>&1
  $ checkpoint=run/checkpoint_last.safetensors
  $ weft-weights convert $checkpoint model.safetensors | tail -1; weft-weights diff $checkpoint model.safetensors
          52 tensors, 3.0 MiB
  52 equal, 0 different, 0 only in run/checkpoint_last.safetensors, 0 only in model.safetensors
  $ weft-weights show --json $checkpoint | jq .metadata.step; weft-weights show --json model.safetensors | jq .metadata.step
  "1"
  "1"
  $ weft-weights convert --checkpoint $checkpoint copy.safetensors; cmp $checkpoint copy.safetensors
  wrote   copy.safetensors
          model: 52 tensors
          optimizer: 104 tensors
  $ fails weft-weights convert a.safetensors copy.safetensors; cmp $checkpoint copy.safetensors
  weft-weights: error: convert: copy.safetensors is a checkpoint, with more than weights. Name another file (weft-weights --help lists the flags) [2]
  $ fails weft-weights convert --checkpoint $checkpoint copy.pt; fails weft-weights convert --checkpoint --dtype bf16 $checkpoint copy.safetensors
  weft-weights: error: --checkpoint: expected a name that ends in .safetensors, got 'copy.pt' (weft-weights --help lists the flags) [2]
  weft-weights: error: --checkpoint: expected --dry-run at most beside it: a checkpoint stays as it is (weft-weights --help lists the flags) [2]

# diff

  $ weights b.safetensors 'fc.weight F32 2,2 1,-2,0.75,4' 'fc.count I64 - 7'; weft-weights diff a.safetensors b.safetensors
  - fc.steps i64[]
  ~ fc.weight: 1 of 4 values, max abs 0.25, relative 0.0538
  + fc.count i64[]
  0 equal, 1 different, 1 only in a.safetensors, 1 only in b.safetensors
  [1]
  $ weights b.safetensors 'fc.weight F32 2,2 1,-2,0.75,4' 'fc.steps I64 - 7'
  $ weft-weights diff --atol 0.2 a.safetensors b.safetensors
  ~ fc.weight: 1 of 4 values, max abs 0.25, relative 0.0538
  1 equal, 1 different, 0 only in a.safetensors, 0 only in b.safetensors
  [1]
  $ weft-weights diff --atol 0.25 a.safetensors b.safetensors
  2 equal, 0 different, 0 only in a.safetensors, 0 only in b.safetensors
  $ weft-weights diff --rtol 0.34 a.safetensors b.safetensors
  2 equal, 0 different, 0 only in a.safetensors, 0 only in b.safetensors
  $ weft-weights convert --dtype bf16 a.safetensors b.safetensors > log && weft-weights diff a.safetensors b.safetensors
  ~ fc.weight: f32 and bf16
  1 equal, 1 different, 0 only in a.safetensors, 0 only in b.safetensors
  [1]
  $ weights b.safetensors 'fc.weight F32 4 1,-2,0.5,4' 'fc.steps I64 - 7'; weft-weights diff a.safetensors b.safetensors
  ~ fc.weight: f32[2,2] and f32[4]
  1 equal, 1 different, 0 only in a.safetensors, 0 only in b.safetensors
  [1]

Beyond 2^53 two integers may differ although their doubles are equal. A NaN equals a NaN, and is far from a number, whatever follows it.

  $ weights m.safetensors 'a I64 1 9007199254740993' 'b F32 2 nan,1'; weights n.safetensors 'a I64 1 9007199254740992' 'b F32 2 nan,1'
  $ weft-weights diff m.safetensors n.safetensors
  ~ a: 1 of 1 values, max abs 0, relative 0
  1 equal, 1 different, 0 only in m.safetensors, 0 only in n.safetensors
  [1]
  $ weights n.safetensors 'a I64 1 9007199254740992' 'b F32 2 2,1'; weft-weights diff m.safetensors n.safetensors
  ~ a: 1 of 1 values, max abs 0, relative 0
  ~ b: 1 of 2 values, max abs nan, relative nan
  0 equal, 2 different, 0 only in m.safetensors, 0 only in n.safetensors
  [1]

# Mistakes

  $ fails weft-weights; fails weft-weights shwo; fails weft-weights show; fails weft-weights convert a.safetensors
  weft-weights: error: expected a command: show, convert or diff (weft-weights --help lists the flags) [2]
  weft-weights: error: expected a command, got 'shwo'. Did you mean 'show'? (weft-weights --help lists the flags) [2]
  weft-weights: error: show: expected 1 file, got 0 (weft-weights --help lists the flags) [2]
  weft-weights: error: convert: expected 2 files, got 1 (weft-weights --help lists the flags) [2]
  $ fails weft-weights convert a.safetensors b.txt; fails weft-weights convert --max-shard-size 5GB a.safetensors b.pt
  weft-weights: error: convert: expected a name that ends in .safetensors, .pt, .pth, .th or .bin, got 'b.txt' (weft-weights --help lists the flags) [2]
  weft-weights: error: --max-shard-size: expected a name that ends in .safetensors, got 'b.pt' (weft-weights --help lists the flags) [2]
  $ fails weft-weights convert --max-shard-size -5GB a.safetensors b.safetensors; fails weft-weights show /nowhere
  weft-weights: error: --max-shard-size: expected a size such as 5GB or 500MiB, got '-5GB' (weft-weights --help lists the flags) [2]
  weft-weights: error: weights: /nowhere: expected to open it, got 'No such file or directory' [1]
  $ weft-weights diff /nowhere a.safetensors
  weft-weights: error: weights: /nowhere: expected to open it, got 'No such file or directory'
  [2]
  $ fails weft-weights show --key model a.safetensors; fails weft-weights show --map hf_dinov1 a.safetensors
  weft-weights: error: weights: a.safetensors: expected no key for this format, which holds one dict, got 'model' [1]
  weft-weights: error: --map: unknown value 'hf_dinov1'. Did you mean 'hf_dinov2'? (weft-weights --help lists the flags) [2]

A full disk cuts no table short.

  $ weft-weights show a.safetensors > /dev/full
  weft-weights: error: standard output: expected to write all of it, got 'No space left on device'
  [1]
  $ weft-weights show --json a.safetensors > /dev/full
  weft-weights: error: standard output: expected to write all of it, got 'No space left on device'
  [1]
  $ weft-weights diff a.safetensors a.safetensors > /dev/full
  weft-weights: error: standard output: expected to write all of it, got 'No space left on device'
  [2]

  $ weft-weights --help | grep 'weft-weights convert'; weft-weights diff --help | grep -o -e '--atol X'
    weft-weights convert [flags] FROM TO    writes TO: .safetensors or .pt (.pth, .th, .bin) by its name
    weft-weights convert --dtype bf16 bert-base-uncased/pytorch_model.bin model.safetensors
  --atol X
