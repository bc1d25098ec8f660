#!/bin/sh
# The command from outside: exact output, exit codes, files.
# usage: test_cli.sh POLYPHASE SOURCE_FOLDER [SHARED_FOLDER]
set -u
polyphase=$1
source=$2
model=$source/examples/upscale/upscale.onnx
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# expect CODE WHAT COMMAND...: exit code; stdout and stderr are kept.
expect() {
  code=$1
  what=$2
  shift 2
  "$@" >"$work/out" 2>"$work/err"
  found=$?
  [ "$found" -eq "$code" ] || {
    fail "$what: exit $found, should be $code"
    cat "$work/err"
  }
}

# said FILE TEXT: the text is in out or err.
said() {
  grep -qF -- "$2" "$work/$1" || {
    fail "\"$2\" is not in $1:"
    cat "$work/$1"
  }
}

# npy SHAPE BYTES: an f32 array, in the octal of printf.
npy() {
  printf '\223NUMPY\001\000\166\000%-117s\n' \
    "{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"
  printf "$2"
}

# y = x + h, also as hn; z is y in 16 bits.
for bytes in \
  '\010\010\072\251\001\012\016\012\001x\012\001h\022\001y\042\003A' \
  'dd\012\027\012\001y\022\001z\042\004Cast\052\011\012\002to\030' \
  '\012\240\001\002\012\021\012\001y\022\002hn\042\010Identity\022' \
  '\001gZ\023\012\001x\022\016\012\014\010\001\022\010\012\002\010' \
  '\001\012\002\010\002Z\023\012\001h\022\016\012\014\010\001\022' \
  '\010\012\002\010\001\012\002\010\002b\023\012\001y\022\016\012' \
  '\014\010\001\022\010\012\002\010\001\012\002\010\002b\024\012' \
  '\002hn\022\016\012\014\010\001\022\010\012\002\010\001\012\002' \
  '\010\002b\023\012\001z\022\016\012\014\010\012\022\010\012\002' \
  '\010\001\012\002\010\002B\002\020\015'; do
  printf "$bytes"
done >"$work/sum.onnx"
# y is x, [1,1,2,3], resized to what the input `sizes` holds.
for bytes in \
  '\010\010\072\135\012\031\012\001x\012\000\012\000\012\005sizes\022\001' \
  'y\042\006Resize\022\001gZ\033\012\001x\022\026\012\024\010\001\022\020' \
  '\012\002\010\001\012\002\010\001\012\002\010\002\012\002\010\003Z\023' \
  '\012\005sizes\022\012\012\010\010\007\022\004\012\002\010\004b\013\012' \
  '\001y\022\006\012\004\010\001\022\000B\002\020\015'; do
  printf "$bytes"
done >"$work/resize.onnx"
# y = x + w, where w lies in w.bin.
for bytes in \
  '\010\010\072\133\012\016\012\001x\012\001w\022\001y\042\003Add\022\001' \
  'g\052\034\010\002\020\001B\001wj\021\012\010location\022\005w\056binp' \
  '\001Z\023\012\001x\022\016\012\014\010\001\022\010\012\002\010\001\012' \
  '\002\010\002b\023\012\001y\022\016\012\014\010\001\022\010\012\002\010' \
  '\001\012\002\010\002B\002\020\015'; do
  printf "$bytes"
done >"$work/beside.onnx"
# The steps [1,2], [3,4], [5,6]; a state [1,1].
ones='\000\000\200?\000\000\200?'
npy "3, 1, 2" '\000\000\200?\000\000\000@\000\000@@\000\000\200@'\
'\000\000\240@\000\000\300@' >"$work/x3.npy"
npy "1, 2" "$ones" >"$work/ones.npy"
expect 2 "no command" "$polyphase"
said err "usage: polyphase COMMAND"
expect 0 "help" "$polyphase" --help
said out "polyphase COMMAND --help tells more"
expect 0 "version" "$polyphase" --version
said out "polyphase 0."
expect 0 "version" "$polyphase" -v
said out "polyphase 0."
expect 2 "unknown command" "$polyphase" fly
said err 'unknown command "fly", must be one of run check info bench compile'
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than a line about a command"
for command in run check info bench; do
  expect 0 "$command --help" "$polyphase" $command --help
  said out "usage: polyphase $command"
  said out "--threads N"
  ! grep -E '.{81}' "$work/out" || fail "$command --help is over 80 columns"
  expect 0 "$command --version" "$polyphase" $command --version
  said out "polyphase 0."
  expect 2 "$command, unknown option" "$polyphase" $command --no-such x
  said err "unknown option --no-such"
done
expect 0 "help of -o in run" "$polyphase" run --help
said out ".png, .npy or .wav"
for command in compile optimize; do
  expect 0 "help of -o in $command" "$polyphase" $command --help
  said out "-o, --output FILE.pte"
  ! grep -q '\.wav' "$work/out" || fail "$command --help speaks of run"
  ! grep -E '.{81}' "$work/out" || fail "$command --help is over 80 columns"
done
expect 0 "help of --shape in compile" "$polyphase" compile --help
said out "where the file leaves it open"
expect 2 "an option twice" "$polyphase" run "$model" -o "$work/a.png" \
  --output "$work/b.png"
said err "--output is given twice, the second time as $work/b.png"
expect 2 "a number twice" "$polyphase" bench "$model" --seconds 1 --seconds 2
said err "--seconds is given twice"
expect 2 "the same shape twice" "$polyphase" info "$model" \
  --shape 0=1x3x5x7 --shape picture=1x3x5x7
said err 'the shape of input "picture" is given twice'
expect 0 "two shapes" "$polyphase" info "$work/sum.onnx" --shape x=1x2 \
  --shape h=1x2
