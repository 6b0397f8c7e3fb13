# one_gpu trains by its job script, and leaves the files of the course.

needs: jpeg zip

  $ . "$WEFT"/tests/jsc/insects.sh; insects data/hymenoptera_data; jobs_here

A dry run says what would happen, and writes nothing.

  $ one_gpu --dry-run --device cpu
  ranks   alone
  device  cpu (…)
  train   folder train: 5 images of varying size, 2 classes
  val     folder val: 3 images of varying size, 2 classes
  test    folder test: 2 images of varying size, 2 classes
  model   resnet18, 11177538 parameters, 2 classes
  would train 50 epochs with batches of 1, log to tb_logs/my_model/version_N and write image_classification_model.pt
  $ one_gpu --dry-run --device cpu --backbone resnet50 | grep model.*param
  model   resnet50, 23512130 parameters, 2 classes
  $ ls
  data

Its job script runs it with the flags that it gets.

  $ run_one_gpu.sh --epochs 2 --device cpu 2> said
  Epoch 0: train_cross_entropy=[0-9.]+ train_accuracy=[0-9.]+ val_cross_entropy=[0-9.]+ val_accuracy=[0-9.]+ (re)
  Epoch 1: train_cross_entropy=[0-9.]+ train_accuracy=[0-9.]+ val_cross_entropy=[0-9.]+ val_accuracy=[0-9.]+ (re)
  Test: test_cross_entropy=[0-9.]+ test_accuracy=[0-9.]+ (re)
  elapsed: 00 hours [0-9][0-9] min [0-9][0-9] sec (re)
  $ grep ^model said
  model   resnet18, 11177538 parameters, 2 classes
  $ cd tb_logs/my_model/version_0; jq -s -r 'map(keys[]) | unique[]' metrics.jsonl
  epoch
  step
  test_accuracy
  test_cross_entropy
  time
  train_accuracy
  train_cross_entropy
  val_accuracy
  val_cross_entropy
  $ grep -E 'learning_rate|class_names' hparams.yaml
  learning_rate: 0.001
  class_names: "[\"ants\",\"bees\"]"
  $ grep -a -o -m 1 val_accuracy events.out.tfevents.* | sort -u
  val_accuracy

The checkpoint is Lightning's: five images, one at a time, twice.

  $ cd ../../..; torch_file image_classification_model.pt > last; jq -c 'keys_unsorted, .epoch, .global_step' last
  ["epoch","global_step","pytorch-lightning_version","state_dict","loops","callbacks","optimizer_states","lr_schedulers","hyper_parameters"]
  2
  10
  $ jq -c '.state_dict | keys_unsorted[0], ."conv1.weight".shape, ."fc.weight".shape, ."bn1.num_batches_tracked".values[0]' last
  "conv1.weight"
  [64,3,7,7]
  [2,512]
  10

The second run has a folder of its own, and replaces the file.

  $ run_one_gpu.sh --epochs 1 --device cpu --batch_size 2 &> out; ls tb_logs/my_model
  version_0
  version_1
  $ torch_file image_classification_model.pt | jq .global_step
  3

What it cannot use is said in one line.

  $ one_gpu --device cpu --batch-size 6
  one_gpu: error: loader: expected a batch size of at most 5, the number of images of this rank, got 6 (folder train: 5 images of varying size, 2 classes, 1 ranks)
  [1]
  $ rm -r tb_logs; touch tb_logs; one_gpu --device cpu --epochs 1 2>&1 | grep error
  one_gpu: error: log: expected to create the folder tb_logs/my_model, got 'Not a directory'
  [1]
