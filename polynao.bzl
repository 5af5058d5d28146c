"""Experiments as Bazel targets: docs/rules.md has each rule with examples, examples/ the same as targets."""

load("//rules:comparison.bzl", _nao_comparison_test = "nao_comparison_test")
load("//rules:program.bzl", _nao_program = "nao_program")
load("//rules:simulation.bzl", _nao_simulation = "nao_simulation")
load("//rules:sweep.bzl", _nao_sweep = "nao_sweep")

nao_comparison_test = _nao_comparison_test
nao_program = _nao_program
nao_simulation = _nao_simulation
nao_sweep = _nao_sweep