expect 2 "no value" "$polyphase" run "$work/sum.onnx" -i x=
said err "x=: nothing follows the '='"
expect 2 "an empty argument" "$polyphase" run ""
said err "an argument is empty"
expect 0 "16 bits" "$polyphase" run "$work/sum.onnx" -i x="$work/ones.npy" \
  -i h="$work/ones.npy"
grep -Eq '^z +f16 +\[1,2\] +2 +2 +2$' "$work/out" || fail "no values of f16"
expect 2 "constants of ONNX" "$polyphase" info "$model" --constants x.ptd
said err "no ExecuTorch program, so it takes no constants of --constants"
expect 2 "run without a model" "$polyphase" run
said err "too few arguments"
expect 2 "bad number" "$polyphase" info "$model" --threads many
said err "--threads takes N: threads, 1 to 256, at most one per processor, found"
said err "found many; try polyphase info --help"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than a line about a number"
expect 3 "no such file" "$polyphase" info "$work/none.onnx"
said err "none.onnx: cannot be opened"
echo garbage >"$work/garbage.onnx"
expect 3 "garbage" "$polyphase" info "$work/garbage.onnx"
said err "polyphase: bad model or file: $work/garbage.onnx: "
expect 5 "memory limit" "$polyphase" run "$model" --max-memory 1 \
  "$source/examples/upscale/sample.png"
said err "the limit is reached (--max-memory)"

# full COMMAND...: nothing of what it prints can be written.
full() {
  expect 3 "$* to a full device" sh -c '"$@" >/dev/full' sh "$@"
  said err "standard output: cannot be written"
}
if [ -w /dev/full ]; then
  full "$polyphase" --help
  full "$polyphase" --version
  full "$polyphase" run --help
  full "$polyphase" info "$model"
  full "$polyphase" info "$model" --json
  full "$polyphase" run "$model" "$source/examples/upscale/sample.png"
  full "$polyphase" check "$model" --shape 0=1x3x5x7
  full "$polyphase" check "$model" --shape 0=1x3x9x9 --atol 0 --rtol 0
  full "$polyphase" bench "$model" --shape 0=1x3x5x7 --seconds 0.01
  expect 2 "bad usage stays bad usage" sh -c '"$@" >/dev/full' sh \
    "$polyphase" run
fi

seeds=$source/fuzz/corpus/fuzz_pte
expect 0 "info of a program" "$polyphase" info "$seeds/program.pte"
said out "operator aten::add.out, 1 call"
said out "runs: no, because"
said out "not imported: delegate OneBackend, delegate OtherBackend"
said out "delegate OtherBackend, 1 call, 23 bytes"
said out "state: 2, 32 bytes"
said out "warning: method again: value 1 needs the constant \"scale\""
expect 0 "info with constants" "$polyphase" info "$seeds/program.pte" \
  --constants "$seeds/constants.ptd"
grep -q warning "$work/out" && fail "a constant that is there is missed"
expect 0 "info of a bundle" "$polyphase" info "$seeds/bundle.bpte" --json
said out '"tests": [1]'
said out '"runs": '
expect 0 "info of constants" "$polyphase" info "$seeds/constants.ptd"
said out "named data scale, segment 0, 16 bytes"
expect 0 "compile --help" "$polyphase" compile --help
said out "usage: polyphase compile"
expect 2 "compile without -o" "$polyphase" compile "$model"
said err "says where to write"
expect 0 "compile" "$polyphase" compile "$model" -o "$work/whole.pte" \
  --shape 0=1x3x12x16
said out "$work/whole.pte: "
said out " nodes in 1 delegate, $(wc -c <"$work/whole.pte" | tr -d ' ') bytes"
expect 0 "compile with constants beside" "$polyphase" compile "$model" \
  -o "$work/split.pte" --external-constants "$work/split.ptd" \
  --shape 0=1x3x12x16
said out "split.ptd: constants, $(wc -c <"$work/split.ptd" | tr -d ' ') bytes"
expect 0 "a compiled model computes the same" "$polyphase" check "$model" \
  "$work/whole.pte" --shape 0=1x3x12x16
expect 0 "constants beside are the same" "$polyphase" check \
  "$work/whole.pte" "$work/split.pte" --constants "$work/split.ptd"
expect 0 "constants of one of two" "$polyphase" check "$model" \
  "$work/split.pte" --constants "$work/split.ptd" --shape 0=1x3x12x16
expect 2 "program and constants in one file" "$polyphase" compile "$model" \
  -o "$work/one" --external-constants "$work/./one" \
  --shape 0=1x3x12x16
said err "must be two files"
for lowering in auto always never; do
  expect 0 "compile, $lowering" "$polyphase" compile "$model" \
    -o "$work/plain.pte" --external-constants "$work/plain.ptd" \
    --shape 0=1x3x12x16 --polyphase $lowering
  expect 0 "optimize what was compiled, $lowering" "$polyphase" optimize \
    "$work/plain.pte" -o "$work/again.pte" --constants "$work/plain.ptd" \
    --constants-out "$work/again.ptd" --polyphase $lowering
  said out "nothing to change"
  cmp -s "$work/plain.pte" "$work/again.pte" || fail "another program"
  cmp -s "$work/plain.ptd" "$work/again.ptd" || fail "other constants"
done
expect 0 "a program with a deconvolution" "$polyphase" compile "$model" \
  -o "$work/plain.pte" --shape 0=1x3x12x16 --polyphase never
if [ -e /dev/stdout ]; then
  "$polyphase" compile "$model" -o /dev/stdout --shape 0=1x3x12x16 \
    2>"$work/err" | cat >"$work/piped.pte"
  cmp -s "$work/whole.pte" "$work/piped.pte" || fail "more than a program"
  said err "/dev/stdout: "
  "$polyphase" optimize "$work/plain.pte" -o /dev/stdout 2>"$work/err" |
    cat >"$work/piped.pte"
  said err "1 change"
  "$polyphase" optimize "$work/plain.pte" -o "$work/file.pte" >"$work/out"
  said out "1 change"
  cmp -s "$work/file.pte" "$work/piped.pte" || fail "more than a program"
