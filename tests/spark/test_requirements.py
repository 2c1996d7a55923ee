"""What is checked before a JVM starts; none of these tests needs one."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from stormlet.spark import SparkUnavailable, session
from stormlet.spark.session import PACKAGES, check_java, check_packages

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"

JAVA_17 = "java.base@17.0.15\njava.xml@17.0.15\njdk.incubator.vector@17.0.15"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The versions that seem to be installed."""
    versions = {"pyspark": "4.3.0", "pyarrow": "26.0.1", "pandas": "2.3.3"}

    def version(package: str) -> str:
        if package not in versions:
            raise session.PackageNotFoundError
        return versions[package]

    monkeypatch.setattr(session, "version", version)
    return versions


def make_java(home: Path, modules: str, status: int = 0) -> Path:
    """A Java that knows these modules."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\nprintf '%s\\n' '{modules}'\nexit {status}\n")
    java.chmod(0o755)
    return java


def test_the_extra_installs_what_is_checked() -> None:
    """The extra ``spark`` asks for the very versions that are checked here."""
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    extra = [Requirement(text) for text in project["optional-dependencies"]["spark"]]
    wanted = {package: Requirement(f"{package}{versions}") for package, versions in PACKAGES.items()}
    assert {each.name: each for each in extra} == wanted


@pytest.mark.parametrize("pyspark", ["4.0.0", "4.3.0", "4.9.1", "4.1.0.dev2"])
def test_packages_that_fit_pass(installed: dict[str, str], pyspark: str) -> None:
    """Every 4.x of PySpark will do, a pre-release too."""
    installed["pyspark"] = pyspark
    check_packages()


@pytest.mark.parametrize(
    ("package", "version", "said"),
    [
        ("pyspark", "3.5.6", "Spark needs pyspark>=4.0,<5, and version 3.5.6 is installed"),
        ("pyspark", "5.0.0", "Spark needs pyspark>=4.0,<5, and version 5.0.0 is installed"),
        ("pyarrow", "19.0.1", "Spark needs pyarrow>=20.0, and version 19.0.1 is installed"),
        ("pandas", "3.0.0", "Spark needs pandas>=2.2,<3, and version 3.0.0 is installed"),
        ("pandas", None, "Spark needs pandas>=2.2,<3, which is not installed"),
    ],
)
def test_a_package_that_does_not_fit_is_named(
    installed: dict[str, str], package: str, version: str | None, said: str
) -> None:
    """One sentence says what is wrong with which package, and how to put it right."""
    del installed[package]
    if version is not None:
        installed[package] = version
    with pytest.raises(SparkUnavailable) as caught:
        check_packages()
    assert str(caught.value) == f'{said}; pip install "stormlet[spark]" installs versions that work together'


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Spark's own script, JAVA_HOME is asked before the PATH."""
    make_java(tmp_path / "11", "java.base@11.0.2")
    make_java(tmp_path / "17", JAVA_17)
    monkeypatch.setenv("PATH", str(tmp_path / "11" / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "17"))
    check_java()


@pytest.mark.parametrize(
    ("modules", "status", "said"),
    [
        ("java.base@11.0.2", 0, "is Java 11"),
        ("java.base@25\njdk.incubator.vector@25", 0, "is Java 25"),
        ("", 1, "is an older Java"),
        ("java.base@21.0.1", 0, "needs Java's module jdk.incubator.vector, which"),
    ],
)
def test_a_java_that_does_not_fit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: str, status: int, said: str
) -> None:
    """A Java of another version or without the vector module is refused with its path, and the way out."""
    java = make_java(tmp_path, modules, status)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable) as caught:
        check_java()
    assert said in str(caught.value)
    assert str(java) in str(caught.value)
    assert str(caught.value).endswith("; let JAVA_HOME point to a JDK 17 or 21")


def test_a_missing_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any Java the message says what to install."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="there is no java on the PATH; install a JDK"):
        check_java()


def test_a_java_home_without_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JAVA_HOME that leads nowhere is named, as Spark would not look further."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="where there is no bin/java"):
        check_java()
