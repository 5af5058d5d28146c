#!/bin/bash
# The command line as scripts use it: exit codes, JSON on stdout alone, clear errors, no partial files.
set -uo pipefail
# shellcheck source=tools/test_lib.sh
source tools/test_lib.sh nao

nao=$PWD/tools/nao
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fails MESSAGE COMMAND...: the command ends with exit code 1, prints nothing on stdout, and MESSAGE
# (a regular expression) on stderr.
fails() {
  local message=$1
  shift
  local code=0
  "$@" >"$work/out" 2>"$work/err" || code=$?
  [[ $code -eq 1 && ! -s $work/out ]] && grep -qE -e "$message" "$work/err" && return 0
  echo "exit code $code, stdout $(wc -c <"$work/out") bytes, stderr: $(cat "$work/err")" >&2
  return 1
}

json_field() { sed -n "s/^  \"$2\": \(.*[^,]\),\{0,1\}\$/\1/p" "$1"; }

run_json() {
  "$nao" run add --shape=255x27x27 --target=diannao --json >"$work/run.json" &&
    [[ $(json_field "$work/run.json" ok) == true ]] &&
    [[ $(json_field "$work/run.json" max_abs_error) == 0.0 ]] &&
    awk -v e="$(json_field "$work/run.json" efficiency)" 'BEGIN { exit !(e >= 0.6) }' &&
    [[ $(head -c 1 "$work/run.json") == '{' ]]
}
expect "run --json prints one object and exits 0" pass "" run_json

# libLLVM.so alone takes 15 ms to load.
links_archives() {
  local libraries
  libraries=$(ldd "$nao") && [[ $libraries == *libsystemc* && $libraries != *libLLVM* && $libraries != *libabsl* ]]
}
expect "starts without LLVM's shared library" pass "" links_archives

run_unchecked() {
  "$nao" run add --shape=255x27 --no-check >"$work/unchecked.txt" &&
    grep -q 'values not checked' "$work/unchecked.txt" && ! grep -q agree "$work/unchecked.txt" &&
    "$nao" run add --shape=255x27 --no-check --json >"$work/unchecked.json" &&
    [[ $(json_field "$work/unchecked.json" ok) == null ]] &&
    [[ $(json_field "$work/unchecked.json" values_checked) == false ]] &&
    "$nao" run harris --shape=40x50 --target=interp --schedule=none --no-check >"$work/unchecked.txt" &&
    grep -q 'values not compared, since --no-check' "$work/unchecked.txt" &&
    ! grep -q agree "$work/unchecked.txt"
}
expect "run --no-check says that values were not checked" pass "" run_unchecked
# The same cycles and counters without values: all lines of the JSON but those of values and of this machine's times.
run_timing_only() {
  local line=(run add --shape=255x27 --json)
  "$nao" "${line[@]}" >"$work/with_values.json" &&
    "$nao" "${line[@]}" --timing-only >"$work/timing_only.json" &&
    grep -q '"values_checked": false' "$work/timing_only.json" &&
    diff <(grep -vE '_ms"|"ok"|_error"|values_checked' "$work/with_values.json") \
      <(grep -vE '_ms"|"ok"|_error"|values_checked' "$work/timing_only.json")
}
expect "run --timing-only changes no cycle" pass "" run_timing_only
expect "run --timing-only is of the card" fail "--timing-only is of a simulated card: expected --target=diannao, found --target=cpu" \
  "$nao" run add --shape=255x27 --target=cpu --timing-only

# ./nao takes nao_run for some commands: those that it has.
commands_of_nao_run() {
  local commands command
  commands=$(sed -n 's/^ *\(demo .*\)) if driver_is_stale nao.*/\1/p' nao | tr -d '|')
  [[ -n $commands ]] || return 1
  for command in $commands; do
    "$PWD/tools/nao_run" "$command" --help >/dev/null || return 1
  done
  diff <("$PWD/tools/nao_run" run add --shape=255x27 --json | grep -v '_ms"') \
    <("$nao" run add --shape=255x27 --json | grep -v '_ms"')
}
expect "./nao takes nao_run for commands that it has" pass "" commands_of_nao_run

compile_and_simulate() {
  "$nao" compile add --shape=63x65 -o "$work/add" >/dev/null &&
    "$nao" disasm "$work/add/add.bin" -o "$work/add/again.nasm" &&
    cmp "$work/add/add.nasm" "$work/add/again.nasm" &&
    "$nao" asm "$work/add/again.nasm" -o "$work/add/again.bin" &&
    cmp "$work/add/add.bin" "$work/add/again.bin" &&
    "$nao" sim "$work/add/add.bin" --json | grep '"cycles"' >/dev/null
}
expect "compile, disasm, asm and sim agree" pass "" compile_and_simulate

check_says_before() {
  local said
  said=$("$nao" check tests/data/racy.nasm --arg n=1000) && { echo "exit code 0"; return 1; }
  [[ $said == 'core 0 of cluster 0 pc 16 "add.f16 r10, r10, r11, r5": hazard: '*'no sync of the io queue lies between' ]] &&
    fails 'hazard: reads byte 0 of NMEM' "$nao" sim tests/data/racy.nasm --arg n=1000 --arg x=1024 &&
    sed 's/^  add\.f16/  sync.io\n&/' tests/data/racy.nasm >"$work/right.nasm" &&
    [[ $("$nao" check "$work/right.nasm" --arg n=1000) == 'program racy on mlu270: no missing wait'* ]] &&
    [[ $("$nao" check "$work/right.nasm") == 'cannot decide: '* ]] &&
    [[ $("$nao" check docs/add.nir --config=mlu370) == 'program add on mlu370: no missing wait'* ]] &&
    [[ $("$nao" check conv2d --shape=9x9x64,64x3x3x64 --dtype=i8 --impl=library) == *': no missing wait'* ]]
}
expect "check says what sim would stop at" pass "" check_says_before

energy_of_runs() {
  "$nao" run matmul --shape=8x64,64x64 --dtype=i16 --target=diannao --config=diannao --energy=65nm --json >"$work/energy.json" &&
    [[ $(json_field "$work/energy.json" ok) == true ]] &&
    grep -q '"energy_delay_pj_s"' "$work/energy.json" &&
    grep -q '"tensor.mac_i16_fj"' "$work/energy.json" &&
    "$nao" sim "$work/add/add.bin" --any-machine --set gmem.dram=flat --energy=16nm,hbm2 >"$work/energy.txt" &&
    grep -q 'table 16nm,hbm2' "$work/energy.txt"
}
expect "run and sim report energy" pass "" energy_of_runs

