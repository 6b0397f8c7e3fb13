# multinode on several ranks of weft-run.

needs: zip ranks

Each rank has its lines; the first one alone saves.

  $ ranks 2 multinode 50 10 > out 2> said; grep '^\[GPU0\]' out | diff - <(seq -f '[GPU0] Epoch %g | Batchsize: 32 | Steps: 32' 0 49)
  $ grep '^\[GPU1\]' out | diff - <(seq -f '[GPU1] Epoch %g | Batchsize: 32 | Steps: 32' 0 49)
  $ grep -v GPU out
  Epoch 0 | Training snapshot saved at snapshot.pt
  Epoch 10 | Training snapshot saved at snapshot.pt
  Epoch 20 | Training snapshot saved at snapshot.pt
  Epoch 30 | Training snapshot saved at snapshot.pt
  Epoch 40 | Training snapshot saved at snapshot.pt

Together they take the batches of one rank with 64 pairs, and come to its weights. Its names have no `module.`, either. Sums of 64 pairs in 40 x 32
steps come in another order: 1.4e-4 is the random walk of 40 x 2048 roundings of f32, four operations each.

  $ weights() { torch_file "$1" | jq .MODEL_STATE.weight.values; }
  $ torch_file snapshot.pt | jq -c '[.EPOCHS_RUN, (.MODEL_STATE | .weight.shape, .bias.shape)]'
  [40,[1,20],[1]]
  $ mkdir alone; (cd alone; multinode 50 10 --batch_size 64 &> out); distance <(weights snapshot.pt) <(weights alone/snapshot.pt) | jq '. < 1.4e-4'
  true

Both resume at the snapshot.

  $ ranks 2 multinode 50 10 2> said > out; seq -f '[GPU%g] Epoch' 0 1 | while read -r rank; do grep -F "$rank" out | sed -n '1p; $p; $='; done
  [GPU0] Epoch 40 | Batchsize: 32 | Steps: 32
  [GPU0] Epoch 49 | Batchsize: 32 | Steps: 32
  10
  [GPU1] Epoch 40 | Batchsize: 32 | Steps: 32
  [GPU1] Epoch 49 | Batchsize: 32 | Steps: 32
  10
  $ grep -v GPU out | sort
  Epoch 40 | Training snapshot saved at snapshot.pt
  Loading snapshot
  Loading snapshot
  Resuming training from snapshot at Epoch 40
  Resuming training from snapshot at Epoch 40

Three ranks train each pair once: of 2048 pairs in steps of 33 the last one has two for three ranks.

  $ mkdir three one; (cd one; multinode 7 3 --batch_size 33 &> out); (cd three; ranks 3 multinode 7 3 --batch_size 11 &> out)
  $ distance <(weights three/snapshot.pt) <(weights one/snapshot.pt) | jq '. < 5.3e-5'
  true

Ranks with other flags are named, before they write anything.

  $ mkdir other; cd other; ranks 2 sh -c 'multinode 5 1 --seed $RANK' 2>&1 | grep -o 'settings: .*' | sort -u
  settings: the flags are not the same on all ranks: at entry … rank 0 has 'seed = 0', rank 1 has 'seed = 1'. Start all ranks with the same…
  [1]
  $ ls
