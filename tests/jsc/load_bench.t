# load_bench measures folders of images.

needs: jpeg

  $ . "$WEFT"/tests/jsc/insects.sh; insects insects
  $ load_bench --dset_type fs --data_root insects --batch_size 2048 --workers 2 --epochs 2 --shuffle 2> said
  Start loading ILSVRC images
  load …
  elapsed: …
  $ load_bench --data_root insects --part val --decode-only --raw --workers 0 2> said
  Start loading ILSVRC images
  read and decode +[0-9]+ images/s  \([0-9.]+ s\) (re)
  decode …
  libjpeg-turbo …
  [0-9.]+ of libjpeg-turbo alone (re)
  elapsed: …
  $ load_bench --data_root insects --read_only --raw 2> said
  Start loading ILSVRC images
  read …
  plain pread +[0-9]+ images/s .* (re)
  … of the disk's cache
  elapsed: …

It reads ImageNet as it is unpacked. Labels of val are in a file of their own, whose faults are named.

  $ images=ILSVRC/Data/CLS-LOC; place baseline.jpg $images/train/n01440764/n01440764_1.JPEG; place grey.jpg $images/train/n01443537/n01443537_7.JPEG
  $ place exif2.jpg $images/val/ILSVRC2012_val_00000001.JPEG; val() { echo "$1" > ILSVRC2012_val_labels.json; load_bench --dset_type fs --part val --data_root .; }
  $ load_bench --data_root . &> out || cat out; load_bench --dset_type fs --part val --data_root .
  load_bench: error: imagenet: expected the labels of val in ./ILSVRC2012_val_labels.json, got no such file
  [1]
  $ fails val '[]'
  load_bench: error: imagenet: expected {"FILE": "SYNSET", …} in ./ILSVRC2012_val_labels.json, got something else [1]
  $ fails val '{"other.JPEG": "n01443537"}'
  load_bench: error: imagenet: expected the synset of ILSVRC2012_val_00000001.JPEG in ./ILSVRC2012_val_labels.json, got none [1]
  $ fails val '{"ILSVRC2012_val_00000001.JPEG": "n9"}'
  load_bench: error: imagenet: expected only synsets of train in ./ILSVRC2012_val_labels.json, got n9 [1]
  $ val '{"ILSVRC2012_val_00000001.JPEG": "n01443537"}' 2>&1 | grep 2.classes
  imagenet val: 1 images of varying size, 2 classes…
  $ pack --dset_type packed --data_root . --out i.packed 2> said | grep train:
  imagenet train: 2 images …