fi
cp "$model" "$work/own.onnx"
expect 2 "compile over the source" "$polyphase" compile "$work/own.onnx" \
  -o "$work/./own.onnx" --shape 0=1x3x12x16
said err "would be written over $work/own.onnx, which is read"
expect 2 "constants over the source" "$polyphase" compile "$work/own.onnx" \
  -o "$work/x.pte" --external-constants "$work/own.onnx" --shape 0=1x3x12x16
cmp -s "$model" "$work/own.onnx" || fail "the source was replaced"
cp "$source/examples/upscale/sample.png" "$work/own.png"
expect 2 "run over its picture" "$polyphase" run "$model" "$work/own.png" \
  -o "$work/./own.png"
said err "would be written over $work/own.png, which is read"
cp "$work/ones.npy" "$work/y.npy"
expect 2 "run over an input" "$polyphase" run "$work/sum.onnx" \
  -i x="$work/y.npy" -i h="$work/ones.npy" -o "$work/y.npy"
expect 2 "a folder of outputs over an input" "$polyphase" run \
  "$work/sum.onnx" -i x="$work/y.npy" -i h="$work/ones.npy" \
  --output-dir "$work"
said err "would be written over $work/y.npy, which is read"
cmp -s "$work/ones.npy" "$work/y.npy" || fail "an input was replaced"
[ ! -e "$work/hn.npy" ] || fail "a refused folder got files"
printf '\000\000\200?\000\000\000@' >"$work/w.bin"
expect 0 "constants beside the model" "$polyphase" run "$work/beside.onnx" \
  -i x="$work/ones.npy" --json
said out '"min": 2, "max": 3'
ln -s w.bin "$work/w.npy"
expect 2 "run over a model's constants" "$polyphase" run "$work/beside.onnx" \
  -i x="$work/ones.npy" -o "$work/w.npy"
said err "would be written over $work/w.bin, which is read"
expect 2 "compile over a model's constants" "$polyphase" compile \
  "$work/beside.onnx" -o "$work/w.bin"
[ "$(wc -c <"$work/w.bin")" -eq 8 ] || fail "constants were replaced"
expect 2 "compile to a bundle's name" "$polyphase" compile "$model" \
  -o "$work/x.bpte" --shape 0=1x3x12x16
said err "without test cases: call it .pte"
expect 2 "compile of no such method" "$polyphase" compile "$work/whole.pte" \
  -o "$work/x.pte" --method backward
said err 'has no method "backward"; its methods: forward'
expect 0 "compile of a method" "$polyphase" compile "$work/whole.pte" \
  -o "$work/x.pte" --method forward
cp "$work/split.ptd" "$work/kept.ptd"
expect 3 "compile to no folder" "$polyphase" compile "$model" \
  -o "$work/none/x.pte" --external-constants "$work/split.ptd" \
  --shape 0=1x3x20x16
cmp -s "$work/split.ptd" "$work/kept.ptd" || fail "constants were replaced"
expect 2 "compile for no shape" "$polyphase" compile "$model" -o "$work/no.pte"
said err "picture: its shape is [1,3,height,width] in the file, a program is"
said err "give it, as --shape 'picture=1x3x64x64'"
expect 2 "compile for another shape" "$polyphase" compile "$model" \
  -o "$work/no.pte" --shape picture=2x3x12x16
said err "picture: the input has shape [2,3,12,16], must be [1,3,"
expect 0 "compile with open lengths" "$polyphase" compile "$model" \
  -o "$work/open.pte" --shape picture=1x3x8..24x8..24
for size in 24x24 8x8 9x23; do
  expect 0 "the same at $size" "$polyphase" check "$model" "$work/open.pte" \
    --shape 0=1x3x$size
done
expect 2 "compile with an empty range" "$polyphase" compile "$model" \
  -o "$work/no.pte" --shape 0=1x3x24..8x8
said err "has the lengths 24..8:1"
expect 2 "compile with no range" "$polyphase" compile "$model" \
  -o "$work/no.pte" --shape 0=1x3x24..x8
said err "LEAST..MOST[:STEP]"
expect 0 "info of a compiled program" "$polyphase" info "$work/whole.pte"
said out "runs: yes"
expect 0 "info of a method" "$polyphase" info "$seeds/program.pte" \
  --method again
! grep -q "method forward" "$work/out" || fail "more than one method"
expect 2 "info of no method" "$polyphase" info "$seeds/program.pte" \
  --method none --json
said err 'has no method "none"; its methods: forward, again'
expect 0 "the plan of a program" "$polyphase" info "$work/whole.pte" \
  --dump all --shape 0=1x3x12x16
said out "steps "
said err "# after drop_dead_nodes"
expect 2 "another shape of a program" "$polyphase" info "$work/whole.pte" \
  --shape 0=1x4x12x16
expect 0 "info without constants" "$polyphase" info "$work/split.pte"
said out "is neither in the program nor in a .ptd of --constants"
expect 3 "run without constants" "$polyphase" check "$work/split.pte"
said err "$work/split.pte: "
said err ".ptd of --constants"
expect 0 "optimize --help" "$polyphase" optimize --help
said out "usage: polyphase optimize"
said out "--constants-out FILE.ptd"
expect 2 "optimize without -o" "$polyphase" optimize "$work/whole.pte"
said err "-o FILE.pte says where to write"
expect 3 "optimize of garbage" "$polyphase" optimize "$work/garbage.onnx" \
  -o "$work/none.pte"
