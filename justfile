# The commands of this project; `just` alone lists them. CONTRIBUTING.md has the set-up, which installs just too.

python := ".venv/bin/python"

pyspark_tests := "tests/spark/engine/test_batch.py tests/spark/engine/test_stream.py tests/spark/engine/test_connect.py tests/spark/sink"

# PySpark 4.0 and 4.1 leave sockets to the garbage collector.
pyspark_warnings := "-W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning"

_list:
    @just --list --unsorted

# The tests in process and on simulated time, in less than 90 seconds on two cores
fast *arguments:
    {{python}} -m pytest -n 2 -m "not slow" {{arguments}}

# All tests
test *arguments:
    {{python}} -m pytest -n auto {{arguments}}

# Each known breakage, one at a time: the tests must notice it
mutants *arguments:
    {{python}} -m tests.mutants {{arguments}}

# The engine on Spark and the sinks with another PySpark, such as `just pyspark 4.0.5`, from an environment of its own
pyspark version *arguments:
    {{python}} -m venv build/pyspark-{{version}}
    build/pyspark-{{version}}/bin/pip install -q -e '.[test]' 'pyspark[connect]=={{version}}'
    build/pyspark-{{version}}/bin/python -m pytest {{pyspark_warnings}} {{ if arguments == "" { pyspark_tests } else { arguments } }}

# mypy and pyright, both strict
types:
    {{python}} -m mypy
    {{python}} -m pyright --project . --pythonpath {{python}}

# Lint, format and spelling
style:
    {{python}} -m ruff check .
    {{python}} -m ruff format --check .
    {{python}} -m codespell_lib

# The site, in build/site; a warning is an error
docs:
    {{python}} -m sphinx --fail-on-warning --keep-going --quiet docs build/site

# The pages that are written from the code
pages:
    {{python}} docs/build.py
    {{python}} docs/states.py

# What a tuple costs, against the same work without a framework
bench *arguments:
    {{python}} -m stormlet bench {{arguments}}

# All that must hold before a change lands, from an environment of its own making
ci:
    .ci/run
