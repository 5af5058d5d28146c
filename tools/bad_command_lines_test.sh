#!/bin/bash
# Bad command lines: each option of each command gets a bad value of its kind, and so do uses that an option is not for.
# Each ends with exit code 1, nothing on standard output, one line "nao: ..." on standard error, and no file.
set -uo pipefail
# shellcheck source=tools/test_lib.sh
source tools/test_lib.sh bad_command_lines

nao=$PWD/tools/nao
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/in"
printf '%s\n' '@assert(n % 4 == 0, 0 < n)' 'func clear(A: f32[n] out, n: i32) { for (i, 0, n) { A[i] = 0.0 } }' >"$work/in/f.nir"
printf '%s\n' 'func g(A: u8[4] out, n: u64) { for (i, 0, 4) { A[i] = cast(u8, n >> 56) } }' >"$work/in/u64.nir"
printf 'halt\n' >"$work/in/p.nasm"
printf '# plans\ntile=64 x\n' >"$work/in/plans.txt"
printf '.program q\n.assert "n %% 4 == 0"\n.scalar n i8\n  halt\n' >"$work/in/q.nasm"
"$nao" compile relu --shape=100 --dtype=f16 --name=c -o "$work/in" --quiet || exit 1
# Builtins of Bash alone: a thousand command lines are tried, and another process takes as long as one of them.
shopt -s globstar dotglob
before=("$work"/in/**)

# try ARGUMENT...: runs nao in $work/in, in the subshell in which `expect` calls this; sets `code` and `lines`.
try() {
  cd "$work/in" || return
  code=0
  "$nao" "$@" >"$work/out" 2>"$work/err" || code=$?
  mapfile lines <"$work/err"
}

# is_error MESSAGE: whether it ended with one line that MESSAGE, a regular expression, matches, and no output.
is_error() {
  local line="^nao: .*$1"
  [[ $code -eq 1 && ! -s $work/out && ${#lines[@]} -eq 1 && $lines == *$'\n' && $lines =~ $line ]]
}

leaves_no_file() {
  local files=("$work"/in/**)
  [[ ${files[*]} == "${before[*]}" ]] || { echo "files: ${files[*]}"; return 1; }
}

# refused MESSAGE ARGUMENT...
refused() {
  try "${@:2}"
  if ! is_error "$1"; then
    echo "exit code $code, stdout $(wc -c <"$work/out") bytes, expected 'nao: .*$1', stderr: ${lines[*]}"
    return 1
  fi
  leaves_no_file
}

commands=$("$nao" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]\{1,\}\) .*/\1/p')
[[ $(wc -w <<<"$commands") -ge 13 ]] || { echo "no list of commands in --help"; exit 1; }

# A command line for each command, to which options are added.
declare -A base=(
  [demo]='' [run]='add --shape=4' [bench]='tensorize48' [tune]='add --shape=4' [compile]='add --shape=4 -o out' [opt]='add --shape=4' [poly]='f.nir'
  [sim]='p.nasm' [compare]='c.json --reference' [sweep]='add --shape=4 --axis=gmem.channels=2 --out=out' [asm]='p.nasm -o out.bin'
  [calibrate]='' [disasm]='c.bin' [list]='ops' [cycles]='layers95' [check]='add --shape=4'
)
# Bad values of options that are no numbers and no flags: COMMAND OPTION VALUE MESSAGE, or with * for commands that have
# no line of their own.
read -r -d '' texts <<'TEXTS'
* --config mlu1 no config is named 'mlu1'
* --config missing.toml can not be read
* --set core.nmem_kb=1 there is no parameter core.nmem_kb
* --set core.nmem_kib expected NAME=INTEGER
* --set core.nmem_kib= expected NAME=INTEGER
* --set core.nmem_kib=0 core.nmem_kib
* --set core.nmem_kib=-1 core.nmem_kib
* --set core.nmem_kib=99999999999999999999 expected NAME=INTEGER
* --set core.nmem_kib=1e3 expected NAME=INTEGER
* --set =5 there is no parameter
* --shape 4x shape
* --shape 4x-3 found '-3'
* --shape 99999999999999999999 shape
* --shape 4,,4 shape
* --dtype f12 dtype 'f12'
* --attr stride expected name=value
* --attr =1 expected name=value
* --attr frob=1 frob
* --schedule tile expected
* --schedule tile=1.5 expected
* --save-schedule /nonexistent/x can not be written
* --target vax vax
* --impl frob frob
* --energy fast no energy table is named 'fast'
* --trace /nonexistent/x can not be written
* --trace in/. can not be written
* --timeline x.foo ends in .svg or .html
* --timeline /nonexistent/x.svg can not be written
* --report /nonexistent/x can not be written
* --html /nonexistent/x can not be written
* --without frob no pass
* --skip frob no pass that runs is named 'frob'
* --passes frob no pass is named 'frob'
* --passes simplify( --passes|expected
* --function frob expected
* --instructions missing.nir can not be read
* --instructions f.nir f.nir:
run --arg n=5 --arg is not for an operator
run --values frob --values is not for an operator
run --image missing.png --image is not for an operator
run --out x.png --out is not for an operator
run --function frob --function is not for an operator
bench --json /nonexistent/x can not be written
bench --filter add( malformed
bench --target frob --target is not for the suite
bench --size BIG --size is not for the suite
bench --pipelines blur --pipelines is not for the suite
bench --strategies frob --strategies is not for the suite
bench --schedule none --schedule is not for the suite
bench --python /nonexistent --python is not for the suite
bench --peers icc --peers is not for the suite
bench --from x.json --from is not for the suite
tune --save /nonexistent/x can not be written
compile --arg n=5 --arg
compile --impl frob expected --name
compile --size BIG --size is not for an operator
compile --arch sm_90 --arch is not for an operator
compile --nvcc /bin/false --nvcc is not for an operator
compile --host-compiler clang --host-compiler is not for an operator
compile --asm missing.nasm expected --name
compile --name a/b expected a file's name without
compile -o c.json/x can not be made
opt --arg n=5 --arg is not for
opt -o /nonexistent/x can not be written
poly --shape 4x4 --shape is not for
poly --eval {} found both
poly --show frob --show: expected some of
poly --arg n=5 --arg is not for
poly --tile 8 --tile is not for
poly --strategy fast --strategy is not for
poly --schedule tile --schedule is not for
poly --statement S9 --statement is not for
poly --loops 0,1 --loops is not for
poly -o /nonexistent/x can not be written
sim --arg n=5 the program has no parameter 'n'
sim --arg n expected name=value
sim --made-from missing.json can not be read
sim -o /nonexistent/x can not be written
check --arg n=5 --arg is not for an operator
check --function frob --function is not for an operator
compare --with missing.json can not be read
compare --source missing.nir can not be read
compare --gpu-results missing.jsonl can not be read
sweep --axis core.nmem_kb=1 names like it: core.nmem_kib
sweep --axis core.nmem_kib= an empty one
sweep --axis core.nmem_kib=1,1 comes twice
sweep --axis =1 expected NAME=VALUE
sweep --filter add --filter is not for an operator
sweep --arg n=5 --arg is not for an operator
sweep --metrics frob frob
sweep --out c.json/x can not be made
cycles --compare x.json At least 2 required
cycles --filter add( no case of layers95
cycles --json /nonexistent/x can not be written
cycles --schedule stream=1 which schedules --model simulates
asm -o /nonexistent/x can not be written
disasm -o /nonexistent/x can not be written
demo -o c.json/x can not be made
calibrate -o /nonexistent/x can not be written
TEXTS

for command in $commands; do
  # "  --seed UINT:[..] [1]" of the help; options of one letter as well.
  options=$("$nao" "$command" --help | sed -n 's/^  \(-[a-zA-Z-]*\)\(,[^ ]*\)\{0,1\}\( \([A-Z]\{2,\}\)\)\{0,1\}.*/\1 \4/p' | grep -v -e '^-h ')
  [[ -v base[$command] ]] || { echo "no command line for $command"; exit 1; }
  read -r -a line <<<"${base[$command]}"
  while read -r option kind; do
    [[ -n $option ]] || continue
    case $kind in
      UINT) values=(-1 abc '' 1e3 99999999999999999999 1.5) message='expected|required' ;;
      INT) values=(abc '' 1e3 99999999999999999999 1.5) message='expected|required|in range' ;;
      FLOAT) values=(abc '' nan inf 1,5) message='expected|required|in range' ;;
      TEXT)
        found=0 whose='*'
        [[ $texts != *$'\n'"$command $option "* ]] || whose=$command
        while read -r of name value message; do
          [[ $of == "$whose" && $name == "$option" ]] || continue
          found=1
          # An option of the command line stands there once.
          words=()
          for word in "${line[@]}"; do [[ $word == "$option" || $word == "$option="* ]] || words+=("$word"); done
          [[ $option != -o ]] || words=("${words[@]/#out*/}")
          arguments=()
          for word in "${words[@]}"; do [[ -z $word ]] || arguments+=("$word"); done
          separator==
          [[ $option != -? ]] || separator=
          expect "$command $option $value" pass "" refused "$message" "$command" "${arguments[@]}" "$option$separator$value"
        done <<<"$texts"
        [[ $found == 1 ]] || expect "a bad value of $command $option" pass "" false
        continue
        ;;
      '') values=(maybe) message='--' ;; # a flag
      *) values=() && expect "the kind of $command $option" pass "" false ;;
    esac
    for value in "${values[@]}"; do
      expect "$command $option=$value" pass "" refused "$message" "$command" "${line[@]}" "$option=$value"
    done
  done <<<"$options"
  expect "$command --frobnicate" pass "" refused "frobnicate" "$command" "${line[@]}" --frobnicate
  [[ -z ${base[$command]} ]] || expect "$command without arguments" pass "" refused "$command: " "$command"