said err "polyphase: bad model or file: $work/garbage.onnx: "
said err '"polyphase compile" makes a fast one of an ONNX model'
expect 2 "a bundle under a program's name" "$polyphase" optimize \
  "$seeds/bundle.bpte" -o "$work/none.pte"
said err "call it .bpte"
expect 2 "a program under a bundle's name" "$polyphase" optimize \
  "$work/whole.pte" -o "$work/none.bpte"
expect 2 "a program over constants" "$polyphase" optimize "$work/split.pte" \
  --constants "$work/split.ptd" -o "$work/split.ptd"
said err "would be written over $work/split.ptd, which is read"
expect 2 "constants over a program" "$polyphase" optimize "$work/split.pte" \
  --constants "$work/split.ptd" -o "$work/none.pte" \
  --constants-out "$work/split.pte"
cp "$work/split.pte" "$work/place.pte"
expect 2 "in its own place" "$polyphase" optimize "$work/place.pte" \
  --constants "$work/split.ptd" -o "$work/place.pte"
said err "would be written over $work/place.pte, which is read"
expect 2 "constants in their own place" "$polyphase" optimize \
  "$work/place.pte" --constants "$work/split.ptd" -o "$work/none.pte" \
  --constants-out "$work/split.ptd"
printf '\020\000\000\000ED00\010\000\000\000' >"$work/profile.etdp"
for command in info optimize; do
  expect 3 "$command of a profile" "$polyphase" $command "$work/profile.etdp" \
    $([ $command = info ] || echo -o "$work/none.pte")
  said err "is a profile of a run by ExecuTorch (.etdp), must be a program or a model"
done
expect 2 "a place for no constants" "$polyphase" optimize "$work/whole.pte" \
  -o "$work/none.pte" --constants-out "$work/none.ptd"
said err "1 of --constants-out for 0 of --constants, must be at most as many"
expect 4 "optimize of constants alone" "$polyphase" optimize \
  "$seeds/constants.ptd" -o "$work/none.pte"
said err "there is no program to rewrite"
[ -e "$work/none.pte" ] && fail "a refused program was written"
expect 0 "optimize of others' delegates" "$polyphase" optimize \
  "$seeds/program.pte" --constants "$seeds/constants.ptd" -o "$work/same.pte" \
  --constants-out "$work/same.ptd"
said out "nothing to change"
cmp -s "$seeds/program.pte" "$work/same.pte" || fail "another program"
cmp -s "$seeds/constants.ptd" "$work/same.ptd" || fail "other constants"
expect 0 "info of its upsampling" "$polyphase" info "$work/plain.pte"
said out "  input0 float [1,3,12,16]"
grep -q "ConvTranspose *polyphase, dense, 4 phases  " "$work/out" ||
  fail "nothing about the deconvolution"
said out "named data: 12 called by a hash, "
! grep -q "[0-9a-f]\{64\}" "$work/out" || fail "a hash"
expect 0 "the same in JSON" "$polyphase" info "$work/plain.pte" --json
said out '"kind": "ConvTranspose", "lowered": "polyphase, dense, 4 phases"'
said out '"inputs": [{"name": "input0", "type": "float", "shape": [1, 3, 12, 16]'
grep -q '"key": "[0-9a-f]\{64\}"' "$work/out" || fail "no hash in JSON"
expect 0 "optimize" "$polyphase" optimize "$work/plain.pte" \
  -o "$work/faster.pte" --polyphase always
said out "4 phases in"
said out "1 change"
expect 0 "a rewritten program computes the same" "$polyphase" check \
  "$work/plain.pte" "$work/faster.pte"
expect 3 "optimize to no folder" "$polyphase" optimize "$work/plain.pte" \
  -o "$work/none/x.pte" --polyphase always
[ ! -s "$work/out" ] || fail "changes are told that were not written"
expect 0 "optimize again" "$polyphase" optimize "$work/faster.pte" \
  -o "$work/again.pte"
said out "nothing to change"
cmp -s "$work/faster.pte" "$work/again.pte" || fail "another program"
expect 0 "a .ptd to rewrite" "$polyphase" compile "$model" --polyphase never \
  -o "$work/p.pte" --external-constants "$work/p.ptd" --shape 0=1x3x12x16
expect 2 "constants without a place" "$polyphase" optimize "$work/p.pte" \
  --constants "$work/p.ptd" -o "$work/q.pte" --polyphase always
said err "--constants-out FILE.ptd says"
[ -e "$work/q.pte" ] && fail "a refused program was written"
expect 0 "constants with a place" "$polyphase" optimize "$work/p.pte" \
  --constants "$work/p.ptd" -o "$work/q.pte" --polyphase always \
  --constants-out "$work/q.ptd"
expect 0 "rewritten constants compute the same" "$polyphase" check \
  "$work/plain.pte" "$work/q.pte" --constants "$work/q.ptd"
expect 4 "run of a delegate" "$polyphase" run "$seeds/program.pte"
said err "delegate OneBackend"
expect 0 "info" "$polyphase" info "$model"
said out "inputs  picture  f32 [1,3,height,width]"
said out "up"
said out "ConvTranspose"
expect 0 "info --json" "$polyphase" info "$model" --json
said out '"transposes":'
said out '"nodes": [{'
expect 2 "wrong shape name" "$polyphase" info "$model" --shape nothing=1x3
said err 'it has "picture"'
expect 2 "wrong shape" "$polyphase" info "$model" --shape picture=1x4x8x8
said err "picture: the input has shape [1,4,8,8]"

expect 2 "dump after no pass" "$polyphase" info "$model" --dump nothing
said err '--dump is "nothing", must be all or one of drop_dead_nodes'
expect 0 "dump" "$polyphase" info "$model" --dump fuse_activation
said err '# after fuse_activation'
said err 'activation=clamp'

