# What train_image refuses, each in one clear line, with the exit code of a usage error (2) or of a failure (1).

  $ small() { train_image --data random:64x16x16x3 --model resnet8 --batch-size 16 --epochs 1 --out run "$@"; }
  $ error() { "$@" > log 2>&1; local code=$?; sed -n '/train_image: error: /,$p' log; return $code; }

Names that do not exist: the nearest one is suggested.

  $ error train_image --batchsize 3
  train_image: error: unknown flag --batchsize. Did you mean --batch-size? (train_image --help lists the flags)
  [2]
  $ error small --optimizer sdg
  train_image: error: --optimizer: unknown value 'sdg'. Did you mean 'sgd'? (train_image --help lists the flags)
  [2]
  $ error small --model resnet19
  train_image: error: make_model: no model is called 'resnet19'. Did you mean 'resnet18'?
  [1]
  $ error train_image --out run --data cifar11:/nowhere
  train_image: error: data: unknown kind 'cifar11'. Did you mean 'cifar10'?
  [1]
  $ error small --fsdp-offload optimizer
  train_image: error: --fsdp-offload, --fsdp-strategy, --fsdp-shard-size and --fsdp-accumulate: expected --parallel fsdp, got auto (train_image --help lists the flags)
  [2]
  $ error small --recompute
  train_image: error: --recompute: expected a model of transformer blocks, such as vit_small16, got resnet8 (train_image --help lists the flags)
  [2]
  $ error small --device tpu
  train_image: error: device: expected cpu, cuda, cuda:N or emulated, got 'tpu'
  [1]
  $ error small --augment cifr
  train_image: error: --augment: unknown name 'cifr'. Did you mean 'cifar'? (train_image --help lists the flags)
  [2]
  $ error small --augment autoaugment:cifar11
  train_image: error: --augment: expected autoaugment:imagenet, :cifar10 or :svhn, got 'autoaugment:cifar11'. Did you mean 'cifar10'? (train_image --help lists the flags)
  [2]
  $ error small --augment flip+randaugmnt
  train_image: error: --augment: unknown policy 'randaugmnt'. Did you mean 'randaugment'? (train_image --help lists the flags)
  [2]
  $ error small --interpolation nearest
  train_image: error: --interpolation: unknown value 'nearest'. Known: bilinear, bicubic. (train_image --help lists the flags)
  [2]

Files and folders that are not there.

  $ error train_image --out run --data cifar10:/nowhere/at/all
  train_image: error: cifar10: expected at least one of test_batch.bin in /nowhere/at/all or in its cifar-10-batches-bin, or the python version in its cifar-10-batches-py, got no such folder
  [1]
  $ error small --weights /nowhere.safetensors
  train_image: error: --weights /nowhere.safetensors: weights: /nowhere.safetensors: expected to open it, got 'No such file or directory'
  [1]
  $ error small --config /nowhere.toml
  train_image: error: --config: expected a file, got none at /nowhere.toml (train_image --help lists the flags)
  [2]
  $ error small --resume none.safetensors
  train_image: error: checkpoint: none.safetensors: expected a checkpoint, got no such file
  [1]

What could not be written at the end is an error at the start.

  $ rm -r run; error small --export model.pt
  train_image: error: --export: expected a name that ends in .safetensors, got model.pt. weft-weights convert writes files of PyTorch from it (train_image --help lists the flags)
  [2]
  $ error small --export none/model.safetensors
  train_image: error: --export none/model.safetensors: expected an existing folder, got none at none
  [1]
  $ mkdir folder; error small --export folder
  train_image: error: --export: expected a file, got the folder folder
  [1]
  $ ls
  folder
  log
  $ small --dry-run --out fresh/ --export ./fresh/m.safetensors 2> log | grep -c '^dry run'; small --dry-run --export "$PWD/run/m.safetensors" 2> log | grep -c '^dry run'
  1
  1

Numbers out of their range.

  $ OMP_NUM_THREADS=99999 error small
  train_image: error: OMP_NUM_THREADS: expected at most 1024 threads, got 99999 (train_image --help lists the flags)
  [2]

  $ error small --batch-size 0
  train_image: error: --batch-size: expected a value at least 1 and at most 1000000, got 0 (train_image --help lists the flags)
  [2]
  $ error small --batch-size 65
  train_image: error: loader: expected a batch size of at most 64, the number of images of this rank, got 65 (random train: 64 images 16x16x3, 10 classes, 1 ranks)
  [1]
  $ error small --device cuda:63
  train_image: error: device: 'cuda:63' …
  [1]
  $ error small --mean 0.5,0.5
  train_image: error: --mean: expected 3 numbers, one per channel, got 2 (train_image --help lists the flags)
  [2]
  $ error small --mean 123.7,116.3,103.5
  train_image: error: --mean: expected numbers from 0 to 1, where white is 1, got 123.7. Divide those of bytes by 255 (train_image --help lists the flags)
  [2]
  $ error small --std 58.4,57.1,57.4
  train_image: error: --std: expected numbers from 0 to 1, where white is 1, got 58.4. Divide those of bytes by 255 (train_image --help lists the flags)
  [2]
  $ error small --mean -0.1
  train_image: error: --mean: expected numbers from 0 to 1, where white is 1, got -0.1 (train_image --help lists the flags)
  [2]
  $ error small --schedule step --milestones 30,60
  train_image: error: --milestones: expected shares of the run, 0 to 1, got 30 (train_image --help lists the flags)
  [2]
  $ error small --milestones 0.75,0.5
  train_image: error: --milestones: expected shares that rise, got a smaller one behind a larger one (train_image --help lists the flags)
  [2]
  $ error small --augment randaugment:2,31
  train_image: error: --augment: expected randaugment:N,M with N from 1 to 16 and M from 0 to 30, got 'randaugment:2,31' (train_image --help lists the flags)
  [2]
  $ error small --augment trivialaugment:3
  train_image: error: --augment: expected trivialaugment alone, it has nothing to tune; got 'trivialaugment:3' (train_image --help lists the flags)
  [2]
  $ error small --color-jitter 0.4,0.4,0.4
  train_image: error: --color-jitter: expected 4 numbers between commas, got 3 in '0.4,0.4,0.4' (train_image --help lists the flags)
  [2]
  $ error small --color-jitter 0.4,0.4,0.4,0.6
  train_image: error: --color-jitter: expected a hue of at most 0.5, got 0.6 (train_image --help lists the flags)
  [2]
  $ error small --color-jitter 0.4,-1,0.4,0
  train_image: error: --color-jitter: expected numbers of at least 0, got -1 (train_image --help lists the flags)
  [2]
  $ error small --random-erasing 1.5
  train_image: error: --random-erasing: expected a value at least 0 and at most 1, got 1.5 (train_image --help lists the flags)
  [2]
  $ error small --mixup -1
  train_image: error: --mixup: expected a value at least 0, got -1 (train_image --help lists the flags)
  [2]
  $ error small --augment imagenet:16 --crop-scale 0.5,0.1
  train_image: error: --crop-scale: expected two numbers above 0 in ascending order, up to 1, got 0.5,0.1 (train_image --help lists the flags)
  [2]

