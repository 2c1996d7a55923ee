"""What runs on the executors: each record batch becomes one row, so that Spark's iterator moves batches.

Cloudpickle sends a function by value if no import finds it, as it is with functions defined within others:
no executor needs stormlet. So nothing within :func:`packer`'s function may use this module's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import RecordBatch

PACKED = "partition int, first_row bigint, rows bigint, batch binary"
"""The schema of what the packer makes: where the batch comes from, and the batch as an Arrow stream."""


ALL = -1
"""Every row of a partition, however many there are."""


def packer(done: Mapping[int, int]) -> Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]:
    """A function for ``mapInArrow``. ``done`` says of partitions how many of their first rows to leave out, or
    :data:`ALL`."""
    done, every = dict(done), ALL

    def pack(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        partition: int = TaskContext.get().partitionId()  # type: ignore[union-attr]  # a task runs this
        skipped, first_row = done.get(partition, 0), 0
        for batch in batches if skipped != every else ():
            left_out = min(max(skipped - first_row, 0), batch.num_rows)
            first_row += batch.num_rows
            if left_out == batch.num_rows:
                continue
            rest = batch.slice(left_out)
            stream = pa.BufferOutputStream()
            with pa.ipc.new_stream(stream, rest.schema) as writer:
                writer.write_batch(rest)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([partition], pa.int32()),
                    pa.array([first_row - rest.num_rows], pa.int64()),
                    pa.array([rest.num_rows], pa.int64()),
                    pa.array([stream.getvalue().to_pybytes()], pa.binary()),
                ],
                names=["partition", "first_row", "rows", "batch"],
            )

    return pack


def unpacked(packed: bytes) -> RecordBatch:
    """The batch that was packed."""
    import pyarrow as pa

    return pa.ipc.open_stream(packed).read_next_batch()