expect "energy by an unknown table" pass "" fails "no energy table is named 'fast'; there are: 28nm, 45nm, 65nm" \
  "$nao" run add --shape=64 --target=diannao --energy=fast
price_table() { sed "$1" simulator/energy/28nm.toml >"$work/prices.toml"; }
price_table '/^byte_fj/d'
expect "energy by a table that lacks a row" pass "" fails "prices.toml: register.byte_fj is missing .eight flip-flops, written." \
  "$nao" run add --shape=64 --target=diannao --energy="$work/prices.toml"
price_table 's/^byte_fj = { value = [0-9]*/byte_fj = { value = nan/'
expect "energy by a table with a NaN" pass "" fails "found nan" \
  "$nao" run add --shape=64 --target=diannao --energy="$work/prices.toml"
price_table 's/^byte_fj = { value = [0-9]*/byte_fj = { value = -1/'
expect "energy by a table with a negative price" pass "" fails "register.byte_fj is -1; allowed are 1 to" \
  "$nao" run add --shape=64 --target=diannao --energy="$work/prices.toml"
price_table 's/^byte_fj/bite_fj/'
expect "energy by a table with an unknown row" pass "" fails "there is no parameter register.bite_fj" \
  "$nao" run add --shape=64 --target=diannao --energy="$work/prices.toml"
expect "energy of a clock that no supply meets" pass "" fails "card.clock_mhz: expected at most" \
  "$nao" run add --shape=64 --target=diannao --set gmem.dram=flat card.clock_mhz=9000 --energy=28nm
expect "energy of a CPU" pass "" fails "--energy is of the card: expected --target=diannao, found --target=cpu" \
  "$nao" run add --shape=64 --target=cpu --energy=65nm
expect "energy of another DRAM preset" pass "" fails "no DRAM is named 'ddr9'" \
  "$nao" sim "$work/add/add.bin" --any-machine --set gmem.dram=flat --energy=65nm,ddr9

# Programs with what they were made from, compared with each other.
"$nao" compile relu --shape=1000 --dtype=f16 --name=c -o "$work/pair" >/dev/null
"$nao" compile relu --shape=1000 --dtype=f16 --impl=library --name=l -o "$work/pair" >/dev/null
"$nao" compile relu --shape=1001 --dtype=f16 --name=other -o "$work/pair" >/dev/null
expect "compare agrees" pass "library" "$nao" compare "$work/pair/c.json" --with "$work/pair/l.json" --reference
expect "compare with a limit of cycles" fail "cycles: expected at most 5, found" \
  "$nao" compare "$work/pair/c.json" --max-cycles=5
expect "compare with a limit of speed" fail "speed-up of the compiled program: expected 100, found" \
  "$nao" compare "$work/pair/c.json" --with "$work/pair/l.json" --min-speedup=100
expect "compare with another computation" pass "" fails "expected a program for relu 1000 f16, found relu 1001 f16" \
  "$nao" compare "$work/pair/c.json" --with "$work/pair/other.json"
expect "compare with nothing" pass "" fails "expected something to compare with" "$nao" compare "$work/pair/c.json"
expect "compare on another machine" pass "" fails "was compiled for another machine, of core.nmem_kib = 512: found 256" \
  "$nao" compare "$work/pair/c.json" --reference --set core.nmem_kib=256
expect "sim on another machine" pass "" fails "was compiled for another machine" \
  "$nao" sim "$work/pair/c.bin" --set core.nmem_kib=256
# Sums of floats that clusters share are added up in another order, whichever program is the first.
for parts in 1 2; do
  "$nao" compile matmul --shape=9x256,64x256 --dtype=f16 --config=mlu370 --schedule=sum_clusters=$parts \
    --name=sums$parts -o "$work/pair" >/dev/null
done
expect "compare with sums in another order" pass "compiled" \
  "$nao" compare "$work/pair/sums1.json" --with "$work/pair/sums2.json" --reference --config=mlu370
expect "compare sums in another order" pass "compiled" \
  "$nao" compare "$work/pair/sums2.json" --with "$work/pair/sums1.json" --config=mlu370
gpu_line() {  # gpu_line OP ERROR OK
  echo '{"bundle": "b", "case": {"op": "'"$1"'", "shape": [1000], "operand_shapes": [], "dtype": "f16",' \
    '"attributes": {}}, "ok": '"$3"', "max_error": '"$2"', "time_us": 1.5}' >"$work/gpu.jsonl"
}
gpu_line relu 0 true
expect "compare with a GPU's results" pass "gpu" "$nao" compare "$work/pair/c.json" --gpu-results "$work/gpu.jsonl"
gpu_line relu 0.5 true
expect "compare with a GPU's values" fail "values of the GPU: expected an error of at most 0.1, found 0.5" \
  "$nao" compare "$work/pair/c.json" --gpu-results "$work/gpu.jsonl" --max-error=0.1
gpu_line exp 0 true
expect "compare with results of another program" pass "" fails "expected results of relu 1000 f16, found exp 1000 f16" \
  "$nao" compare "$work/pair/c.json" --gpu-results "$work/gpu.jsonl"
record_error() {
  "$nao" compile conv2d --shape=8x8x64,64x3x3x64 --dtype=i8 --set core.wmem_kib=2 --name=e --record-error -o "$work/pair" >/dev/null &&
    [[ ! -s $work/pair/e.bin ]] && grep -q 'smallest tile does not fit' "$work/pair/e.json" &&
    fails "there is no program: operator conv2d" "$nao" compare "$work/pair/e.json" --reference
}
expect "an error of compilation is recorded" pass "" record_error
expect "compile by hand needs a name" pass "" fails "expected --name for a hand-written program" \
  "$nao" compile relu --shape=10 --impl=library -o "$work/pair"

# A search takes the fastest of the schedules that it simulates; --search=1 has the first and one other.
searches() {
  local line=(relu --shape=255x27x27 --dtype=f16 --target=diannao --untuned --no-check --json)
  "$nao" run "${line[@]}" >"$work/first.json" && "$nao" run "${line[@]}" --search=6 >"$work/searched.json" &&
    (($(json_field "$work/searched.json" cycles) <= $(json_field "$work/first.json" cycles))) &&
    "$nao" compile relu --shape=255x27x27 --dtype=f16 --untuned --search=6 --name=s -o "$work/pair" --quiet >"$work/said" &&
    [[ ! -s $work/said ]] && "$nao" sim "$work/pair/s.bin" --json >"$work/sim.json" &&
    (($(json_field "$work/sim.json" cycles) == $(json_field "$work/searched.json" cycles)))
}
expect "search for a schedule" pass "" searches
expect "a search of hand-written programs" pass "" \
  fails "nao: run relu: --search is of compiled programs: expected --impl=compiled, found --impl=library" \
  "$nao" run relu --shape=64 --target=diannao --impl=library --search=2