expect 0 "run a picture" "$polyphase" run "$model" \
  "$source/examples/upscale/sample.png" -o "$work/doubled.png"
[ -s "$work/doubled.png" ] || fail "no picture was written"
expect 0 "run again, two threads" "$polyphase" run "$model" --threads 2 \
  "$source/examples/upscale/sample.png" -o "$work/again.png"
cmp -s "$work/doubled.png" "$work/again.png" || fail "threads change pixels"
expect 0 "output folder" "$polyphase" run "$model" \
  "$source/examples/upscale/sample.png" --output-dir "$work/outputs"
expect 0 "folders above" "$polyphase" run "$model" \
  "$source/examples/upscale/sample.png" --output-dir "$work/a/b/c"
cmp -s "$work/outputs/doubled.npy" "$work/a/b/c/doubled.npy" ||
  fail "another output"
expect 3 "a file for a folder" "$polyphase" run "$model" \
  "$source/examples/upscale/sample.png" --output-dir "$work/doubled.png"
said err "cannot be made: Not a directory"
expect 0 "output folder" "$polyphase" run "$model" \
  "$source/examples/upscale/sample.png" --output-dir "$work/outputs"
[ -s "$work/outputs/doubled.npy" ] || fail "no doubled.npy"
said err "-> $work/outputs/doubled.npy"
expect 0 "json" "$polyphase" run "$model" --json \
  "$source/examples/upscale/sample.png"
said out '"name": "doubled"'
expect 2 "no input" "$polyphase" run "$model"
said err 'input "picture" is missing'
cp "$source/examples/upscale/sample.png" "$work/x.npy"
expect 2 "scale 0" "$polyphase" run "$model" \
  "$source/examples/upscale/sample.png" -o "$work/x.png" --scale 0
said err "--scale takes S: a number other than 0, found 0; try"
expect 2 "two means" "$polyphase" run "$model" --mean 1,2
said err "a number, or three or four, one per channel, found 1,2"
expect 2 "no mean" "$polyphase" run "$model" --mean nan
expect 2 "a mean without a picture" "$polyphase" run "$work/sum.onnx" \
  -i x="$work/ones.npy" -i h="$work/ones.npy" --mean 1
said err "run: --mean is for pictures, of which none is given or written"
expect 2 "a rate without a sound" "$polyphase" run "$work/sum.onnx" \
  -i x="$work/ones.npy" -i h="$work/ones.npy" --rate 16000
said err "run: --rate is for -o FILE.wav, which is not given"
expect 3 "a folder for a picture" "$polyphase" run "$model" "$work"
said err "$work: is a folder, must be a PNG or JPEG picture"
expect 2 "picture and model" "$polyphase" run \
  "$source/examples/upscale/sample.png" "$model"
said err "sample.png: is a picture, must be a model: MODEL comes before PICTURE"
expect 2 "no picture comes out" "$polyphase" run "$work/sum.onnx" \
  -i x="$work/ones.npy" -i h="$work/ones.npy" -o "$work/x.png"
said err "output 0: is no picture: it is f32 [1,2], must be f32 or u8 of one"
expect 3 "a picture is no .npy" "$polyphase" run "$model" -i "0=$work/x.npy"
expect 2 "sound of a picture" "$polyphase" run "$model" \
  "$source/examples/upscale/sample.png" -o "$work/x.wav"
said err "output 0 is no sound: it is f32 [1,3,288,384], must be f32 and one"
# rate FILE: a .wav's samples a second.
rate() {
  od -An -tu4 -j24 -N4 "$1" | tr -d ' '
}
expect 0 "sound" "$polyphase" run "$work/sum.onnx" -i x="$work/ones.npy" \
  -i h="$work/ones.npy" -o "$work/x.wav"
[ "$(rate "$work/x.wav")" = 22050 ] || fail "another rate"
expect 0 "a rate" "$polyphase" run "$work/sum.onnx" -i x="$work/ones.npy" \
  -i h="$work/ones.npy" -o "$work/16.wav" --rate 16000
[ "$(rate "$work/16.wav")" = 16000 ] || fail "another rate than --rate"
said err "16000 samples a second"
expect 0 "an input's rate" "$polyphase" run "$work/sum.onnx" --json \
  -i x="$work/16.wav" -i h="$work/ones.npy" -o "$work/again.wav"
[ "$(rate "$work/again.wav")" = 16000 ] || fail "another rate than the input's"
said out '"shape": [1, 2], "min": 3, "max": 3'
expect 0 "a rate in steps" "$polyphase" run "$work/sum.onnx" --steps \
  -i x="$work/16.wav" -i x="$work/16.wav" --feed hn=h -o "$work/steps.wav"
[ "$(rate "$work/steps.wav")" = 16000 ] || fail "another rate than the steps'"
expect 2 "no rate" "$polyphase" run "$work/sum.onnx" --rate 0
said err "--rate takes HZ"
expect 2 "sound for a picture" "$polyphase" run "$model" \
  -i "picture=$work/16.wav"
said err "picture: the input has shape [1,1,1,2], must be [1,3,?,?]"
expect 2 "wrong ending" "$polyphase" run "$model" \
  "$source/examples/upscale/sample.png" -o "$work/x.gif"
said err ".png, .npy or .wav"
expect 3 "no such picture" "$polyphase" run "$model" "$work/none.png"
expect 3 "unwritable" "$polyphase" run "$model" \
  "$source/examples/upscale/sample.png" -o "$work/no/such/folder.png"
[ -e "$work/x.gif" ] && fail "a refused file was written"

expect 0 "steps" "$polyphase" run "$model" --steps \
  -i "picture=$work/outputs/doubled.npy" \
  -i "picture=$work/outputs/doubled.npy" --output-dir "$work/steps"
expect 0 "a picture twice as large" "$polyphase" run "$model" \
  -i "picture=$work/outputs/doubled.npy" --output-dir "$work/steps1"
