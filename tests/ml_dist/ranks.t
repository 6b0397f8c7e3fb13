# mnist in data-parallel modes, on two ranks.

needs: zip ranks

Each rank prints its own lines of training, and the same test of the whole set.

  $ "$WEFT"/tests/ml_dist/digits.py bars data 640 250
  $ ranks 2 ddp_training --epochs 2 --log-interval 3 --data-dir data --output-dir out --save-model 2> said | tee in_time | sort > printed; grep Train printed
  Train Epoch: 1 [0/320 (0%)] Loss: …
  Train Epoch: 1 [0/320 (0%)] Loss: …
  Train Epoch: 1 [192/320 (60%)] Loss: …
  Train Epoch: 1 [192/320 (60%)] Loss: …
  Train Epoch: 2 [0/320 (0%)] Loss: …
  Train Epoch: 2 [0/320 (0%)] Loss: …
  Train Epoch: 2 [192/320 (60%)] Loss: …
  Train Epoch: 2 [192/320 (60%)] Loss: …
  $ grep -cP '\tLoss: [0-9]+\.[0-9]{6} $' printed
  8
  $ grep Test printed | uniq -u; grep Test printed | head -n 1; grep -c Test printed
  Test set: Average loss: [0-9]+\.[0-9]{4}, Accuracy: [0-9]+/250 \([0-9]+%\) (re)
  4
  $ grep -o 'Accuracy: [0-9]*' in_time | grep -o '[0-9]*$' | tail -n 1 | jq '. >= 225'
  true
  $ weft-weights show out/mnist_cnn.pt
  out/mnist_cnn.pt: pytorch, 8 tensors, 1199882 elements, …
  conv1.weight f32 [32,1,3,3]
  conv1.bias f32 [32]
  conv2.weight f32 [64,32,3,3]
  conv2.bias f32 [64]
  fc1.weight f32 [128,9216]
  fc1.bias f32 [128]
  fc2.weight f32 [10,128]
  fc2.bias f32 [10]

Ranks with other flags or images are named.

  $ both() { ranks 2 sh -c "mnist_ddp --epochs 1 $1" 2>&1 | grep -oE '(settings|data): the .* not the same.*' | sort -u; }
  $ both '--data-dir data --lr 1.$RANK'
  settings: the flags are not the same on all ranks: at entry … rank 0 has 'lr = 1.0', rank 1 has 'lr = 1.1'. Start all ranks with the same flags
  [1]
  $ "$WEFT"/tests/ml_dist/digits.py bars other 600 250; both '--data-dir $([ $RANK = 0 ] && echo data || echo other)'
  data: the set is not the same on all ranks: at entry 1 rank 0 has '640 images for training', rank 1 has '600 images for training'. All ranks must read the same images
  [1]

MASTER_ADDR may hold host and port.

  $ export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost:$(free_port) WEFT_JOB_SECRET=known-to-two-ranks
  $ rank() { RANK=$1 LOCAL_RANK=$1 mnist_ddp --dry-run --epochs 1 --data-dir data 2> "said$1" > "printed$1"; }
  $ rank 1 & rank 0 && wait $! && sort printed0 printed1 | grep . | grep -v ^Test
  Train Epoch: 1 [0/320 (0%)] Loss: …
  Train Epoch: 1 [0/320 (0%)] Loss: …
  $ grep -h Test printed0 printed1 | uniq -d
  Test set: Average loss: …