expect "a search on a CPU" pass "" \
  fails "nao: run relu: --search is of the card: expected --target=diannao, found --target=cpu" \
  "$nao" run relu --shape=64 --target=cpu --search=2
echo 'func f(A: f32[4] out) { A[0] = 1.0 }' >"$work/plain.nir"
expect "a search of a function" pass "" fails "nao: compile .*plain.nir: --search is not for a function on the card" \
  "$nao" compile "$work/plain.nir" --search=2 --name=p -o "$work/pair"

# A run's page holds what --json prints.
report_of_runs() {
  "$nao" sim "$work/pair/c.bin" --json --report="$work/page.html" >"$work/page.json" &&
    grep -q '<script type="application/json" id="data">' "$work/page.html" &&
    grep -q "\"cycles\":$(json_field "$work/page.json" cycles)," "$work/page.html" &&
    "$nao" run relu --shape=1000 --target=diannao --report="$work/page2.html" >/dev/null && grep -q 'relu 1000 f16 on mlu270' "$work/page2.html"
}
expect "run and sim write pages" pass "" report_of_runs
expect "a page of a CPU" pass "" fails "--report is of the card: expected --target=diannao, found --target=cpu" \
  "$nao" run relu --shape=10 --target=cpu --report="$work/r3.html"
expect "a page that can not be written" pass "" fails "can not be written" \
  "$nao" run relu --shape=10 --target=diannao --report=/nonexistent/r.html

# Sweeps.
sweeps_are_the_same() {
  local axes=(--axis core.wmem_kib=2,256 --axis gmem.channels=2,4)
  "$nao" sweep conv2d --shape=14x14x64,64x3x3x64 --dtype=i8 "${axes[@]}" --energy=28nm --jobs=1 --out="$work/s1" >/dev/null &&
    "$nao" sweep conv2d --shape=14x14x64,64x3x3x64 --dtype=i8 "${axes[@]}" --energy=28nm --jobs=2 --out="$work/s2" >/dev/null &&
    cmp "$work/s1/sweep.csv" "$work/s2/sweep.csv" && cmp "$work/s1/sweep.json" "$work/s2/sweep.json" &&
    cmp "$work/s1/sweep.html" "$work/s2/sweep.html" &&
    [[ $(wc -l <"$work/s1/sweep.csv") == 5 && $(grep -c 'smallest tile does not fit' "$work/s1/sweep.csv") == 2 ]]
}
expect "sweeps do not depend on jobs" pass "" sweeps_are_the_same

tables_compared() {
  local said
  said=$("$nao" sweep add_relu --shape=100x1000 --dtype=f16 --instructions=tests/data/no_rows.nir,tests/data/fma.nir --energy=28nm --out="$work/s5") &&
    [[ $said == *'cycles, relative to no_rows'*'geometric mean, energy'*'fma: fewer cycles in 1 programs, the same in 0, more in 0' ]] &&
    grep -q '<h2>Instruction tables</h2>' "$work/s5/sweep.html" &&
    [[ $(head -1 "$work/s5/sweep.csv") == 'instructions,program,cycles,'* ]] &&
    "$nao" run add_relu --shape=7x9x65 --dtype=f16 --instructions=tests/data/fma.nir >/dev/null &&
    "$nao" opt add_relu --shape=100 --instructions=tests/data/fma.nir | grep -q 'add_relu.f16(' &&
    "$nao" compile add_relu --shape=100 --instructions=tests/data/fma.nir --name=row -o "$work/with_row" --quiet &&
    grep -q '  add_relu.f16 ' "$work/with_row/row.nasm"
}
expect "sweep compares instruction tables; run, opt and compile take one" pass "" tables_compared
# One's own layers: all functions of a file, at all points.
sweep_of_functions() {
  printf '%s\n' 'func double(A: f16[n] in, B: f16[n] out, n: i32) { for (i, 0, n) { B[i] = A[i] + A[i] } }' \
    'func sum(A: f32[64, m] in, S: f32[64], m: i32) { for (i, 0, 64) { for (j, 0, m) { S[i] = S[i] + A[i, j] } } }' >"$work/own.nir"
  "$nao" sweep "$work/own.nir" --arg n=10000 --arg m=500 --axis gmem.channels=1,4 --energy=28nm --out="$work/s6" >/dev/null &&
    awk -F, 'NR > 1 { rows += 1; bad += $3 + 0 <= 0; programs[$2] } END { for (p in programs) ++kinds; exit !(rows == 4 && bad == 0 && kinds == 2) }' \
      "$work/s6/sweep.csv" &&
    "$nao" sweep "$work/own.nir" --filter=sum --arg m=500 --axis gmem.channels=1,4 --out="$work/s7" >/dev/null &&
    [[ $(wc -l <"$work/s7/sweep.csv") == 3 ]]
}
expect "sweep of the functions of a file" pass "" sweep_of_functions
# The rate of channels and the size of GMEM follow what an axis says of the DRAM.
which_dram() {
  "$nao" sweep add --shape=63x65 --axis gmem.dram=ddr4_3200,lpddr5,hbm2 --axis gmem.channels=1,4 --axis card.clock_mhz=500,1000 --energy=28nm \
    --out="$work/s4" >/dev/null &&
    awk -F, 'NR > 1 { points += 1; bad += $NF != "\r"; seen[$6] } END { for (time in seen) ++kinds; exit !(points == 12 && bad == 0 && kinds >= 6) }' \
      "$work/s4/sweep.csv"
}
expect "sweep of DRAM" pass "" which_dram
expect "an axis that does not exist" pass "" fails "names like it: core.nmem_kib" \
  "$nao" sweep relu --shape=100 --axis core.nmem_kb=1 --out="$work/s3"
no_feasible_point() {
  fails "no point of the sweep is feasible" "$nao" sweep conv2d --shape=8x8x64,64x3x3x64 --dtype=i8 --axis core.wmem_kib=2 --out="$work/s3" &&
    [[ ! -e $work/s3 ]]
}
expect "a sweep without a feasible point" pass "" no_feasible_point

