# Names of classes travel with weights, and are matched by name.

needs: spng

Two classes, red cats and blue dogs: four images of each in either part.

  $ images() { "$WEFT"/tests/train_image/colours.py "$@"; }
  $ train() { train_image --model resnet8 --image-size 8 --augment none --batch-size 4 --workers 0 --device cpu --lr 0.02 "$@" 2> log; local code=$?; cat log; return $code; }
  $ evaluate() { train --data folder:$1 --eval-only --weights "$2" | grep '^classes\|^val\|error'; }
  $ images A cat=230,20,20 dog=20,20,230
  $ train --data folder:A --epochs 8 --out run --export a.safetensors | grep -c 'epoch 8/8'
  1

They are in the run folder, in the checkpoints and in the export.

  $ cat run/classes.txt
  0	cat
  1	dog
  $ for file in a.safetensors run/checkpoint_last.safetensors run/checkpoint_best.safetensors; do state $file | grep class_names; done
  class_names ["cat","dog"]
  class_names ["cat","dog"]
  class_names ["cat","dog"]

Other names are an error of an evaluation.

  $ images B Dog=20,20,230 cat=230,20,20
  $ evaluate A a.safetensors
  val     folder val: 8 images of varying size, 2 classes
  val loss … accuracy 100.00% (8 of 8), …
  $ evaluate B a.safetensors
  train_image: error: classes: expected those of a.safetensors, got others (only in the data: 'Dog', only in the file: 'dog'; 'Dog' and 'dog' differ in case alone). Name the folders as the weights know the classes
  [1]
  $ evaluate A run/checkpoint_last.safetensors
  val     folder val: 8 images of varying size, 2 classes
  val loss … accuracy 100.00% (8 of 8), …
  $ evaluate B run/checkpoint_last.safetensors
  train_image: error: classes: expected those of run/checkpoint_last.safetensors, got others (only in the data: 'Dog', only in the file: 'dog'; 'Dog' and 'dog' differ in case alone). Name the folders as the weights know the classes
  [1]

Another order is matched by name. To these weights a red image is a dog:

  $ renamed() { "$WEFT"/tests/train_image/renamed.py a.safetensors "$@"; }
  $ renamed b.safetensors '["dog","cat"]'
  $ evaluate A b.safetensors
  val     folder val: 8 images of varying size, 2 classes
  classes matched by name with those of b.safetensors, which are in another order
  val loss … accuracy 0.00% (0 of 8), …
  $ images C cat=20,20,230 dog=230,20,20; evaluate C b.safetensors
  val     folder val: 8 images of varying size, 2 classes
  classes matched by name with those of b.safetensors, which are in another order
  val loss … accuracy 100.00% (8 of 8), …

A training goes on in that order.

  $ train --data folder:C --epochs 1 --weights b.safetensors --out next | grep ^classes; cat next/classes.txt
  classes matched by name with those of b.safetensors, which are in another order
  0	dog
  1	cat

Some of the weights' classes may be evaluated.

  $ images D dog=20,20,230; evaluate D a.safetensors
  val     folder val: 4 images of varying size, 1 classes
  classes matched by name: the data has 1 of the 2 classes of a.safetensors
  val loss … accuracy 100.00% (4 of 4), …

Without names their numbers count.

  $ renamed bare.safetensors; evaluate A bare.safetensors
  val     folder val: 8 images of varying size, 2 classes
  classes matched by number: bare.safetensors has no names of classes
  val loss … accuracy 100.00% (8 of 8), …
  $ renamed numbered.safetensors '["0","1"]'; evaluate A numbered.safetensors
  val     folder val: 8 images of varying size, 2 classes
  classes matched by number: numbered.safetensors has no names of classes
  val loss … accuracy 100.00% (8 of 8), …
  $ images N 0=230,20,20 1=20,20,230; evaluate N a.safetensors
  val     folder val: 8 images of varying size, 2 classes
  classes matched by number: the data has no names of classes
  val loss … accuracy 100.00% (8 of 8), …

Fine-tuning on others is asked for.

  $ images F eel=20,20,230 fox=230,20,20; train --data folder:F --epochs 1 --weights a.safetensors --out other | grep '^classes\|error'
  train_image: error: classes: expected those of a.safetensors, got others (only in the data: 'eel', 'fox', only in the file: 'cat', 'dog'). --weights-strict no trains on from its weights with other classes
  [1]
  $ train --data folder:F --epochs 1 --weights a.safetensors --weights-strict no --out other | grep '^classes'
  classes other ones than those of a.safetensors (only in the data: 'eel', 'fox', only in the file: 'cat', 'dog'): the classifier learns them

A resumed run has the same, in the same order.

  $ train --data folder:B --epochs 9 --resume auto --out run | tail -n 1
  train_image: error: checkpoint run/checkpoint_last.safetensors: expected its classes, in their order, got others (only in the data: 'Dog', only in the file: 'dog'; 'Dog' and 'dog' differ in case alone). Name the folders as the checkpoint knows the classes, or begin a new run
  [1]
  $ train --data folder:A --epochs 9 --resume next/checkpoint_last.safetensors --out later | tail -n 1
  train_image: error: checkpoint next/checkpoint_last.safetensors: expected its classes, in their order, got another order in the data. Name the folders as the checkpoint knows the classes, or begin a new run
  [1]
  $ train --data folder:A --epochs 9 --resume auto --out run > out && grep -c ^classes out
  0
  [1]

The best epoch is not chosen by `test`.

  $ mv A/val A/valid; mkdir -p A/test; for class in cat dog; do mkdir A/test/$class; cp A/train/$class/0.png A/test/$class; done
  $ train --data folder:A --dry-run --out later | grep '^val'
  val     folder val: 8 images of varying size, 2 classes
  $ rm -r A/valid; train --data folder:A --dry-run --out later
  train_image: error: folder: A: expected a part val (or valid, validation, dev), got train, test. test is for the end, not to choose the best epoch by. Move some images of each class from train to val, or rename test
  [1]
  $ evaluate A a.safetensors
  val     folder test: 2 images of varying size, 2 classes
  val loss … accuracy 100.00% (2 of 2), …

`~` is the home folder, in flags and in a file of them.

  $ export HOME=$PWD; printf 'data = "folder:~/A"\nweights = "~/a.safetensors"\n' > a.toml
  $ train --eval-only --data=folder:~/A --weights='~/a.safetensors' | grep -o 'accuracy .*%'
  accuracy 100.00%
  $ train --eval-only --config='~/a.toml' | grep -o 'accuracy .*%'
  accuracy 100.00%

One class is trained with a warning.

  $ images one cat=230,20,20; train --data folder:one --dry-run | grep warning
  warning: the data has one class alone, so each guess is right
