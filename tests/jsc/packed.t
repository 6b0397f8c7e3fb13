# pack writes a folder of images to one file, which is verified, and load_bench measures how it loads.

needs: jpeg

  $ . "$WEFT"/tests/jsc/insects.sh; insects insects; pack --dset_type packed --data_root insects/ 2> said
  folder train: 5 images of varying size, 2 classes
  folder val: 3 images of varying size, 2 classes
  folder test: 2 images of varying size, 2 classes
  wrote insects.packed, … bytes
  elapsed: 00 hours [0-9][0-9] min [0-9][0-9] sec (re)
  $ grep -oE '(pack|verify) [a-z]+' said
  pack train
  pack val
  pack test
  verify train
  verify val
  verify test
  $ ls
  insects
  insects.packed
  said

Training sees the same bits as from the folder.

  $ train() { train_image --data "$1" --epochs 1 --batch-size 2 --model resnet8 --image-size 16 --device cpu --lr 0.01 --workers 1 --export "$2".safetensors --out "$2"; }
  $ train folder:insects a > out 2>&1; train packed:insects.packed b 2> said | grep -c '[53] images of varying size, 2 classes'
  2
  $ same a.safetensors b.safetensors
  $ load_bench --dset_type packed --data_root insects.packed --batch_size 2 --workers 1 2> said
  Start loading with packed file
  load +[0-9]+ images/s  \([0-9.]+ s\) (re)
  elapsed: …

The folder that holds the file will do, and so will dashes.

  $ load_bench --dset-type packed -d . --read-only --raw --epochs 3 2> said
  Start loading with packed file
  read +[0-9]+ images/s +[0-9.]+ MB/s .* (re)
  plain pread …
  [0-9.]+ of the disk's cache (re)
  elapsed: …

Hidden files are left out, and it is said what else is.

  $ place baseline.jpg insects/train/ants/.ipynb_checkpoints/a.jpg; place baseline.jpg insects/train/__MACOSX/a.jpg; place baseline.jpg insects/val/bees/._g.jpg
  $ place baseline.jpg insects/train/stray.jpg; echo '?' > insects/val/bees/notes.txt; mv insects/val insects/Valid; mkdir more; mv insects more; cd more
  $ pack --dset_type packed --data_root insects --dry_run 2> said > dry; sed -n 1,3p dry
  folder train: 5 images of varying size, 2 classes; left out: 1 images beside the classes' folders, such as …
  folder val: 3 images of varying size, 2 classes; left out: 1 .txt
  folder test: 2 images of varying size, 2 classes
  $ pack --dset_type packed --data_root insects 2> said > out; diff <(sed -n 1,3p out) <(sed -n 1,3p dry)
  $ place baseline.jpg ._insects.packed; load_bench --dset_type packed --part val --read_only --data_root . 2>&1 | grep val:
  packed ./insects.packed val: 3 images …