# A bundle is written without nvcc as well; the shim needs a C compiler, which the c target needs too.
bundle_and_shim() {
  "$nao" compile add --shape=63x65 --dtype=f32 --target=cuda --arch=none -o "$work/bundle" >/dev/null &&
    grep -q '__global__ void' "$work/bundle/kernel.cu" &&
    grep -q '"samples"' "$work/bundle/bundle.json" &&
    "$nao" run matmul --shape=17x20,9x20 --dtype=f32 --target=cuda --json >"$work/cuda.json" &&
    [[ $(json_field "$work/cuda.json" ok) == true ]] &&
    [[ $(json_field "$work/cuda.json" executed_by) == *shim* ]]
}
expect "target cuda writes bundles and runs by the shim" pass "" bundle_and_shim

bundles_of_nests() {
  "$nao" compile polybench/gemver --size=MINI --target=cuda --arch=none --pair -o "$work/gemver" >"$work/gemver.txt" &&
    [[ $(grep -c 'bundle.json$' "$work/gemver.txt") -eq 2 ]] &&
    ! grep -q __syncthreads "$work/gemver/baseline/kernel.cu" &&
    grep -q __syncthreads "$work/gemver/optimised/kernel.cu" &&
    printf '%s' 'func f(A: f32[n], n: i32, c: f32) { for (i, 0, n) { A[i] = A[i] * c } }' >"$work/nest.nir" &&
    "$nao" compile "$work/nest.nir" --arg n=300 --arg c=1.5 --schedule=smart --target=cuda --arch=none \
      -o "$work/nest" >/dev/null &&
    grep -q '"schedule": "smart"' "$work/nest/bundle.json" && grep -q '"n": 300' "$work/nest/bundle.json" &&
    grep -q '__launch_bounds__(128)' "$work/nest/kernel.cu"
}
expect "bundles of PolyBench's kernels and of FILE.nir with values" pass "" bundles_of_nests
# The option does something for each target.
scheduled_code() {
  "$nao" compile harris --shape=400x500 --target=c -o "$work/plain" >/dev/null &&
    "$nao" compile harris --shape=400x500 --target=c --schedule=fuse -o "$work/fused" >/dev/null &&
    ! grep -q 'tile' "$work/plain/harris.c" && grep -q 'tile' "$work/fused/harris.c" &&
    "$nao" compile polybench/gemm --target=cpu --schedule=auto -o "$work/gemm" >/dev/null &&
    grep -q 'parallel (c0' "$work/gemm/gemm.nir"
}
expect "code of a pipeline and of a kernel in an order of their own" pass "" scheduled_code
expect "a bundle without a value" pass "" fails "parameter 'c: f32' has no value: expected --arg c=NUMBER" \
  "$nao" compile "$work/nest.nir" --arg n=300 --target=cuda -o "$work/none"
expect "a bundle of an unknown schedule" pass "" fails "expected none, original, .*auto, .*, found 'best'" \
  "$nao" compile "$work/nest.nir" --arg n=3 --arg c=1 --schedule=best --target=cuda -o "$work/none"
expect "a bundle of an unknown kernel" pass "" fails "no kernel .*'gemmm'|'gemmm'.*there are" \
  "$nao" compile polybench/gemmm --target=cuda -o "$work/none"
expect "a bundle of an unknown data set" pass "" fails "no data set 'BIG': expected MINI, SMALL" \
  "$nao" compile polybench/gemm --size=BIG --target=cuda -o "$work/none"
expect "a kernel of PolyBench for the card" pass "" fails "polybench/gemm: .*expected --target=cpu, c, cuda or interp" \
  "$nao" compile polybench/gemm -o "$work/none"
expect "an order of loops for the card" pass "" fails "nest.nir: --schedule: expected auto or none for the card, found 'smart'" \
  "$nao" compile "$work/nest.nir" --schedule=smart --arg n=3 --arg c=1 -o "$work/none"
expect "an order of loops for passes" pass "" fails "nest.nir: --schedule is not for a function on cpu" \
  "$nao" opt "$work/nest.nir" --target=cpu --schedule=auto
expect "an unknown order for C" pass "" fails "harris: .*expected none, original, .*auto, .*, found 'best'" \
  "$nao" compile harris --shape=40x50 --target=c --schedule=best -o "$work/none"
expect "no bundle is left by errors" pass "" test ! -e "$work/none"

cat >"$work/scale.nir" <<'NIR'
func scale(A: f64[n] in, B: f64[n], n: i32, factor: f64) { for (i, 0, n) { B[i] = B[i] + A[i] * factor } }
func clear(A: f64[n] out, n: i32) { for (i, 0, n) { A[i] = 0.0 } }
NIR
run_file() {
  "$nao" run "$work/scale.nir" --function=scale --arg n=100 --arg factor=0.5 --json >"$work/scale.json" &&
    [[ $(json_field "$work/scale.json" ok) == true ]] &&
    [[ $(json_field "$work/scale.json" compared_with) == '"the interpreter"' ]] &&
    [[ $(json_field "$work/scale.json" target) == '"cpu"' ]] &&
    [[ $(head -c 1 "$work/scale.json") == '{' ]]
}
expect "run FILE.nir runs a function and compares it" pass "" run_file
expect "run FILE.nir without a function" pass "" fails "scale.nir: expected --function with one of scale, clear" \
  "$nao" run "$work/scale.nir" --arg n=5
expect "run FILE.nir without a value" pass "" \
  fails "scale.nir: function 'scale': parameter 'factor: f64' has no value: expected --arg factor=NUMBER" \
  "$nao" run "$work/scale.nir" --function=scale --arg n=5
expect "run FILE.nir with an operator's option" pass "" fails "scale.nir: --shape is not for a function" \
  "$nao" run "$work/scale.nir" --function=clear --shape=4
pipeline_on_a_picture() {
  "$nao" run unsharp --shape=19x23 --schedule=none --out="$work/noise.png" >/dev/null &&
    "$nao" run harris --image="$work/noise.png" --schedule=fuse --out="$work/corners.png" --json >"$work/harris.json" &&
    [[ $(json_field "$work/harris.json" ok) == true ]] &&
    [[ $(json_field "$work/harris.json" compared_with) == '"plain loops"' ]] &&
    [[ $(head -c 4 "$work/corners.png") == $'\x89PNG' ]]
}
expect "run a pipeline on a picture" pass "" pipeline_on_a_picture
printf 'P5 2 2 255' >"$work/bad.png"
expect "run a pipeline on something else" pass "" fails "bad.png: expected a PNG file" \
  "$nao" run unsharp --image="$work/bad.png" --out="$work/bad_out.png"
