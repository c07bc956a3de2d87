"""Published tables made again from released outputs, cell for cell."""

from analysis.reproductions.scrambled_bench import scrambled_bench_tables

__all__ = ["scrambled_bench_tables"]