done

# Uses that options are not for, values out of a range, and what a value means: MESSAGE | COMMAND LINE
while IFS='|' read -r message text; do
  [[ -n $message ]] || continue
  read -r -a line <<<"$text"
  expect "$text" pass "" refused "${message% }" "${line[@]}"
done <<'LINES'
expected a command; there are: demo, run, |
no command is named 'frobnicate'; there are: demo, run, | frobnicate
--config is of the card: expected --target=diannao, found --target=cpu | run add --shape=4 --target=cpu --config=mlu370
--set is of the card | run add --shape=4 --target=c --set core.nmem_kib=256
--untuned is of the card | run add --shape=4 --target=interp --untuned
--no-hazards is of the card | run add --shape=4 --target=cpu --no-hazards
--schedule is of the card | run add --shape=4 --target=cpu --schedule=tile=64
--untuned is of compiled programs: expected --impl=compiled, found --impl=library | run add --shape=4 --impl=library --untuned
--schedule is of compiled programs | run add --shape=4 --impl=expert --schedule=tile=64
--schedule: expected name=number or a file, found 'missing.txt' | run add --shape=4 --schedule=missing.txt
there is no frob, expected clusters, | run add --shape=4 --schedule=frob=1
tile=63: expected 64 | run add --shape=4 --schedule=tile=63
no schedule has clusters=5 on a machine of 4 clusters | run add --shape=4 --schedule=clusters=5
tile has a value already | run add --shape=4 --schedule=tile=64 --schedule=tile=64
expected a number from 0, found '-64' | run add --shape=4 --schedule=tile=-64
plans.txt:2: word 2: expected name=number, found 'x' | run add --shape=4 --schedule=plans.txt
nmem: [0-9]+ bytes of 32768 with | run max_pool2d --shape=56x56x64 --dtype=f16 --set core.nmem_kib=32 --schedule=tile0=7 --schedule=tile1=28 --schedule=tile2=64
--explain is of the card: expected --target=diannao, found --target=cpu | run add --shape=4 --target=cpu --explain
--explain is of compiled programs: expected --impl=compiled, found --impl=library | run add --shape=4 --impl=library --explain
--save-schedule is of the card | run add --shape=4 --target=cpu --save-schedule=x
--explain is not for a function | run f.nir --arg n=4 --explain
expected no --shape, --dtype, --scalar, --attr or --schedule | run conv2d --case=1 --schedule=tile=64
--dtype is not for a pipeline | run harris --dtype=f16
--arg is not for a pipeline | run harris --arg n=4
--arg is not for a time step of equake | run equake --arg n=4
--shape is not for a function | run f.nir --shape=4 --arg n=4
--threads is of parallel loops on the CPU | run f.nir --arg n=4 --target=c --threads=2
not in range | run f.nir --arg n=4 --threads=0
not in range | run f.nir --arg n=4 --threads=-1
expected NAME=NUMBER | run f.nir --arg n
expected an integer of i32, found '' | run f.nir --arg n=
expected an integer of i32, found '4x' | run f.nir --arg n=4x
has no parameter 'm' | run f.nir --arg n=4 --arg m=4
'n' has a value already | run f.nir --arg n=4 --arg n=8
'@assert\(n % 4 == 0\)' does not hold: n = 5 | run f.nir --arg n=5
'@assert\(0 < n\)' does not hold: n = -4 | run f.nir --arg n=-4 --target=interp --schedule=none
'@assert\(n % 4 == 0\)' does not hold: n = 5 | compile f.nir --arg n=5 --target=cuda --arch=none -o out
'@assert\(n % 4 == 0\)' does not hold: n = 5 | opt f.nir --check --arg n=5 --passes=simplify
program q: '@assert\(n % 4 == 0\)' does not hold: n = 5 | sim q.nasm --arg n=5
expected an integer of i8, found '128' | sim q.nasm --arg n=128
'n' has a value already | sim q.nasm --arg n=4 --arg n=8
expected an integer of u64, found '18446744073709551616' | run u64.nir --arg n=18446744073709551616
expected an integer of u64, found '-1' | run u64.nir --arg n=-1
--values: expected uniform, exact, finite or all | run f.nir --arg n=4 --values=some
--shape is not for a function | opt f.nir --shape=4
--config is not for a function on cpu | opt f.nir --target=cpu --config=mlu270
--seed is not for a function | opt f.nir --seed=3
--dtype is not for a pipeline | opt harris --target=cpu --dtype=f16
not in range | opt f.nir --stop-after=-1
--shape is not for a function | compile f.nir --shape=4 -o out
--arch is not for a function on cpu | compile f.nir --target=cpu --arch=sm_90 -o out
--pair is not for an operator | compile add --shape=4 --target=cpu --pair -o out
--size is not for a function | compile f.nir --size=MINI -o out
--without is not for an operator | compile add --shape=4 --impl=library --without=simplify --name=x -o out
--dtype is not for a kernel of PolyBench | compile polybench/gemm --target=cuda --dtype=f32 -o out
--size is not for a pipeline | compile harris --target=c --size=MINI -o out
has no parameter 'm' | compile f.nir --name=f --arg m=5 -o out
--schedule: expected auto or none for the card | compile f.nir --schedule=smart --arg n=4 -o out
--schedule: expected auto or none for the card | opt f.nir --schedule=min --arg n=4
'@assert\(n % 4 == 0\)' does not hold: n = 5 | compile f.nir --arg n=5 -o out
expected one --schedule | compile f.nir --schedule=auto --schedule=none --arg n=4 -o out
expected --axis, or --instructions with two tables or more | sweep add --shape=4 --out=out
expected --axis, or --instructions with two tables or more | sweep add --shape=4 --instructions=p.nasm --out=out
--instructions is of the card: expected --target=diannao, found --target=cpu | run add --shape=4 --target=cpu --instructions=f.nir
--instructions is of the card: expected --target=diannao, found --target=cpu | run f.nir --arg n=4 --instructions=f.nir
--trace is of a simulated card | run f.nir --arg n=4 --trace=t.json
--report is of a simulated card | run harris --shape=8x8 --report=r.html
--no-hazards is of a simulated card | run f.nir --arg n=4 --no-hazards
--instructions is not for a function on cpu | opt f.nir --target=cpu --instructions=f.nir
--dtype is not for a suite | sweep resnet50 --dtype=f16 --axis gmem.channels=2 --out=out
--untuned is not for an operator | sweep add --shape=4 --untuned --axis gmem.channels=2 --out=out
--shape is not for a file of functions | sweep f.nir --shape=4 --axis gmem.channels=2 --out=out
--impl is not for a file of functions | sweep f.nir --impl=library --arg n=4 --axis gmem.channels=2 --out=out
no function has 'g' in its name | sweep f.nir --filter=g --axis gmem.channels=2 --out=out
no function has a scalar parameter 'm' | sweep f.nir --arg n=4 --arg m=4 --axis gmem.channels=2 --out=out
has no value: expected --arg | sweep f.nir --axis gmem.channels=2 --out=out
not in range | sweep add --shape=4 --jobs=0 --axis gmem.channels=2 --out=out
--impl: expected compiled, library or expert, found | sweep add --shape=4 --impl=compiled,frob --axis gmem.channels=2 --out=out
--case is not for an operator | tune add --case=1
--shape is not for a suite | tune resnet50 --shape=4
--dtype is not for a pipeline | tune unsharp --dtype=f16
not in range | tune add --shape=4 --top=0
--seed is not for the suite | bench ladder --seed=3
--html is not for the suite | bench ladder --html=x.html
--without is not for the suite | bench polybench --without=licm
--config is not for the suite | bench licm511 --config=mlu270
--rows is not for the suite | bench equake --rows=5
--seed is not for a result that is shown | bench fusion --from=c.json --seed=3
not in range | bench fusion --threads=1,0
not in range | bench licm511 --seconds=0
is named 'mkl': expected onednn, openblas | bench dense --peers=mkl
expected networks or small, found 'BIG' | bench dense --size=BIG
no layer of dense is named so; the first is | bench dense --filter=frob
--schedule is not for the suite | bench dense --schedule=auto
not in range | compare c.json --reference --max-error=-1
not in range | compare c.json --reference --max-cycles=-1
--show is not for a calculation | poly --eval {S(4)} --show=deps
--tile: expected sizes from 1, or 0 | poly f.nir --show=schedule --strategy=smart --tile=-3
--tile: expected integers | poly f.nir --show=schedule --strategy=smart --tile=axb
--loops: expected two different loops | poly f.nir --show=picture --arg n=4 --loops=1,1
--arg: expected NAME=INTEGER | poly f.nir --show=card --arg n=x
--values: expected topi511 alone | cycles layers95 --values
--values: expected topi511 alone | cycles topi511 layers95 --values
--model excludes --values | cycles topi511 --values --model=4
list: expected ops, | list frob
not in range | calibrate --threads=0
diannao not in | calibrate --target=diannao
can not be read | check missing.nasm
--shape is not for a program | check q.nasm --shape=4
--arg is not for an operator | check add --shape=4 --arg n=4
--impl is not for a function | check f.nir --impl=library --arg n=4
the program has no parameter 'm' | check q.nasm --arg m=4
expected an integer of i8, found '128' | check q.nasm --arg n=128
program q: '@assert\(n % 4 == 0\)' does not hold: n = 5 | check q.nasm --arg n=5
can not be read | sim missing.bin
can not be read | asm missing.nasm -o x.bin
can not be read | disasm missing.bin
LINES

