# single_gpu, the tutorial's first program.

needs: zip

It prints and saves as the tutorial's does: 2048 pairs in batches of 32, 50 epochs, checkpoint.pt after each tenth.

  $ weft-info | grep libzip
  …
  part      found   libzip …
  [1]
  $ single_gpu 50 10 > out 2> said; seq -f '[GPU0] Epoch %g | Batchsize: 32 | Steps: 64' 0 49 | diff <(grep GPU0 out) -
  $ grep -B 1 saved out
  [GPU0] Epoch 0 | Batchsize: 32 | Steps: 64
  Epoch 0 | Training checkpoint saved at checkpoint.pt
  --
  [GPU0] Epoch 10 | Batchsize: 32 | Steps: 64
  Epoch 10 | Training checkpoint saved at checkpoint.pt
  --
  [GPU0] Epoch 20 | Batchsize: 32 | Steps: 64
  Epoch 20 | Training checkpoint saved at checkpoint.pt
  --
  [GPU0] Epoch 30 | Batchsize: 32 | Steps: 64
  Epoch 30 | Training checkpoint saved at checkpoint.pt
  --
  [GPU0] Epoch 40 | Batchsize: 32 | Steps: 64
  Epoch 40 | Training checkpoint saved at checkpoint.pt
  $ wc -l < out
  55
  $ weft-weights show checkpoint.pt
  checkpoint.pt: pytorch, 2 tensors, 21 elements, 84 bytes
  weight f32 [1,20]
  bias f32 [1]

It learns, unlike the original. A uniform number cannot be guessed better than 1/12.

  $ grep 'mean loss' said
  mean loss of epoch 0: …
  mean loss of epoch 49: …
  $ grep -o '[^ ]*$' said | jq -s -c '[.[1] < 0.8 * .[0], .[1] > 0.07]'
  [true,true]

Its losses are kept where it is asked to.

  $ rm -r *; single_gpu 3 10 --log-dir logs/a > out 2> said; ls
  checkpoint.pt
  logs
  out
  said
  $ jq -c '[.step, .train_loss > 0, .pairs_per_second > 0]' logs/a/metrics.jsonl
  [1,true,true]
  [2,true,true]
  [3,true,true]
  $ near 1e-5 <(of logs/a/metrics.jsonl train_loss | tail -n 1) <(tail -n 1 said | grep -o '[^ ]*$')
  $ grep -A 1 batch_size: logs/a/config.yaml
  batch_size:
    value: 32
  $ grep -a -o 'session_end' logs/a/events.out.tfevents.*
  session_end

The size of a batch is its own flag.

  $ single_gpu 2 1 --batch_size 100 2> said
  [GPU0] Epoch 0 | Batchsize: 100 | Steps: 21
  Epoch 0 | Training checkpoint saved at checkpoint.pt
  [GPU0] Epoch 1 | Batchsize: 100 | Steps: 21
  Epoch 1 | Training checkpoint saved at checkpoint.pt
  $ single_gpu --batch-size=4096 1 1 2> said
  [GPU0] Epoch 0 | Batchsize: 2048 | Steps: 1
  Epoch 0 | Training checkpoint saved at checkpoint.pt

The original's loss, the cross-entropy of one class, trains nothing.

  $ single_gpu 3 2 --lr 0 &> out; mv checkpoint.pt untouched.pt; single_gpu 3 2 --loss cross_entropy --lr 1 2> said > out; cat said
  mean loss of epoch 0: 0
  mean loss of epoch 2: 0
  $ weft-weights diff untouched.pt checkpoint.pt > out || cat out
  $ single_gpu 3 2 &> out; weft-weights diff untouched.pt checkpoint.pt > out
  [1]

A dry run trains nothing.

  $ rm -r *; single_gpu 50 10 --dry-run --device cpu
  single_gpu: would train Linear(20, 1) on cpu (…), 50 epochs of 64 steps of 32 pairs, loss mse, lr 0.001; checkpoint.pt every 10 epochs
  $ ls

What is wrong is said in one line.

  $ fails single_gpu 50
  single_gpu: error: expected save_every (write checkpoint.pt after every epoch that this divides), got no such argument (single_gpu --help lists the flags) [2]
  $ fails single_gpu fifty 10
  single_gpu: error: total_epochs: expected a whole number, got 'fifty' (single_gpu --help lists the flags) [2]
  $ fails single_gpu 50 0
  single_gpu: error: save_every: expected a value at least 1 and at most 1000000000, got 0 (single_gpu --help lists the flags) [2]
  $ fails single_gpu 50 10 --batchsize 3
  single_gpu: error: unknown flag --batchsize. Did you mean --batch-size? (single_gpu --help lists the flags) [2]
  $ fails single_gpu 50 10 --loss huber
  single_gpu: error: --loss: unknown value 'huber'. Known: mse, cross_entropy. (single_gpu --help lists the flags) [2]
  $ fails single_gpu 50 10 --config missing.toml
  single_gpu: error: --config: expected a file, got none at missing.toml (single_gpu --help lists the flags) [2]
  $ fails single_gpu 50 10 --device cuda:99
  single_gpu: error: device: 'cuda:99' cannot be used… [1]
  $ single_gpu --help | grep -c total_epochs
  2
