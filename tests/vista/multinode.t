# multinode alone: it saves snapshots, and resumes at the last one.

needs: zip

  $ multinode 50 10 > out 2> said; seq -f '[GPU0] Epoch %g | Batchsize: 32 | Steps: 64' 0 49 | diff <(grep GPU0 out) -
  $ grep -v GPU0 out
  Epoch 0 | Training snapshot saved at snapshot.pt
  Epoch 10 | Training snapshot saved at snapshot.pt
  Epoch 20 | Training snapshot saved at snapshot.pt
  Epoch 30 | Training snapshot saved at snapshot.pt
  Epoch 40 | Training snapshot saved at snapshot.pt
  $ torch_file snapshot.pt | jq -c '[.EPOCHS_RUN, (.MODEL_STATE | .weight.shape, .bias.shape)]'
  [40,[1,20],[1]]
  $ multinode 50 10 2> said
  Loading snapshot
  Resuming training from snapshot at Epoch 40
  [GPU0] Epoch 40 | Batchsize: 32 | Steps: 64
  Epoch 40 | Training snapshot saved at snapshot.pt
  [GPU0] Epoch 41 | Batchsize: 32 | Steps: 64
  [GPU0] Epoch 42 | Batchsize: 32 | Steps: 64
  [GPU0] Epoch 43 | Batchsize: 32 | Steps: 64
  [GPU0] Epoch 44 | Batchsize: 32 | Steps: 64
  [GPU0] Epoch 45 | Batchsize: 32 | Steps: 64
  [GPU0] Epoch 46 | Batchsize: 32 | Steps: 64
  [GPU0] Epoch 47 | Batchsize: 32 | Steps: 64
  [GPU0] Epoch 48 | Batchsize: 32 | Steps: 64
  [GPU0] Epoch 49 | Batchsize: 32 | Steps: 64

A resumed run repeats nothing: its weights are those of a run without a pause.

  $ state() { torch_file snapshot.pt | jq -c '[.EPOCHS_RUN, .MODEL_STATE.weight.values]'; }
  $ rm snapshot.pt; multinode 12 3 &> out; state > whole; rm snapshot.pt
  $ multinode 8 3 &> out; state | jq '.[0]'; multinode 12 3 &> out; state | jq '.[0]'; state | diff whole -
  6
  9

Its log goes on where the snapshot does, at epoch 4: the first run's lines of the epochs 5 and 6 are gone.

  $ rm snapshot.pt; multinode 6 4 --log-dir logs &> out; multinode 8 4 --log-dir logs &> out; jq -c '[.step, has("train_loss")]' logs/metrics.jsonl
  [1,true]
  [2,true]
  [3,true]
  [4,true]
  [5,true]
  [6,true]
  [7,true]
  [8,true]

What is wrong is said in one line.

  $ fails multinode
  multinode: error: expected total_epochs (epochs to train), got no such argument (multinode --help lists the flags) [2]
  $ fails multinode 5 1 --backend tcp
  multinode: error: --backend: unknown value 'tcp'. Known: auto, nccl, mpi, gloo. (multinode --help lists the flags) [2]
  $ echo 'not a snapshot' > snapshot.pt; multinode 5 1
  multinode: error: pytorch: snapshot.pt: expected a file that torch.save wrote (a zip archive, or pickles), got something else
  [1]
  $ torch_file --new snapshot.pt '{"EPOCHS_RUN": 3}'; multinode 5 1
  multinode: error: snapshot.pt: expected the key 'MODEL_STATE', got none. There are: EPOCHS_RUN
  [1]

A dry run writes nothing.

  $ rm snapshot.pt; multinode 50 10 --dry-run
  multinode: would train Linear(20, 1) on cpu (…), …
  $ ls snapshot.pt
  ls: cannot access 'snapshot.pt': No such file or directory
  [2]