expect "a bad picture leaves no output" pass "" test ! -e "$work/bad_out.png"
expect "run a pipeline on too few pixels" pass "" fails "camera_pipe: expected at least 49x65 pixels, found 48x65" \
  "$nao" run camera_pipe --shape=48x65
expect "compile a pipeline for the card" pass "" fails "harris: pipelines are not for the card" \
  "$nao" compile harris --shape=64x64 -o "$work/harris"
expect "run OP with a pipeline's option" pass "" fails "run add: --image is not for an operator" \
  "$nao" run add --shape=3 --image="$work/noise.png"
expect "run OP with a function's option" pass "" fails "run add: --arg is not for an operator" \
  "$nao" run add --shape=4 --arg n=5
cat >"$work/sums.nir" <<'NIR'
func sums(A: f32[n, m] in, S: f32[n] out, n: i32, m: i32) {
  for (i, 0, n) { S[i] = 0.0 for (j, 0, m) { S[i] = S[i] + A[i, j] * 2.0 } }
}
NIR
nest_on_card() {
  "$nao" run "$work/sums.nir" --arg n=33 --arg m=65 --target=diannao --set core.nmem_kib=64 --json >"$work/sums.json" &&
    [[ $(json_field "$work/sums.json" ok) == true && $(json_field "$work/sums.json" cycles) -lt 3000 ]] &&
    grep -q '"S1 -> S"' "$work/sums.json"
}
expect "run FILE.nir on the card" pass "" nest_on_card
# Instructions by default where all bounds are known, loops of the scalar unit where they are not; the program knows the
# values of its source's scalars.
nest_compiled() {
  "$nao" compile "$work/sums.nir" --arg n=33 --arg m=65 --name=sums -o "$work/nests" 2>"$work/notes" >/dev/null &&
    grep -q '^sums: S1 -> S$' "$work/notes" && grep -q 'reduce_sum.f32' "$work/nests/sums.nasm" &&
    grep -q '"m": "65"' "$work/nests/sums.json" &&
    "$nao" compare "$work/nests/sums.json" --reference --source "$work/sums.nir" --max-error=1e-4 >/dev/null &&
    "$nao" opt "$work/sums.nir" --schedule=auto --arg n=33 --arg m=65 2>/dev/null | grep -q 'reduce_sum.f32(' &&
    ! "$nao" opt "$work/sums.nir" | grep -q 'reduce_sum' &&
    "$nao" compile "$work/sums.nir" -o "$work/nests" 2>&1 >/dev/null | grep -q 'no bounds without --arg n=' &&
    "$nao" compile "$work/sums.nir" --schedule=none --name=sums -o "$work/scalar_nests" --quiet &&
    ! grep -q 'reduce_sum' "$work/scalar_nests/sums.nasm"
}
expect "compile and opt make instructions of FILE.nir" pass "" nest_compiled
expect "a nest with one value of two" pass "" \
  fails "sums.nir: function 'sums': parameter 'm: i32' has no value: expected --arg m=NUMBER" \
  "$nao" compile "$work/sums.nir" --arg n=33 -o "$work/none"
expect "a nest larger than GMEM" pass "" \
  fails "sums.nir: function 'sums': its tensors take [0-9]* MiB: expected at most gmem.mib of mlu270, [0-9]*$" \
  "$nao" compile "$work/sums.nir" --arg n=100000 --arg m=100000 -o "$work/none"

opt_checked() {
  "$nao" compile add --shape=100 --target=interp -o "$work/interp" >/dev/null &&
    "$nao" opt "$work/interp/add.nir" --check --stats --print-after-all -o "$work/opt.nir" \
      2>"$work/steps" &&
    grep -q '^// after sync' "$work/steps" && "$nao" opt "$work/opt.nir" --passes=simplify >/dev/null
}
expect "opt --check runs the pipeline and prints each step" pass "" opt_checked

# The scalar n decides whether the function runs: --check draws some that it runs on, --arg gives one.
opt_scalars() {
  printf '%s' 'func f(A: i32[4], n: i32) { A[0] = 7 / n }' >"$work/scalar.nir"
  "$nao" opt "$work/scalar.nir" --passes=simplify --check -o "$work/scalar.out" &&
    "$nao" opt "$work/scalar.nir" --passes=simplify --check --arg n=-5 -o "$work/scalar.out" &&
    fails 'stops on all arguments tried.*with n = 0: .*division by zero' \
      "$nao" opt "$work/scalar.nir" --passes=simplify --check --arg n=0 &&
    fails "no function has a scalar parameter 'm'" "$nao" opt "$work/scalar.nir" --check --arg m=1 &&
    fails 'expected an integer of i32' "$nao" opt "$work/scalar.nir" --check --arg n=3000000000
}
expect "opt --check draws scalars, or takes them from --arg" pass "" opt_scalars

poly_calculates() {
  [[ $("$nao" poly --eval 'card { S(i, j) : 0 <= j <= i < n }') == \
    '[n] -> { (1/2 * n + 1/2 * n^2) : n > 0 }' ]] &&
    printf '%s\n' 'A := { (i) : 0 <= i < n };' 'lexmax A; value(card A, n = 7)' >"$work/a.poly" &&
    "$nao" poly "$work/a.poly" -o "$work/a.out" && [[ $(tail -n 1 "$work/a.out") == 7 ]] &&
    fails "expression:1:10: expected operands of '\*' in isomorphic spaces, found .* and " \
      "$nao" poly --eval '{ S(i) } * { T(i) }' &&
    printf 'A := { (i) };\nA +' >"$work/bad.poly" &&
    fails 'bad.poly:2:4: expected .*, found the end of the text' \
      "$nao" poly "$work/bad.poly" -o "$work/bad.out" &&
    [[ ! -e $work/bad.out ]] &&
    fails 'expected a file or --eval EXPR, found neither' "$nao" poly
}
expect "poly computes with sets and refuses bad ones" pass "" poly_calculates

