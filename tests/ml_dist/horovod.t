# Horovod's way under mpirun is data parallel.

needs: zip ranks mpi

  $ "$WEFT"/tests/ml_dist/digits.py bars data 640 250; export NCCL_DEBUG=INFO
  $ flags='--epochs 2 --log-interval 3 --save-model --data-dir data --output-dir'
  $ mpi 2 horovod_training $flags horovod 2> said | tee in_time | sort > printed; grep Train printed
  Train Epoch: 1 [0/320 (0%)] Loss: …
  Train Epoch: 1 [0/320 (0%)] Loss: …
  Train Epoch: 1 [192/320 (60%)] Loss: …
  Train Epoch: 1 [192/320 (60%)] Loss: …
  Train Epoch: 2 [0/320 (0%)] Loss: …
  Train Epoch: 2 [0/320 (0%)] Loss: …
  Train Epoch: 2 [192/320 (60%)] Loss: …
  Train Epoch: 2 [192/320 (60%)] Loss: …
  $ grep -cP '\tLoss: [0-9]+\.[0-9]{6}$' printed
  8
  $ grep Test printed | uniq -u; grep Test printed | head -n 1; grep -c Test printed
  Test set: Average loss: [0-9]+\.[0-9]{4}, Accuracy: [0-9]+\.[0-9]{4}% (re)
  4
  $ grep -o 'Accuracy: [0-9.]*' in_time | grep -o '[0-9.]*$' | tail -n 1 | jq '. >= 90'
  true

With equal batches an optimizer that averages is DDP. 4e-4 is the random walk of the sums in 20 steps over batches of 64 images, 576 positions each.

  $ mpi 2 mnist --mode ddp $flags ddp 2> said | grep -c 'Train.*320.*Loss'
  8
  $ weft-weights diff --atol 4e-6 --rtol 4e-4 horovod/mnist_cnn.pt ddp/mnist_cnn.pt
  8 equal, 0 different, 0 only in horovod/mnist_cnn.pt, 0 only in ddp/mnist_cnn.pt

mnist and mnist_base as ranks of nobody are two runs that know nothing of each other.

  $ mpi 2 mnist_base --dry-run --epochs 1 --data-dir data 2> said | grep Train
  Train Epoch: 1 [0/640 (0%)] Loss: …
  Train Epoch: 1 [0/640 (0%)] Loss: …
