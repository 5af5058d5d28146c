"""The parameters of a machine that the compiler reads: programs are compiled again where one of them changes.

isa/machine.cc has the same list; //rules:compiler_parameters_test compares them.
"""

COMPILER_PARAMETERS = [
    "card.clusters",
    "cluster.cores",
    "cluster.link_bytes",
    "cluster.smem_kib",
    "cluster.smem_reserved_kib",
    "cluster.store_segments",
    "core.nmem_kib",
    "core.nmem_reserved_kib",
    "core.wmem_kib",
    "dram.trefi",
    "dram.trfc",
    "gmem.cache_bytes",
    "gmem.cache_kib",
    "gmem.cache_reads",
    "gmem.channel_bytes_per_kilocycle",
    "gmem.channels",
    "gmem.dram",
    "gmem.granule",
    "gmem.interleave",
    "gmem.latency",
    "io_dma.burst",
    "io_dma.memory_core_port_bytes",
    "io_dma.port_bytes",
    "io_dma.start",
    "io_dma.strided_reads",
    "io_dma.strided_writes",
    "move_dma.port_bytes",
    "move_dma.start",
    "smem.bytes",
    "sync.drain",
    "sync.global",
    "tensor.macs_f16",
    "tensor.macs_f32",
    "tensor.macs_i16",
    "tensor.macs_i8",
    "tensor.read_bytes",
    "tensor.start",
    "tensor.write_bytes",
    "vector.bytes",
    "vector.slow",
    "vector.start",
]

# From these follow others that it reads, where a point does not give them: gmem.channel_bytes_per_kilocycle.
FOLLOWED_PARAMETERS = [
    "card.clock_mhz",
    "dram.beats_per_clock",
    "dram.bus_bits",
    "dram.clock_mhz",
]