poly_orders() {
  printf '%s' 'func f(A: f32[n, n], n: i32) { for (i, 0, n) { for (j, 0, n) { A[i, j] = 1.0 } } }' >"$work/order.nir"
  printf '%s' '{ S0[i, j] -> [j, i] }' >"$work/order.txt"
  "$nao" poly "$work/order.nir" --show=report,loops --strategy=smart --tile=8x4 >"$work/order.out" &&
    grep -q 'tiles of 8 x 4' "$work/order.out" && grep -q 'parallel (c0' "$work/order.out" &&
    [[ $("$nao" poly "$work/order.nir" --show=schedule --tile=0 --schedule="$work/order.txt") == *'[j, i]'* ]] &&
    [[ $("$nao" opt "$work/order.nir" --passes='schedule(strategy=original;tile=0)') == *'parallel (c0'* ]] &&
    fails 'expected a strategy of none, original, .*, found .fast' \
      "$nao" poly "$work/order.nir" --show=tree --strategy=fast &&
    fails 'expected --strategy or --schedule, found both' \
      "$nao" poly "$work/order.nir" --show=tree --strategy=min --schedule="$work/order.txt"
}
expect "poly shows the order of a strategy" pass "" poly_orders

trees_of_a_pipeline() {
  "$nao" poly unsharp --shape=40x50 --show=trees --strategy=fuse -o "$work/trees.html" &&
    grep -q '>extension, what each tile adds: ' "$work/trees.html" && grep -q '<h4>result, ' "$work/trees.html" &&
    fails 'shape is not for --show=' "$nao" poly "$work/order.nir" --shape=40x50 &&
    "$nao" opt unsharp --shape=40x50 --target=cpu --passes='schedule(strategy=fuse)' --stats -o "$work/fused.nir" 2>"$work/fused.txt" &&
    grep -q '4 stages in 1 group: .* times the instances' "$work/fused.txt"
}
expect "poly and opt show what fuse does to a pipeline" pass "" trees_of_a_pipeline

tune_a_pipeline() {
  "$nao" tune unsharp --shape=60x70 --threads=1 --top 2 --save "$work/unsharp.tile" --json >"$work/tune.json" &&
    [[ $(grep -c '"time_ms"' "$work/tune.json") -eq 3 ]] && grep -qE '^fuse(:0x[0-9]+x[0-9]+)?$' "$work/unsharp.tile" &&
    "$nao" run unsharp --shape=60x70 --schedule="$work/unsharp.tile" | grep -q 'values agree' &&
    fails 'tune unsharp: --dtype is not for a pipeline' "$nao" tune unsharp --dtype=f16 &&
    fails 'tune relu: --threads is not for an operator' "$nao" tune relu --shape=9 --threads=2
}
expect "tune finds a pipeline's tile, which run takes" pass "" tune_a_pipeline

# Each block "```show" of the document is a command and what it prints.
polyhedral_document() {
  local line inside='' command='' text='' output shown=0
  while IFS= read -r line; do
    if [[ $line == '```show' ]]; then
      inside=1 command='' text=''
    elif [[ -z $inside ]]; then
      continue
    elif [[ $line == '```' ]]; then
      output=$(bash -c "$nao ${command#\$ ./nao }" 2>&1 </dev/null)
      [[ $output == "${text%$'\n'}" ]] || {
        printf '%s\nprints:\n%s\n' "$command" "$output"
        return 1
      }
      inside='' shown=$((shown + 1))
    elif [[ -z $command ]]; then
      command=$line
    else
      text+=$line$'\n'
    fi
  done <docs/polyhedral.md
  [[ $shown -ge 10 ]] &&
    "$nao" poly docs/smooth.nir --show=picture --tile=0 --arg n=9 --arg steps=5 | cmp - docs/smooth.svg &&
    "$nao" poly docs/smooth.nir --show=picture --tile=4 --arg n=13 --arg steps=8 | cmp - docs/smooth_tiles.svg &&
    "$nao" poly docs/smooth.nir --show=picture --strategy=auto --arg n=13 --arg steps=8 | grep "after, by auto" >/dev/null
}
expect "docs/polyhedral.md shows what poly prints" pass "" polyhedral_document

# The cycles that README shows of the demo, and docs/operator.md of docs/add.nir.
documents_cycles() {
  local shown
  shown=$(sed -n '/^    add of f16 255x27x27/,/^ *interpreted/s/^    \(.* for the card .*\)/\1/p' README.md)
  [[ $(wc -l <<<"$shown") -eq 2 ]] && "$nao" demo -o "$work/demo" >"$work/demo.txt" || return 1
  while IFS= read -r line; do
    grep -qxF -e "$line" "$work/demo.txt" || { echo "README.md: the demo does not print '$line'"; return 1; }
  done <<<"$shown"
  shown=$(sed -n 's/^    \.\/nao sim out\/add.bin .* \([0-9]*\) cycles; .*/\1/p' docs/operator.md)
  "$nao" compile docs/add.nir -o "$work/add" >/dev/null &&
    "$nao" sim "$work/add/add.bin" | grep -qE "^cycles +$shown\$" ||
    { echo "docs/operator.md: add.bin does not take $shown cycles"; return 1; }
}
expect "README.md and docs/operator.md show the cycles of today" pass "" documents_cycles

opt_operator() {
  [[ $("$nao" opt add --shape=100 --stop-after=0) == 'func add'* ]] &&
    [[ $("$nao" opt add --shape=100 --check --stats 2>&1) == *'  memcpy.f16.nmem.gmem.async'* ]]
}
expect "opt shows an operator as lowered and as compiled" pass "" opt_operator

opt_page() {
  "$nao" opt add --shape=100 --check --html="$work/steps.html" >/dev/null &&
    grep -q '<span class="name">tensorize</span>' "$work/steps.html" &&
    grep -q 'class="good">same results' "$work/steps.html" && grep -q '<span class="removed">' "$work/steps.html"
}
expect "opt --html shows each pass" pass "" opt_page

# Up to the pass that failed, whose message stands on the page as it does on standard error.
opt_page_of_a_failure() {
  printf '%s' 'func f(A: f16[1000000] in, B: f16[1000000] out) { allocate X: f16[1000000] @nmem
    for (i, 0, 1000000) { X[i] = A[i] } for (i, 0, 1000000) { B[i] = X[i] } }' >"$work/large.nir"
  fails "nmem needs 2000000 bytes" "$nao" opt "$work/large.nir" --html="$work/failed.html" &&
    grep -q 'class="bad">[^<]*nmem needs 2000000 bytes' "$work/failed.html" &&
    grep -q '<span class="name">tensorize</span>' "$work/failed.html"
}
expect "opt --html shows what came before a pass that fails" pass "" opt_page_of_a_failure

opt_explains() {
  printf '%s' 'func f(A: f16[64]) { allocate X: f16[64] @nmem
    pragma "add" { for (i, 0, 64) { X[i] = X[i] + A[i] } } }' >"$work/explain.nir"
  "$nao" opt "$work/explain.nir" --passes=tensorize --explain -o "$work/explained.nir" 2>"$work/why" &&
    grep -q "in the program:  X\[i\] = X\[i\] + A\[i\]" "$work/why" &&
    grep -q "difference:      'A' is in gmem, not nmem" "$work/why"
}
expect "opt --explain says why a loop is no instruction" pass "" opt_explains