# Nothing of it was an error of the table: what is right goes through.
goes_through() {
  local text
  text=$("$nao" "$@" 2>&1) || { echo "$text"; return 1; }
}
expect "u64 from 2^63 on" pass "" goes_through run "$work/in/u64.nir" --arg n=18446744073709551615
expect "a scalar that keeps its assertion" pass "" goes_through run "$work/in/f.nir" --arg n=8
expect "a program's scalar that keeps its assertion" pass "" goes_through sim "$work/in/q.nasm" --arg n=8
expect "opt --check draws scalars that keep their assertion" pass "" goes_through opt "$work/in/f.nir" --check --target=cpu

# Random texts for what is parsed: never a crash, never more than a line, never a file. With a fixed seed.
RANDOM=7
random_text() { # random_text CHARACTERS COUNT
  local text='' i
  for ((i = RANDOM % $2; i >= 0; --i)); do text+=${1:RANDOM % ${#1}:1}; done
  printf '%s' "$text"
}
survives() { # an error of one line, or success
  try "$@"
  [[ $code -eq 0 && ${#lines[@]} -eq 0 ]] && return 0
  is_error '' && leaves_no_file && return 0
  printf '%q ' "$@"
  echo "exit code $code: ${lines[*]}"
  return 1
}
fuzz() {
  local i
  for ((i = 0; i < 25; ++i)); do
    survives opt add --shape="$(random_text '0123459x,-. ' 9)" --stop-after=0 -o /dev/null &&
      survives opt add --shape=4 --stop-after=0 -o /dev/null --schedule "$(random_text 'tile=64 rotate=0clusters-.' 12)" &&
      survives sim q.nasm --arg "n$(random_text '=-0123458x. ' 6)" -o /dev/null &&
      survives sim p.nasm --set "$(random_text 'core.nmem_kib=gd-01259' 14)" -o /dev/null &&
      survives sim p.nasm --set "core.nmem_kib=$(random_text '0123456789-.e' 5)" -o /dev/null &&
      survives sweep add --shape=4 --axis "$(random_text 'gmem.channels=,0123-' 16)" --out=c.json/x || return 1
  done
}
expect "random texts" pass "" fuzz

finish