Flags that would count for nothing, or do not fit one another.

  $ error small --device cpu --decode-on gpu
  train_image: error: --decode-on gpu: expected --device cuda, got cpu (train_image --help lists the flags)
  [2]
  $ error small --precision fp8
  train_image: error: --precision fp8: expected a model of transformer blocks, such as vit_small16, got resnet8 (train_image --help lists the flags)
  [2]
  $ error small --device cpu --graph on
  train_image: error: --graph on: expected --device cuda, got cpu, which runs each op at once (train_image --help lists the flags)
  [2]
  $ error small --eval-only --resume auto
  train_image: error: --eval-only: evaluates --weights FILE, which may be a checkpoint, got --resume auto (train_image --help lists the flags)
  [2]
  $ error small --schedule onecycle --warmup 1
  train_image: error: --warmup: expected another --schedule, onecycle rises by itself, got 1 (train_image --help lists the flags)
  [2]
  $ error small --ema-warmup
  train_image: error: --ema-warmup: needs --ema (train_image --help lists the flags)
  [2]
  $ error small --augment cifar --crop-scale 0.1,1
  train_image: error: --crop-scale: expected --augment imagenet, got cifar (train_image --help lists the flags)
  [2]

None of these left a file in its run folder.

  $ find . -type f
  ./log

Rates that learn little are allowed, and said.

  $ small --lr 0 --warmup 1 2>&1 | grep warning
  warning: --warmup 1 is not shorter than the run of 1 epochs: it is cut to end with the last step
  warning: the learning rate is 0, so nothing is learned

Data sets that are damaged.

  $ mkdir cifar; head -c $((3073 * 4)) /dev/zero > cifar/test_batch.bin; head -c $((3073 * 4 - 1)) /dev/zero > cifar/data_batch_1.bin
  $ error train_image --data cifar10:cifar
  train_image: error: cifar10: expected a whole number of records of 3073 bytes in cifar/data_batch_1.bin, got 12291 bytes (3 records and 3072 bytes). The file is truncated or of another format.
  [1]
  $ for part in test data; do { head -c 3073 /dev/zero; printf M; head -c $((3073 * 2 - 1)) /dev/zero; } > cifar/${part}_batch$([ $part = test ] || echo _1).bin; done
  $ error train_image --data cifar10:cifar
  train_image: error: cifar10: expected labels 0 to 9, got 77 in cifar/test_batch.bin record 1. The file is corrupt or of another format.
  [1]
  $ mkdir -p empty/train empty/val; error train_image --data folder:empty
  train_image: error: folder: expected one folder per class in empty/val, got none
  [1]

A loss that is not finite: where it began, and what to do.

  $ error small --overwrite --lr 1e30 --epochs 5
  train_image: error: loss is not finite (…) at epoch 1, step 2: the data and the weights are finite (up to …); it begins in … are NaN or infinite, the first is … (WEFT_CHECK_NAN=1). Lower --lr, add --warmup or --clip-norm. The last good checkpoint is kept
  [1]

A checkpoint of another model, of another batch, damaged.

  $ small --overwrite --max-steps 1 > log 2>&1; mv run first; last=first/checkpoint_last.safetensors
  $ error small --model resnet20 --resume $last
  train_image: error: checkpoint first/checkpoint_last.safetensors is of model 'resnet8', this run trains 'resnet20'
  [1]
  $ error small --batch-size 32 --resume $last
  train_image: error: checkpoint first/checkpoint_last.safetensors was made with --batch-size 16, this run has 32
  [1]
  $ truncate -s $(($(stat -c %s $last) / 2)) $last; error small --resume $last
  train_image: error: checkpoint: first/checkpoint_last.safetensors: damaged or cut short: it does not end with a seal. Resume from another checkpoint
  [1]

A disk that is full half way through the new checkpoint keeps the old one. A limit on file sizes stands for it.

  $ small --max-steps 1 > log 2>&1; cp run/checkpoint_last.safetensors old
  $ error eval "(trap '' XFSZ; ulimit -f 100; small --resume auto --max-steps 2)"
  train_image: error: checkpoint: expected to write run/checkpoint_last.safetensors, got 'File too large'. The old file is unchanged. Raise the limit on file sizes (ulimit -f).
  [1]
  $ same old run/checkpoint_last.safetensors; state old | grep '^step '
  step 1
