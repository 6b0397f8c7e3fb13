# What mnist reads and saves, and what it refuses.

needs: zip zlib

  $ "$WEFT"/tests/ml_dist/digits.py bars data 640 250
  $ mnist --epochs 1 --data-dir data --save-model --output-dir out &> said; weft-weights show out/mnist_cnn.pt
  out/mnist_cnn.pt: pytorch, 8 tensors, 1199882 elements, …
  conv1.weight f32 [32,1,3,3]
  conv1.bias f32 [32]
  conv2.weight f32 [64,32,3,3]
  conv2.bias f32 [64]
  fc1.weight f32 [128,9216]
  fc1.bias f32 [128]
  fc2.weight f32 [10,128]
  fc2.bias f32 [10]

That it cannot save is said before it trains.

  $ mnist --save-model --data-dir data --output-dir /dev/null/out
  ranks   1
  device  cpu (…)
  data    idx train: 640 images 28x28x1, 10 classes; idx val: 250 images 28x28x1, 10 classes
  mnist: error: run folder: expected to create /dev/null/out, got 'Not a directory'. Name another folder
  [1]

Compressed files are read, too, also where tools/fetch_data leaves them.

  $ dry() { mnist --dry-run --epochs 1 --data-dir "$1" 2> said; }; dry data > plain
  $ cp -r data packed; gzip packed/MNIST/raw/*; dry packed | diff plain -; dry packed/MNIST/raw | diff plain -; wc -l < plain
  4

What is wrong is said in one line.

  $ fails mnist --data-dir nowhere
  mnist: error: --data-dir: there is no folder nowhere, which should hold MNIST/raw with MNIST's four files. `tools/fetch_data mnist` brings them to datasets/mnist, --data-dir names that or another place [1]
  $ mkdir empty; mnist --data-dir empty
  mnist: error: idx: expected one of train-images-idx3-ubyte, train-images-idx3-ubyte.gz, train-images.idx3-ubyte, train-images.idx3-ubyte.gz in empty, got none of them
  [1]
  $ cp -r data short; truncate -s 1000 short/MNIST/raw/train-images-idx3-ubyte; mnist_ddp --data-dir short
  mnist_ddp: error: idx: short/MNIST/raw/train-images-idx3-ubyte is truncated: its header promises 501760 bytes of data, got 984
  [1]
  $ printf '\56' | dd of=short/MNIST/raw/t10k-labels-idx1-ubyte bs=1 seek=8 conv=notrunc status=none; cp data/MNIST/raw/train* short/MNIST/raw; mnist --data-dir short
  mnist: error: --data-dir: expected images of 28x28x1 in 10 classes, got idx train: 640 images 28x28x1, 47 classes
  [1]
  $ fails mnist --no-cuda --device cuda
  mnist: error: --no-cuda: expected no other --device, got --device cuda (mnist --help lists the flags) [2]
  $ fails horovod_training --epocs 3
  horovod_training: error: unknown flag --epocs. Did you mean --epochs? (horovod_training --help lists the flags) [2]
  $ fails mnist --mode fsdp
  mnist: error: --mode: unknown value 'fsdp'. Known: auto, base, ddp, mpi, horovod. (mnist --help lists the flags) [2]
  $ fails mnist --log-interval 0
  mnist: error: --log-interval: expected a value at least 1, got 0 (mnist --help lists the flags) [2]

`--help` has the twelve flags of the original.

  $ ddp_training --help | grep -oE -- '--(batch-size N \[64\]|test-batch-size N \[1000\]|epochs N \[16\]|lr|gamma X \[0\.7\]|no-cuda|dry-run|seed|log-interval|save-model|data-dir|output-dir) |\[\./output/default\]' | sort -u
  --batch-size N [64]
  --data-dir
  --dry-run
  --epochs N [16]
  --gamma X [0.7]
  --log-interval
  --lr
  --no-cuda
  --output-dir
  --save-model
  --seed
  --test-batch-size N [1000]
  [./output/default]
