#!/usr/bin/env python3
"""Runs an image pipeline in Halide: the algorithms of kernels/pipelines, with Halide's schedules.

  halide_pipelines.py --pipeline=harris --rows=6400 --cols=6400 --schedule=hand --threads=2 --input=image.raw \\
      --output=out.raw --json

Inputs and output are raw files: little endian, row by row, in the layout of the function's parameters.
Needs the package `halide` (pip install halide==21.0.0) and numpy.
"""

import argparse
import importlib
import importlib.metadata
import json
import os
import signal
import statistics
import sys
import time

PIPELINES = ("unsharp", "harris", "bilateral_grid", "camera_pipe", "multiscale_interp", "local_laplacian")
SCHEDULES = {"hand": None, "mullapudi": "Mullapudi2016", "adams": "Adams2019", "root": None}


def parse_arguments():
    parser = argparse.ArgumentParser(description="Runs an image pipeline in Halide.")
    parser.add_argument("--pipeline", choices=PIPELINES)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--cols", type=int)
    parser.add_argument("--schedule", choices=list(SCHEDULES), default="hand")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--input", action="append", default=[], help="raw file, once per input; without: random")
    parser.add_argument("--output", help="raw file to write")
    parser.add_argument("--seconds", type=float, default=0.5, help="runs go on for so long, five at least")
    parser.add_argument("--tune", action="append", default=[], metavar="NAME=NUMBER",
                        help="another size of the hand schedule")
    parser.add_argument("--limit", type=int, default=0, help="seconds after which the program ends itself; 0: never")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--probe", action="store_true", help="only say what Halide this is, for which machine")
    return parser.parse_args()


def plugin_path(hl, name):
    folder = os.path.join(os.path.dirname(hl.__file__), "lib64")
    return os.path.join(folder, f"libautoschedule_{name.lower()}.so")


def schedule(hl, pipeline, arguments, target):
    # All sizes are known when the pipeline is compiled.
    for (param, shape), mins in zip(pipeline.inputs, pipeline.mins()[1]):
        for dimension, (low, extent) in enumerate(zip(mins, reversed(shape))):
            param.dim(dimension).set_bounds(low, extent)
    if arguments.schedule == "hand":
        sizes = dict(part.split("=", 1) for part in arguments.tune)
        pipeline.hand(target, **{name: int(value) for name, value in sizes.items()})
        return
    if arguments.schedule == "root":
        for func in pipeline.stages:
            func.compute_root()
        for func in pipeline.stages + [pipeline.output]:
            if func.args():
                func.parallel(func.args()[-1])
        return
    # The estimates of sizes are the sizes themselves.
    output_min, input_mins = pipeline.mins()
    for (param, shape), mins in zip(pipeline.inputs, input_mins):
        param.set_estimates(list(zip(mins, reversed(shape))))
    pipeline.output.set_estimates(list(zip(output_min, reversed(pipeline.shape))))
    name = SCHEDULES[arguments.schedule]
    hl.load_plugin(plugin_path(hl, name))
    parameters = {"parallelism": str(arguments.threads)}
    hl.Pipeline(pipeline.output).apply_autoscheduler(target, hl.AutoschedulerParams(name, parameters))


def main():
    arguments = parse_arguments()
    if arguments.limit > 0:
        signal.alarm(arguments.limit)  # ends the process, in the middle of Halide's compiler too
    # Halide reads it when it starts its threads.
    os.environ["HL_NUM_THREADS"] = str(arguments.threads)
    import halide as hl
    import numpy as np

    target = hl.get_host_target()
    if arguments.probe:
        print(json.dumps({"version": importlib.metadata.version("halide"), "target": str(target)}))
        return
    module = importlib.import_module(f"halide_stages.{arguments.pipeline}")
    pipeline = module.make(arguments.rows, arguments.cols)

    # The first compilation starts Halide's compiler and compiles its runtime: not this pipeline's time.
    first = hl.Func("first")
    first[hl.Var("x")] = hl.f32(0)
    first.compile_jit(target)
    start = time.perf_counter()
    schedule(hl, pipeline, arguments, target)
    whole = hl.Pipeline(pipeline.output)
    whole.compile_jit(target)
    compile_ms = 1e3 * (time.perf_counter() - start)

    if arguments.input and len(arguments.input) != len(pipeline.inputs):
        sys.exit(f"--input: expected {len(pipeline.inputs)} files, found {len(arguments.input)}")
    output_min, input_mins = pipeline.mins()
    kept = []  # Halide's buffers do not own numpy's memory
    for place, (param, shape) in enumerate(pipeline.inputs):
        dtype = pipeline.numpy_type(param.type())
        if arguments.input:
            data = np.fromfile(arguments.input[place], dtype=dtype)
            if data.size != np.prod(shape):
                sys.exit(f"{arguments.input[place]}: expected {np.prod(shape)} elements, found {data.size}")
            data = data.reshape(shape)
        else:
            data = pipeline.random_input(place, dtype)
        buffer = hl.Buffer(data)
        buffer.set_min(input_mins[place])
        param.set(buffer)
        kept.append((data, buffer))
    out = np.zeros(pipeline.shape, dtype=pipeline.numpy_type(pipeline.output.type()))
    result = hl.Buffer(out)
    result.set_min(output_min)

    times = []
    whole.realize(result, target)  # warms up
    begin = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < arguments.seconds:
        start = time.perf_counter()
        whole.realize(result, target)
        times.append(1e3 * (time.perf_counter() - start))
    if arguments.output:
        out.tofile(arguments.output)
    report = {
        "pipeline": arguments.pipeline, "schedule": arguments.schedule, "threads": arguments.threads,
        "time_ms": statistics.median(times), "least_ms": min(times), "runs": len(times), "compile_ms": compile_ms,
    }
    if arguments.json:
        print(json.dumps(report))
    else:
        print(", ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}"
                        for key, value in report.items()))


if __name__ == "__main__":
    main()