expect 0 "stacked steps" "$polyphase" run "$model" --steps --json \
  -i "picture=$work/steps/doubled.npy"
said out '"shape": [2, 1, 3,'
expect 2 "steps of a picture" "$polyphase" run "$model" --steps \
  "$source/examples/upscale/sample.png"
said err "a picture has no steps"
expect 2 "steps of nothing" "$polyphase" run "$model" --steps
said err 'input "picture" has no steps'
expect 2 "a method of ONNX" "$polyphase" run "$model" --method forward
said err "no ExecuTorch program"

expect 0 "an output handed on" "$polyphase" run "$work/sum.onnx" --steps \
  --feed hn=h -i x="$work/x3.npy"
said out "y       f32   [3,1,2]    1   12  5.66667"
npy "3, 1, 2" '\000\000\200?\000\000\000@\000\000\200@\000\000\300@'\
'\000\000\020A\000\000@A' >"$work/sums.npy"
expect 0 "sums of the steps" "$polyphase" check "$work/sum.onnx" --steps \
  --feed 1=1 -i x="$work/x3.npy" --expect y="$work/sums.npy" \
  --expect hn="$work/sums.npy" --atol 0 --rtol 0
said out "the outputs agree"
expect 0 "a first state" "$polyphase" run "$work/sum.onnx" --steps --json \
  --feed hn=h -i x="$work/x3.npy" -i h="$work/ones.npy"
said out '"min": 2, "max": 13'
[ ! -s "$work/err" ] || fail "a message about a state that is fed"
expect 0 "a state not handed on" "$polyphase" run "$work/sum.onnx" --steps \
  -i x="$work/x3.npy" -i h="$work/ones.npy"
said err "h: is the same at every step; --feed OUTPUT=h would hand an output on"
expect 2 "a state without values" "$polyphase" run "$work/sum.onnx" --steps \
  -i x="$work/x3.npy"
said err "input \"h\" has no steps: give --input 'h=FILE.npy', or, if it is a "
said err "--feed 'OUTPUT=h' with the output that is its next value, perhaps "
said err '"y", "hn"'
expect 0 "one of three outputs" "$polyphase" run "$work/sum.onnx" \
  -i x="$work/ones.npy" -i h="$work/ones.npy" -o "$work/one.npy"
said err "2 more outputs are not written: --output-dir DIR does"
expect 0 "usage of run" "$polyphase" run --help
said out "[--output-dir DIR] [--steps [--feed OUTPUT=INPUT]...]"
said out "A-Z a-z 0-9 _ become _ there"
expect 0 "steps of check" "$polyphase" check "$work/sum.onnx" --steps \
  -i x="$work/x3.npy" --feed hn=h --json
said out '"same_shape": true, "type": "f32", "shape": [3, 1, 2]'
expect 0 "steps of random values" "$polyphase" check "$work/sum.onnx" --steps
expect 1 "another state" "$polyphase" check "$work/sum.onnx" --steps \
  -i x="$work/x3.npy" -i h="$work/ones.npy" --expect y="$work/sums.npy"
expect 1 "another shape" "$polyphase" check "$work/sum.onnx" \
  -i x="$work/ones.npy" -i h="$work/ones.npy" --expect y="$work/sums.npy"
said out "f32 [1,2], must be f32 [3,1,2]"
expect 2 "another type" "$polyphase" run "$work/sum.onnx" --steps \
  --feed z=h -i x="$work/x3.npy"
said err 'h: is f32 [1,2], output "z" that --feed hands to it f16 [1,2]'
expect 2 "no such output" "$polyphase" run "$work/sum.onnx" --steps \
  --feed hm=h -i x="$work/x3.npy"
said err 'hm=h: the model has no such output; it has "y", "hn", "z"'
expect 2 "no such input" "$polyphase" run "$work/sum.onnx" --steps \
  --feed hn=k -i x="$work/x3.npy"
said err 'hn=k: the model has no such input; it has "x", "h"'
expect 2 "fed twice" "$polyphase" run "$work/sum.onnx" --steps \
  --feed hn=h --feed y=h -i x="$work/x3.npy"
said err 'input "h" is fed twice'
expect 2 "fed and given" "$polyphase" run "$work/sum.onnx" --steps \
  --feed hn=h -i x="$work/x3.npy" -i h="$work/x3.npy"
said err 'input "h" has 3 steps, must have the first alone'
expect 2 "feed without steps" "$polyphase" run "$work/sum.onnx" \
  --feed hn=h -i x="$work/ones.npy"
said err "--feed goes with --steps"
expect 2 "the first state of an open shape" "$polyphase" run "$model" --steps \
  --feed 0=0
said err "picture: its shape is not known: give its value at the first step"