pictures() {
  "$nao" run add --shape=100 --trace="$work/t.json" --timeline="$work/t.svg" >/dev/null &&
    grep -q traceEvents "$work/t.json" && grep -q '<svg' "$work/t.svg"
}
expect "run writes a trace and a picture" pass "" pictures

nest_pictures() {
  printf 'func f(A: f16[300] in, B: f16[300] in, C: f16[300] out) {
    for (i, 0, 300) { C[i] = A[i] * A[i] + B[i] } }' >"$work/nest.nir"
  "$nao" run "$work/nest.nir" --target=diannao --trace="$work/n.json" --timeline="$work/n.svg" \
    --report="$work/n.html" --energy=28nm >"$work/nest.txt" &&
    grep -q traceEvents "$work/n.json" && grep -q '<svg' "$work/n.svg" &&
    grep -q '"energy_pj"' "$work/n.html" && grep -q 'leakage' "$work/nest.txt"
}
expect "run of a nest on the card writes the same" pass "" nest_pictures
# A row of the table serves a nest of anybody's.
nest_instructions() {
  "$nao" run "$work/nest.nir" --target=diannao --instructions=tests/data/fma.nir --trace="$work/n.json" \
    >"$work/nest.txt" && grep -q 'fma.f16' "$work/n.json" && grep -q 'values agree' "$work/nest.txt"
}
expect "run of a nest takes an instruction of one's own" pass "" nest_instructions
expect "pictures are of the card" fail "--timeline is of a simulated card: expected --target=diannao, found --target=cpu" \
  "$nao" run "$work/nest.nir" --timeline="$work/n.svg"
expect "energy tables have names" fail "no energy table is named 'bogus'" \
  "$nao" run "$work/nest.nir" --target=diannao --energy=bogus

bench_files() {
  "$nao" bench tensorize48 --filter=add/127x27x27 --jobs=1 --json="$work/b.json" --html="$work/b.html" \
    >"$work/b.txt" 2>"$work/b.err" && [[ ! -s $work/b.err ]] &&
    [[ $(json_field "$work/b.json" suite) == '"tensorize48"' && $(json_field "$work/b.json" ok) == true ]] &&
    grep -q '<svg' "$work/b.html" && grep -q '^tensorize48 on mlu270: [23] rows agree, 0 differ' "$work/b.txt"
}
expect "bench writes rows and a page" pass "" bench_files
# An order of one's own, as a text and as a tree that poly has printed.
own_order() {
  printf 'func f(A: f64[n, n], n: i32) { for (i, 0, n) { for (j, 0, n) { A[i, j] = A[i, j] + 1.0 } } }\n' >"$work/own.nir"
  local run=("$nao" run "$work/own.nir" --arg n=40)
  "${run[@]}" --schedule='{ S0[i, j] -> [j, i] }' | grep "values agree" >/dev/null &&
    "${run[@]}" --schedule='[n] -> { S0[i, j] -> [n - i, j] }' | grep "values agree" >/dev/null &&
    "${run[@]}" --schedule='[ S 1 ( i,j ) → ( j,i )]' | grep "values agree" >/dev/null &&
    "${run[@]}" --schedule=' [{ ( i,j ) → ( j/ 8 ) }, { ( i,j ) → ( i,j ) }]' | grep "values agree" >/dev/null &&
    "$nao" compile "$work/own.nir" --target=c --schedule='[S1(i, j) → (j, i)]' -o "$work/own" >/dev/null &&
    fails "part '.*': schedule:1:18: expected ',' or '\\)', found '\\]'" "${run[@]}" --schedule='[S1(i, j) → (j, i]' &&
    "$nao" poly "$work/own.nir" --show=tree --strategy=smart --tile=8 -o "$work/own.txt" && grep -q mark "$work/own.txt" &&
    "${run[@]}" --schedule="$work/own.txt" | grep "values agree" >/dev/null &&
    fails "no time for the instances" "${run[@]}" --schedule='{ S0[i, j] -> [i] : i > 3 }'
}
expect "run takes an order as a text and as a tree" pass "" own_order
bench_polybench() {
  "$nao" bench polybench --size=MINI --filter=trisolv --no-peers --schedule=none --json="$work/p.json" \
    --html="$work/p.html" >"$work/p.txt" 2>"$work/err" &&
    grep -q '"ok": true' "$work/p.json" && grep -q '"kernel": "trisolv"' "$work/p.json" &&
    grep -q '<svg' "$work/p.html" && grep -q '^polybench MINI' "$work/p.txt"
}
expect "bench polybench writes rows and a page" pass "" bench_polybench
bench_polybench_resume() {
  local run=("$nao" bench polybench --size=MINI --peers=none --schedule=none "--json=$work/r.json" --resume)
  "${run[@]}" --filter=trisolv >"$work/r.txt" 2>"$work/err" &&
    "${run[@]}" --filter='trisolv|atax' --html="$work/page.html" >"$work/r.txt" 2>"$work/err" &&
    [[ $(grep -c '"kernel": ' "$work/r.json") == 2 ]] && grep -q '^trisolv' "$work/r.txt" &&
    grep -q '>atax<' "$work/page.html"
}
bench_polybench_from() {
  rm -f "$work/p2.html"
  "$nao" bench polybench --from="$work/p.json" --html="$work/p2.html" >"$work/p2.txt" 2>"$work/err" &&
    cmp "$work/p.txt" "$work/p2.txt" && cmp "$work/p.html" "$work/p2.html"
}
expect "bench polybench shows a result again" pass "" bench_polybench_from
expect "bench polybench shows only results" pass "" fails "expected JSON" "$nao" bench polybench --from="$work/p.html"
expect "bench polybench goes on where it stopped" pass "" bench_polybench_resume
expect "bench polybench does not mix runs" pass "" fails "expected rows of seed '2', found '1'" \
  "$nao" bench polybench --size=MINI --no-peers --schedule=none --json="$work/r.json" --resume --seed=2
expect "bench polybench resumes a file" pass "" fails "and --json=FILE to go on with" \
  "$nao" bench polybench --resume
expect "unknown peer" pass "" fails "is named 'icc': expected gcc, clang, polly, polly-parallel" \
  "$nao" bench polybench --peers=gcc,icc
