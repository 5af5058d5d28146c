"""Targets as rules see them; rules/targets_test.sh compares their names and files with `nao list targets`."""

# name: what `nao compile` writes beside NAME.nir; whether programs are for a machine (--config, --set) and come with a
# NAME.json; whether they are a bundle, a folder of files.
TARGETS = {
    "diannao": struct(suffixes = [".bin", ".nasm", ".json"], is_card = True, is_bundle = False),
    "cpu": struct(suffixes = [".ll", ".s", ".o"], is_card = False, is_bundle = False),
    "c": struct(suffixes = [".c"], is_card = False, is_bundle = False),
    "cuda": struct(suffixes = [], is_card = False, is_bundle = True),
}
