"""What is made of Spark's errors."""

from __future__ import annotations

import pytest

from stormlet.spark.failures import is_loss, is_server_gone, said_of_task, summary, way_out

TOO_LARGE = (
    "Job aborted due to stage failure: Total size of serialized results of 1 tasks (1033.0 KiB) is bigger than "
    "spark.driver.maxResultSize (1024.0 KiB)."
)


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (RuntimeError("Lost task 0.0: TaskResultLost (result lost from block manager)"), True),
        (RuntimeError("ExecutorLostFailure (executor 1 exited)"), True),
        (RuntimeError("Python worker exited unexpectedly (crashed)"), True),
        (EOFError(), True),
        (RuntimeError("[DIVIDE_BY_ZERO] Division by zero."), False),
        (RuntimeError(TOO_LARGE), False),
        (RuntimeError(f"{TOO_LARGE} TaskResultLost"), False),
    ],
)
def test_what_may_come_whole_another_time(error: BaseException, lost: bool) -> None:
    """A lost task or result is read again; an error of the query and a result that is too large are not."""
    assert is_loss(error) is lost


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (TOO_LARGE, "use more partitions, such as df.repartition(n)"),
        ("ModuleNotFoundError: No module named 'pyarrow'", "let PYSPARK_PYTHON name one that has it"),
        ("java.lang.OutOfMemoryError: Java heap space", "give it more by spark.driver.memory"),
        ("Job 9 cancelled because SparkContext was shut down", "may have had too little memory"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12", "let PYSPARK_PYTHON name"),
    ],
)
def test_the_way_out(text: str, advice: str) -> None:
    """Where the way out is known, it is said."""
    found = way_out(RuntimeError(text))
    assert found is not None
    assert advice in found


def test_a_jvm_that_is_gone() -> None:
    """It is said to be, and not only that a connection was refused. A service that refuses one to a task is none."""
    assert "session has ended" in (way_out(ConnectionRefusedError(111, "Connection refused")) or "")
    assert way_out(RuntimeError("FetchFailed: java.net.ConnectException: Connection refused")) is None


def test_no_way_out() -> None:
    """Of an unknown error nothing is said but its own words, without the stack trace."""
    error = RuntimeError("it broke\n\tat org.apache")
    assert way_out(error) is None
    assert summary(error) == "RuntimeError: it broke"
    assert summary(EOFError()) == "EOFError"


def test_what_another_thread_failed_with() -> None:
    """Where Spark says only that it waited in vain, its last cause is told."""
    error = RuntimeError(
        "An error occurred while calling o1.getResult.\n: org.apache.spark.SparkException: Exception thrown in "
        "awaitResult: \n\tat org.apache\nCaused by: org.apache.spark.SparkException: Job aborted\n\tat org.apache\n"
        "Caused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n\tat org.apache"
    )
    assert summary(error) == "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero."
    assert summary(RuntimeError("Exception thrown in awaitResult:")) == "Exception thrown in awaitResult:"


def test_what_a_write_failed_with() -> None:
    """Where Spark says only that a task could not write, its last cause is told: a full disk, no right to write."""
    said = (
        "An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task "
        "failed while writing rows to file:/out. SQLSTATE: 58030\n\tat org.apache"
    )
    causes = "\nCaused by: java.io.UncheckedIOException\n\tat org\nCaused by: java.io.IOException: disk full\n\tat java"
    assert summary(RuntimeError(said + causes)) == "java.io.IOException: disk full"
    assert summary(RuntimeError(said)).startswith(
        "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed"
    )


@pytest.mark.parametrize(
    "after", ["", "\n SQLSTATE: 38000", "\n SQLSTATE: 38000\n\nJVM stacktrace:\norg.apache.spark.X\n"]
)
def test_what_a_worker_has_raised_is_shown(after: str) -> None:
    """Not what Spark Connect says behind the traceback."""
    said = "An exception was thrown from the Python worker. Please see below.\nTraceback:\nOSError: full"
    assert summary(RuntimeError(said + after)) == "OSError: full"


NO_ANSWER = (
    "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n"
    '\tdetails = "failed to connect to all addresses; last error: UNKNOWN: Connection refused"\n'
    '\tdebug_error_string = "UNAVAILABLE:failed to connect"\n>'
)


def test_a_server_of_spark_connect_that_is_gone() -> None:
    """Its client says so in the third line."""
    error = RuntimeError(NO_ANSWER)
    assert summary(error) == (
        "the server of Spark Connect does not answer (failed to connect to all addresses; last error: UNKNOWN: "
        "Connection refused); is it running?"
    )
    others = (RuntimeError("StatusCode.INTERNAL"), RuntimeError(f"a bolt has raised:\n{NO_ANSWER}"))
    assert [is_server_gone(each) for each in (error, *others)] == [True, False, False]


def test_a_worker_that_has_died() -> None:
    """It is said what may have ended it, as Spark knows no reason; an error of ours that it has raised comes first."""
    died = "Lost task 0.0 in stage 3.0: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)."
    assert said_of_task(RuntimeError(died)).startswith(
        "a Python worker of Spark's has ended without an exception"
    )
    raised = f"{died}\nstormlet.errors.SparkFailed: finish of count[0] raised OSError()"
    assert said_of_task(RuntimeError(raised)) == "finish of count[0] raised OSError()"
    assert said_of_task(RuntimeError("it broke\n\tat org.apache")) == "RuntimeError: it broke"
