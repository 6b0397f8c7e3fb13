# --device emulated[:GPU] starts a program again under weft-emulate.

needs: emulated

  $ unset CUDA_VISIBLE_DEVICES  # the emulator's GPUs are to be seen
  $ train() { train_image --data random:64x8x8x3 --model resnet8 --batch-size 8 --max-steps 3 --workers 0 "$@" 2>&1; }

It trains on the GPU that the flag or the file names.

  $ train --device emulated:a100 --out 'one run' | grep '^device'
  device  cuda:0 (NVIDIA A100-SXM4-80GB, 108 SMs, 79 GiB)
  $ grep device 'one run/config.toml'; jq .steps 'one run/summary.json'
  device = "emulated:a100"
  3
  $ train_image --overwrite --config 'one run/config.toml' 2>&1 | grep '^device'
  device  cuda:0 (NVIDIA A100-SXM4-80GB, 108 SMs, 79 GiB)

The program that starts again is the one that PATH names.

  $ (PATH=$(dirname "$(command -v train_image)"):$PATH; train --dry-run --device emulated:a100 | grep '^device')
  device  cuda:0 (NVIDIA A100-SXM4-80GB, 108 SMs, 79 GiB)

A process that is emulated keeps its GPU, unless another is named.

  $ weft-emulate --gpu a100 train_image --data random:64x8x8x3 --model resnet8 --batch-size 8 --dry-run --device emulated 2>&1 | grep '^device'
  device  cuda:0 (NVIDIA A100-SXM4-80GB, 108 SMs, 79 GiB)
  $ weft-emulate --gpu h100 train_image --data random:64x8x8x3 --model resnet8 --batch-size 8 --dry-run --device emulated:a100 2>&1 | grep '^device'
  device  cuda:0 (NVIDIA A100-SXM4-80GB, 108 SMs, 79 GiB)

A GPU that does not exist is an error which names those that do. Nothing is left of it.

  $ train --device emulated:z80 --out new
  weft-emulate: --gpu (WEFT_EMULATE_GPU): expected one of h100 a100 h200 gh200 a6000 l4 b200 t4, got 'z80'
  [2]
  $ train --device emulated: --out new
  train_image: error: device: expected cpu, cuda, cuda:N or emulated, got 'emulated:'
  [1]
  $ ls
  one run

Errors and exit codes are the program's.

  $ train_image --data random:8x8x8x3 --model resnet8 --batch-size 65 --device emulated --out new 2>&1 | tail -n 1
  train_image: error: loader: expected a batch size of at most 8, the number of images of this rank, got 65 (random train: 8 images 8x8x3, 10 classes, 1 ranks)
  [1]