programs=${3:-$source/../shared}/pte/real
if [ -d "$programs" ]; then
  expect 0 "a bundle's own cases" "$polyphase" check "$programs/bundled.bpte"
  said out "forward, case 1, output0       480          0"
  expect 0 "stored outputs" "$polyphase" check "$programs/ct2d_k4s2p1.pte" \
    -i "0=$programs/ct2d_k4s2p1.in0.npy" \
    --expect "0=$programs/ct2d_k4s2p1.out0.npy"
  said out "the outputs agree"
  expect 0 "a program agrees with itself" "$polyphase" check \
    "$programs/q8_ct_pc.pte"
  for name in dyn_batch_dcgan portable_view; do
    expect 0 "$name within its bounds" "$polyphase" check "$programs/$name.pte"
  done
  expect 0 "bounds in a plan" "$polyphase" info "$programs/dyn_batch_dcgan.pte" \
    --polyphase always
  said out "inputs  input0  f32 [<=8,<=6,<=1,<=1]"
  said out "gives   output0 f32 [8,3,8,8]"
  expect 0 "a method" "$polyphase" run "$programs/multi_method.pte" \
    --method encode -i "0=$programs/multi_method.in0.npy"
  expect 2 "no method" "$polyphase" run "$programs/multi_method.pte"
  said err "one must be chosen of: both, decode, encode"
  expect 0 "compile of a method" "$polyphase" compile --method encode \
    "$programs/multi_method.pte" -o "$work/encode.pte"
  expect 0 "the method keeps its name" "$polyphase" info "$work/encode.pte"
  said out "method encode"
  expect 0 "convolutions outside delegates" "$polyphase" optimize \
    "$programs/portable_ct2d.pte" -o "$work/outside.pte"
  said out "forward: 1 call of aten::convolution outside XNNPACK's delegates: "
  stream=$programs/stream_conv
  expect 0 "a stream" "$polyphase" run "$stream.pte" --steps --json \
    -i "0=$stream.in0.npy" -i "0=$stream.s1.in0.npy" -i "0=$stream.s2.in0.npy"
  said out '"shape": [3, 1, 4, 6]'
fi

expect 0 "a model agrees with itself" "$polyphase" check "$model" "$model"
said out "the outputs agree"
expect 2 "which of two models" "$polyphase" check "$work/sum.onnx" \
  "$work/resize.onnx"
expect 2 "which of two models" "$polyphase" check "$model" "$work/whole.pte"
said err "$work/whole.pte: input0: the input has shape [1,3,64,64], must be"
expect 2 "a shape that a file has" "$polyphase" check "$model" \
  -i "0=$work/outputs/doubled.npy" --shape 0=1x3x5x7
said err "picture: has its shape from $work/outputs/doubled.npy: --shape is for"
expect 0 "a model agrees with the reference" "$polyphase" check "$model" \
  --polyphase always
said out "the outputs agree"
expect 0 "a stored output" "$polyphase" check "$model" \
  -i "picture=$work/steps/../outputs/doubled.npy" \
  --expect "doubled=$work/steps1/doubled.npy" --json
said out '"largest_difference": 0, "relative_to_peak": 0'
said out '"same": true'
expect 1 "another stored output" "$polyphase" check "$model" \
  -i "picture=$work/outputs/doubled.npy" \
  --expect "0=$work/outputs/doubled.npy"
said out "the outputs differ"
expect 0 "an output without elements" "$polyphase" check "$model" \
  --shape 0=1x3x0x4
said out "for picture [1,3,0,4]"
said out "doubled: has no elements: nothing was compared"
said out "the outputs agree, but this proves nothing"
expect 0 "a tolerance over all values" "$polyphase" check "$work/sum.onnx" \
  -i x="$work/ones.npy" -i h="$work/ones.npy" --atol 2.5
said out "y: zeros would agree too: no magnitude is over 2, the tolerance is 2.5;"
said out "the outputs agree, but this proves nothing"
expect 0 "the same in JSON" "$polyphase" check "$work/sum.onnx" \
  -i x="$work/ones.npy" -i h="$work/ones.npy" --atol 2.5 --json
said out '"same": true, "doubtful": 3'
expect 0 "a tolerance below all values" "$polyphase" check "$work/sum.onnx" \
  -i x="$work/ones.npy" -i h="$work/ones.npy" --atol 1.5 --json
said out '"doubt": null'
said out '"same": true, "doubtful": 0'
expect 0 "sizes of an input" "$polyphase" check "$work/resize.onnx" --json
said out '"shape": [1, 1, 4, 6]'
expect 0 "a plan for them" "$polyphase" info "$work/resize.onnx"
said out "gives   y f32 [1,1,4,6]"
expect 2 "a stored output of no input" "$polyphase" check "$model" \
  --shape 0=1x3x12x16 --expect "0=$work/outputs/doubled.npy"
said err "--expect takes every input by --input: the model has 1, 0 given"
[ ! -s "$work/out" ] || fail "a verdict about nothing"
expect 2 "a stored output twice" "$polyphase" check "$model" \
  -i "picture=$work/outputs/doubled.npy" --expect "0=$work/sums.npy" \
  --expect "doubled=$work/sums.npy"
said err 'output "doubled" is given twice'
expect 2 "an unknown output" "$polyphase" check "$model" \
  --expect "some=$work/outputs/doubled.npy"
said err 'the model has no such output; it has "doubled"'
expect 1 "no tolerance" "$polyphase" check "$model" --shape 0=1x3x9x9 \
  --atol 0 --rtol 0 --json
said out '"same": false'
expect 0 "a tolerance of the peak" "$polyphase" check "$model" \
  --shape 0=1x3x9x9 --atol 0 --rtol 0 --ptol 1e-5 --json
said out '"same": true'
expect 0 "input by position" "$polyphase" check "$model" "$model" --json \
  --shape 0=1x3x5x7
said out '"same": true'

expect 2 "bench wants one of two" "$polyphase" bench
said err "either a MODEL or --op"
expect 2 "compare needs XNNPACK" "$polyphase" bench "$model" --compare \
  --engine reference
expect 0 "compare" "$polyphase" bench "$model" --compare --seconds 0.01 \
  --shape picture=1x3x8x8
said out "for picture [1,3,8,8]"
said out "the whole net"
expect 0 "bench a model" "$polyphase" bench "$model" --seconds 0.01 --json \
  --shape picture=1x3x8x8
said out '"peak_bytes":'
expect 0 "bench an operator" "$polyphase" bench --seconds 0.01 --json \
  --op "f32 n1 g8 ci8 co8 i9x7 k4x4 s2x2 d1x1 p1,1,1,1 op0x0"