expect "peers and none" pass "" fails "is named 'none'" "$nao" bench polybench --peers=none,gcc
expect "unknown data set" pass "" fails "no data set 'BIG': expected MINI, SMALL" "$nao" bench polybench --size=BIG
expect "bench polybench has no machine" pass "" fails "bench polybench: --set is not for the suite" \
  "$nao" bench polybench --set core.nmem_kib=4
bench_fusion() {
  local run=("$nao" bench fusion --pipelines=harris,unsharp --rows=20 --cols=30 --peers=none --threads=1
    --strategies=none,smart "--json=$work/f.json" "--html=$work/f.html")
  "${run[@]}" >"$work/f.txt" 2>"$work/err" &&
    grep -q '"implementation": "nao-smart"' "$work/f.json" && grep -q '"ok": true' "$work/f.json" &&
    grep -q '<svg' "$work/f.html" && grep -q '^harris 20x30' "$work/f.txt" &&
    "$nao" bench fusion --from="$work/f.json" >"$work/f2.txt" 2>"$work/err" && cmp "$work/f.txt" "$work/f2.txt"
}
expect "bench fusion writes rows and a page, and reads them back" pass "" bench_fusion
bench_dense() {
  local run=("$nao" bench dense --size=small --filter=product --peers=none --threads=1 --seconds=0.01
    "--json=$work/d.json" "--html=$work/d.html")
  "${run[@]}" >"$work/d.txt" 2>"$work/err" &&
    grep -q '"implementation": "nao-auto/1"' "$work/d.json" && grep -q '"ok": true' "$work/d.json" &&
    grep -q '<svg' "$work/d.html" && grep -q '^product/matmul/17x35,33x35/f32' "$work/d.txt" &&
    "$nao" bench dense --from="$work/d.json" >"$work/d2.txt" 2>"$work/err" && cmp "$work/d.txt" "$work/d2.txt"
}
expect "bench dense writes rows and a page, and reads them back" pass "" bench_dense
expect "unknown pipeline" pass "" fails "no pipeline is named 'blur': expected bilateral_grid, " \
  "$nao" bench fusion --pipelines=blur
expect "unknown suite" pass "" fails "no suite is named 'tensorize49'; there are: tensorize48, " \
  "$nao" bench tensorize49
expect "bad filter" pass "" fails "malformed" "$nao" bench tensorize48 --filter='add(' --json="$work/none.json"
expect "no file is left by a bad filter" pass "" test ! -e "$work/none.json"
expect "filter that nothing passes" pass "" fails "the first is 'conv/conv2d/56x56x256,128x3x3x256/compiled'" \
  "$nao" bench tensorize48 --filter=frobnicate
expect "unknown pass to leave out" pass "" fails "no pass of the card's pipeline is named 'frob'; there are: simplify" \
  "$nao" bench tensorize48 --without=frob

for what in ops passes instructions configs suites; do
  lists() { [[ -n $("$nao" list "$1") ]]; }
  expect "list $what" pass "" lists "$what"
done

expect "file of another name" pass "" fails "README.md: expected a file whose name ends in .nir, or an operator" \
  "$nao" opt README.md
expect "unknown operator" pass "" fails "no operator is named 'frobnicate'; there are: add" \
  "$nao" run frobnicate --shape=4
expect "unknown command" pass "" fails "no command is named 'frobnicate'; there are: demo, run" "$nao" frobnicate
expect "malformed shape" pass "" fails "shape '4x': expected extents like 255x27x27, found ''" \
  "$nao" run add --shape=4x
expect "negative extent" pass "" fails "found '-3'" "$nao" run add --shape=4x-3
expect "unknown type" pass "" fails "dtype 'f12': expected" "$nao" run add --shape=4 --dtype=f12
expect "type that the card lacks" pass "" fails "the card has no instruction for A.i. . B.i. of f64" \
  "$nao" run add --shape=4 --dtype=f64
expect "unknown config" pass "" fails "no config is named 'mlu1'; there are: cambricon, dadiannao, diannao, mlu270" \
  "$nao" run add --shape=4 --config=mlu1
expect "unknown parameter" pass "" fails "core.nmem_kb" "$nao" run add --shape=4 --set core.nmem_kb=1
expect "contradicting config" pass "" fails "interleave|burst" \
  "$nao" run add --shape=4 --set io_dma.burst=65536
expect "memory too small" pass "" fails "nmem needs [0-9]+ bytes and has|nmem" \
  "$nao" opt tests/data/too_large.nir

printf 'func f() {\n  A[0] = 1\n}\n' >"$work/bad.nir"
expect "malformed .nir" pass "" fails "bad.nir:2:3: no buffer is named 'A'" "$nao" opt "$work/bad.nir"
expect "compile of malformed .nir writes nothing" pass "" fails "no buffer is named" \
  "$nao" compile "$work/bad.nir" -o "$work/none"
expect "no directory is left" pass "" test ! -e "$work/none"
expect "unknown pass" pass "" fails "no pass is named 'inline'; there are: simplify" \
  "$nao" opt "$work/interp/add.nir" --passes=inline
expect "missing file" pass "" fails "can not be read" "$nao" opt "$work/missing.nir"

printf '  li r1, 5\n  frob r1\n' >"$work/bad.nasm"
expect "malformed assembly" pass "" fails "bad.nasm:2:3" "$nao" asm "$work/bad.nasm" -o "$work/bad.bin"
expect "no program is left" pass "" test ! -e "$work/bad.bin"
head -c 40 "$work/add/add.bin" >"$work/short.bin"
expect "truncated program" pass "" fails "short.bin.*(truncated|ends|byte)" "$nao" sim "$work/short.bin"
expect "disasm of a truncated program" pass "" fails "short.bin" "$nao" disasm "$work/short.bin"
expect "program without its argument" pass "" fails "tensor 'x' needs a shape: --arg x=5x7" \
  "$nao" sim tests/data/copy.nasm
expect "sim of assembly" pass "" "$nao" sim tests/data/copy.nasm --arg x=100 --arg n=100
into_a_pipe() {
  mkfifo "$work/pipe" && { cat "$work/pipe" >"$work/piped" & } &&
    "$nao" opt "$work/interp/add.nir" -o "$work/pipe" && wait && [[ -p $work/pipe ]] &&
    grep -q '^func add' "$work/piped"
}
expect "output into a pipe leaves the pipe" pass "" into_a_pipe
expect "output that can not be written" pass "" fails "can not be written" \
  "$nao" run add --shape=4 --trace=/nonexistent/t.json

finish
