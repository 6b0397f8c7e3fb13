# mnist, which is also mnist_base and base_training, trains on one process.

  $ "$WEFT"/tests/ml_dist/digits.py bars data 640 250
  $ mnist --epochs 2 --log-interval 3 --log-dir logs --data-dir=data --output-dir=out 2> said > out.txt; sed 's/^$/-/' out.txt
  Train Epoch: 1 \[0/640 \(0%\)\]\tLoss: [0-9]+\.[0-9]{6} (re)
  Train Epoch: 1 \[192/640 \(30%\)\]\tLoss: [0-9]+\.[0-9]{6} (re)
  Train Epoch: 1 \[384/640 \(60%\)\]\tLoss: [0-9]+\.[0-9]{6} (re)
  Train Epoch: 1 \[576/640 \(90%\)\]\tLoss: [0-9]+\.[0-9]{6} (re)
  -
  Test set: Average loss: [0-9]+\.[0-9]{4}, Accuracy: [0-9]+/250 \([0-9]+%\) (re)
  -
  Train Epoch: 2 \[0/640 \(0%\)\]\tLoss: [0-9]+\.[0-9]{6} (re)
  Train Epoch: 2 \[192/640 \(30%\)\]\tLoss: [0-9]+\.[0-9]{6} (re)
  Train Epoch: 2 \[384/640 \(60%\)\]\tLoss: [0-9]+\.[0-9]{6} (re)
  Train Epoch: 2 \[576/640 \(90%\)\]\tLoss: [0-9]+\.[0-9]{6} (re)
  -
  Test set: Average loss: [0-9]+\.[0-9]{4}, Accuracy: [0-9]+/250 \([0-9]+%\) (re)
  -
  $ head -n 1 said
  ranks   1

It learns: nine of ten are right. A model is saved only where that is asked for.

  $ right() { grep -o 'Accuracy: [0-9.]*' | grep -o '[0-9.]*$' | tail -n 1; }
  $ right < out.txt | jq '. >= 225'
  true
  $ ls
  data
  logs
  out.txt
  said

Its numbers are kept where it is asked to: the training loss after the steps 0, 3, 6 and 9 of ten.

  $ jq -c 'select(has("train_loss")) | .step' logs/metrics.jsonl | tr '\n' ,
  1,4,7,10,11,14,17,20,
  $ jq -c 'select(has("test_loss")) | [.step, has("test_accuracy"), .learning_rate * 10]' logs/metrics.jsonl
  [10,true,10]
  [20,true,7]
  $ near 1e-6 <(of logs/metrics.jsonl test_accuracy | jq '. * 250' | tail -n 1) <(right < out.txt)
  $ grep -A 1 mode: logs/config.yaml
  mode:
    value: "base"
  $ grep -a -o session_end logs/events.out.tfevents.*
  session_end

A seed is a run.

  $ seed() { base_training --epochs 1 --data-dir data --seed "$1" 2> said; }
  $ seed 3 > a; seed 3 | diff a -; seed 4 | cmp -s a -
  [1]

A dry run takes one batch of each epoch.

  $ mnist_base --dry-run --epochs 2 --data-dir data 2> said | sed 's/^$/-/'
  Train Epoch: 1 [0/640 (0%)] Loss: …
  -
  Test set: Average loss: …, Accuracy: …/250 (…%)
  -
  Train Epoch: 2 [0/640 (0%)] Loss: …
  -
  Test set: Average loss: …, Accuracy: …/250 (…%)
  -
  $ ls -d output
  ls: cannot access 'output': No such file or directory
  [2]