said out '"name": "xnnpack.polyphase", "verified": true'
said out '"name": "native.gather", "kernel": "pph_f32_'
expect 0 "bench on a lower level" "$polyphase" bench --seconds 0.01 --json \
  --cpu scalar --accuracy exact --engine native --threads 2 \
  --op "f32 n2 g1 ci3 co20 i5x4 k3x3 s2x2 d1x1 p1,0,0,1 op0x1"
said out '"name": "native.gather", "kernel": "pph_f32_gemm__scalar"'
said out '"chosen": "native.'
! grep -q '"verified": false\|xnnpack' "$work/out" || fail "more than ours"
expect 0 "bench an ordinary convolution" "$polyphase" bench --seconds 0.01 \
  --op "conv f32 n1 g1 ci4 co8 i9x7 k3x3 s1x1 d1x1 p1,1,1,1"
said out "xnnpack.convolution"
said out "native.gather"
said out "our own choice native."
expect 2 "a shape of an operator" "$polyphase" bench --shape 0=1x3x8x8 \
  --op "conv f32 n1 g1 ci4 co8 i9x7 k3x3 s1x1 d1x1 p1,1,1,1"
said err "bench: --shape is for models, --op has none"
expect 2 "bench --op by the reference" "$polyphase" bench --engine reference \
  --op "conv f32 n1 g1 ci4 co8 i9x7 k3x3 s1x1 d1x1 p1,1,1,1"
expect 0 "bench an operator with a depth" "$polyphase" bench --seconds 0.01 \
  --op "conv f32 n1 g1 ci2 co2 i3x4x5 k3x3x3 s1x1x1 d1x1x1 p1,1,1,1,1,1"
said out "native.gather"
! grep -q "NO: off" "$work/out" || fail "a wrong result"
expect 0 "bench a transposed one with a depth" "$polyphase" bench \
  --seconds 0.01 --threads 2 \
  --op "f32 n2 g1 ci6 co8 i3x5x6 k3x4x3 s2x1x2 d1x1x1 p1,0,1,1,2,0 op1x0x1"
said out "native.scatter"
! grep -q "NO: off" "$work/out" || fail "a wrong result"
expect 0 "a long row" "$polyphase" bench --seconds 0.001 --accuracy normal \
  --op "f32 n1 g32 ci32 co32 i160x160 k8x8 s4x4 d1x1 p2,2,2,2"
said out "xnnpack.deconvolution"
! grep -q ".\{81\}" "$work/out" || fail "more than 80 columns"
expect 2 "unknown processor level" "$polyphase" info "$model" --cpu sse
said err "--cpu takes best|scalar|avx2|avx512|neon"
expect 0 "run on a lower level" "$polyphase" run "$model" --cpu scalar \
  "$source/examples/upscale/sample.png" -o "$work/scalar.png"
# Choosing by measurement; every later run takes what is in the file.
sample=$source/examples/upscale/sample.png
expect 0 "tune" "$polyphase" run "$model" "$sample" --accuracy exact \
  --tune-file "$work/tune" --output-dir "$work/tuned"
said err "tune: 3 convolutions measured, 3 equal to them, 0 remembered"
expect 0 "exact without tune" "$polyphase" run "$model" "$sample" \
  --accuracy exact --output-dir "$work/exact"
cmp -s "$work/tuned/doubled.npy" "$work/exact/doubled.npy" ||
  fail "tune changed exact results"
expect 0 "bench --tune" "$polyphase" bench "$model" --shape 0=1x3x8x8 \
  --seconds 0.01 --tune --tune-file "$work/tune8"
said err "tune: 3 convolutions measured"
expect 0 "check --tune" "$polyphase" check "$model" --shape 0=1x3x8x8 \
  --tune-file "$work/tune8"
said err "tune: 0 convolutions measured, 0 equal to them, 6 remembered"
[ "$(grep -c "tune: " "$work/err")" -eq 1 ] || fail "the judge tunes too"
sed 's/ = .*/ = native.gather/' "$work/tune8" >"$work/forced"
expect 0 "what is remembered is taken" "$polyphase" bench "$model" \
  --shape 0=1x3x8x8 --seconds 0.01 --tune-file "$work/forced" --json
said err "tune: 0 convolutions measured, 0 equal to them, 6 remembered"
said out '"kind": "ConvTranspose", "output_shape": [1, 3, 16, 16], "algorithm": "native.gather"'
for engine in reference xnnpack; do
  expect 0 "tune with $engine" "$polyphase" bench "$model" --seconds 0.01 \
    --shape 0=1x3x8x8 --tune-file "$work/tune8" --engine $engine
  said err "tune: nothing to choose: this --engine has one way to run each node"
done
expect 0 "nowhere to remember" "$polyphase" run "$model" "$sample" \
  --tune-file "$work/none/tune"
said err "tune: the choices are not kept: $work/none/tune: cannot be written, "
echo "a poem" >"$work/poem"
expect 0 "somebody's file" "$polyphase" run "$model" "$sample" \
  --tune-file "$work/poem"
said err "$work/poem: holds something else than choices, and stays as it is"
[ "$(cat "$work/poem")" = "a poem" ] || fail "a file was replaced"
XDG_CACHE_HOME=$work/cache expect 0 "the usual file" "$polyphase" bench \
  "$model" --shape 0=1x3x8x8 --seconds 0.01 --tune
[ -s "$work/cache/polyphase/tune" ] || fail "no file in XDG_CACHE_HOME"
expect 2 "tune of --op" "$polyphase" bench --tune \
  --op "conv f32 n1 g1 ci4 co8 i9x7 k3x3 s1x1 d1x1 p1,1,1,1"
said err "--op measures every algorithm anyway"
expect 2 "short descriptor" "$polyphase" bench --op "f32 n1 g0"
said err 'problem, column 10: the text ends, "ci" is missing'

[ "$failures" -eq 0 ] && echo "all as expected"
exit "$failures"
