"""The contents of the wheels and source distributions, and the tools that check them."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import claude_wire
from folders import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

TOOLS = ROOT / "tools"


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def project(folder: str = ".") -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())


def test_the_group_for_building_is_what_both_build_systems_require() -> None:
    required = [*project()["build-system"]["requires"], *project("kit")["build-system"]["requires"]]
    (editables,) = set(project()["dependency-groups"]["build"]).difference(required)
    assert project()["dependency-groups"]["build"] == [*required, editables]
    assert editables.startswith("editables")


def test_no_requirement_of_development_is_an_extra_of_a_package() -> None:
    assert sorted(project("kit")["project"]["optional-dependencies"]) == ["export", "ray", "serve"]
    assert sorted(project()["project"]["optional-dependencies"]) == ["agent", "agent-sdk", "mcp", "otel"]


def test_the_version_is_the_same_in_each_place_and_has_its_date_in_the_changelog() -> None:
    crate = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
    assert claude_wire.__version__ == crate
    kit = project("kit")["project"]
    assert kit["version"] == crate
    assert f"claude-wire=={crate}" in kit["dependencies"]
    for lock in ("Cargo.lock", "fuzz/Cargo.lock"):
        packages = tomllib.loads((ROOT / lock).read_text())["package"]
        assert [each["version"] for each in packages if each["name"] == "claude-wire"] == [crate]
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert headings.index(released[0]) == len(headings) - len(released)
    assert re.fullmatch(re.escape(crate) + r" \(\d{4}-\d\d-\d\d\)", released[0])
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading) for heading in released)


def test_the_packages_have_the_same_licence() -> None:
    assert (ROOT / "kit/LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memcheck is for Linux")
def test_memcheck_without_its_toolchain_says_so_and_fails(tmp_path: Path) -> None:
    command = [sys.executable, str(TOOLS / "memcheck.py")]
    run = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "nothing was checked" in run.stderr
    assert "nightly toolchain" in run.stderr


def test_a_crate_that_has_changed_makes_the_licences_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    licenses = tool("licenses")
    text = licenses.FILE.read_text()
    assert licenses.check() == 0
    monkeypatch.setattr(licenses, "FILE", tmp_path / "THIRD_PARTY_LICENSES")
    licenses.FILE.write_text(text.replace("\n- memchr ", "\n- memchr2 "))
    assert licenses.check() == 1
    said = capsys.readouterr().err
    assert "lacks memchr " in said
    assert "has memchr2 " in said
    assert "make licenses" in said


def test_a_vendored_file_that_was_changed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vendored = tool("vendored")
    assert vendored.main([]) == 0
    shutil.copytree(vendored.VENDOR, tmp_path / "vendor")
    shutil.copy(vendored.LICENSES, tmp_path / "licenses")
    monkeypatch.setattr(vendored, "VENDOR", tmp_path / "vendor")
    monkeypatch.setattr(vendored, "LICENSES", tmp_path / "licenses")
    (tmp_path / "vendor" / "purify.js").write_text("changed")
    (tmp_path / "vendor" / "highlight.js").unlink()
    (tmp_path / "vendor" / "more.js").write_text("")
    (tmp_path / "licenses").write_text(vendored.LICENSES.read_text().replace("Used by: mdurl ", "Used by: mdurl2 "))
    assert vendored.main([]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[:3] == ["highlight.js is missing", "more.js is not in packages.json", "purify.js was changed"]
    assert [line.split()[-4:-1] for line in said[3:4]] == [["kit", "lacks", "mdurl"]]
    assert "mdurl2" in said[4]


def test_each_crate_that_is_listed_has_its_licence_text() -> None:
    licenses = tool("licenses")
    text = licenses.FILE.read_text()
    for crate in licenses.listed():
        (section,) = [part for part in text.split("=" * 80) if any(crate in line for line in used_by(part))]
        assert "Permission is hereby granted" in section or "Apache License" in section, crate


def used_by(section: str) -> list[str]:
    return [line for line in section.splitlines() if line.startswith("Used by:")]


def test_the_build_renames_each_folder_with_sources_and_keeps_the_callers_flags(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The build backend sets the flags and the target folder for cargo. A stub replaces the hook of maturin."""
    pytest.importorskip("maturin")
    backend = tool("build_backend")
    seen: dict[str, str] = {}

    def hook(*arguments: object) -> str:
        seen.update(os.environ)
        return "a.whl"

    monkeypatch.setattr(backend.maturin, "build_wheel", hook)
    monkeypatch.delenv("CARGO_ENCODED_RUSTFLAGS", raising=False)
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    monkeypatch.setenv("RUSTFLAGS", "-C  opt-level=1")
    assert backend.build_wheel(str(tmp_path)) == "a.whl"
    flags = seen["CARGO_ENCODED_RUSTFLAGS"].split("\x1f")
    assert flags[:2] == ["-C", "opt-level=1"]
    renamed = dict(flag.removeprefix("--remap-path-prefix=").rsplit("=", 1) for flag in flags[2:])
    assert renamed[str(TOOLS.parent)].startswith("claude-wire-")
    assert "crates" in renamed.values()
    assert any(name.startswith("/rustc/") for name in renamed.values())
    assert "CARGO_ENCODED_RUSTFLAGS" not in os.environ
    assert "CARGO_TARGET_DIR" not in os.environ


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="auditwheel is for Linux")
def test_a_wheel_that_should_not_be_published_is_refused(tmp_path: Path) -> None:
    check = tool("wheel_check")
    (library,) = (ROOT / "python/claude_wire/native/_native").glob("*.so")
    place = "claude_wire/native/_native/lib_native.so"
    licences = [f"claude_wire-1.dist-info/licenses/{name}" for name in ("LICENSE", "THIRD_PARTY_LICENSES")]
    record = "claude_wire-1.dist-info/RECORD"
    data = library.read_bytes()
    for folder in (str(ROOT), str(Path.home())):  # an editable build keeps paths of this machine; remove them
        data = data.replace(f"{folder}/".encode(), b"-" * (len(folder) + 1))
    content = {place: data, **dict.fromkeys([*licences, *check.package_files("claude_wire")], b"")}
    content[record] = "".join(f"{name},,\n" for name in [*content, record]).encode()
    machine = platform.machine()
    good = tmp_path / f"claude_wire-1-py3-none-manylinux_2_39_{machine}.whl"
    write(good, content)
    assert check.faults(good) == []
    older = good.with_name(f"claude_wire-1-py3-none-manylinux_2_5_{machine}.whl")
    older.write_bytes(good.read_bytes())
    (fault,) = check.faults(older)
    assert "the platform tag is wrong" in fault
    with_musl = good.with_name(f"claude_wire-1-py3-none-musllinux_1_2_{machine}.whl")
    with_musl.write_bytes(good.read_bytes())
    assert f"{place} needs libc.so.6" in check.faults(with_musl)
    bad = tmp_path / "claude_wire-1-cp311-cp311-linux_x86_64.whl"
    write(bad, {place: f"{ROOT}/rust/src".encode() + os.urandom(check.MAX_BYTES)})
    said = "\n".join(check.faults(bad))
    module = "no claude_wire/codec/decoder.py"
    for part in (
        "the tag",
        "bytes; wanted",
        "no LICENSE",
        "no THIRD_PARTY",
        module,
        f"names {ROOT}",
        "is not a library",
    ):
        assert part in said


def test_a_wheel_of_the_kit_has_its_page_and_no_native_library(tmp_path: Path) -> None:
    check = tool("wheel_check")
    licences = [f"claude_wire_kit-1.dist-info/licenses/{name}" for name in ("LICENSE", "THIRD_PARTY_LICENSES")]
    content = dict.fromkeys([*licences, *check.package_files("claude_wire_kit")], b"")
    good = tmp_path / "claude_wire_kit-1-py3-none-any.whl"
    write(good, content)
    assert check.faults(good) == []
    bad = tmp_path / "claude_wire_kit-1-py3-none-linux_x86_64.whl"
    write(bad, {licences[0]: b"", "claude_wire_kit/lib_native.so": b""})
    said = "\n".join(check.faults(bad))
    for part in ("the tag", "no THIRD_PARTY", "no claude_wire_kit/web/page/index.html", "a native library"):
        assert part in said


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a library of Linux")
def test_a_library_that_gives_away_functions_of_others_is_refused() -> None:
    check = tool("wheel_check")
    with open("/proc/self/maps") as maps:
        (libc,) = {line.split()[-1] for line in maps if re.search(r"/(libc|ld-musl-\w+)\.so[.\d]*$", line.strip())}
    assert "exports malloc" in check.library_faults(Path(libc).read_bytes())


def test_the_choice_of_tests_for_a_wheel_is_files_that_are_there() -> None:
    run = subprocess.run([sys.executable, TOOLS / "pythons.py"], capture_output=True, text=True, check=True)
    named = run.stdout.split()
    assert len(named) > 10
    assert all((ROOT / name).is_file() for name in named)


def test_a_release_builds_for_each_target() -> None:
    workflow = (ROOT / ".github/workflows/release.yml").read_text()
    targets = re.findall(r"target: ([\w-]+)", workflow)
    with_wheels = re.search(r"TARGETS = \{(.*?)\n\}", (TOOLS / "wheel.py").read_text(), re.S)
    assert with_wheels is not None
    assert sorted(targets) == sorted(re.findall(r'"([\w-]+)":', with_wheels[1]))


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS builds its own wheels")
def test_a_target_without_a_toolchain_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    wheels = tool("wheels")
    monkeypatch.setattr(wheels, "CROSS", tmp_path)
    monkeypatch.setitem(wheels.TARGETS, "no-such-target", wheels.wheel.MUSLLINUX)
    assert wheels.main(["aarch64-apple-darwin", "no-such-target"]) == 0
    said = capsys.readouterr().out
    assert "aarch64-apple-darwin: not built: it is built on macOS alone" in said
    assert "no-such-target: not built: there is no toolchain" in said


def write(path: Path, content: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)


# --- The project's own pytest settings, in an environment that has more plugins than the project installs -------------


PLUGIN = """
import warnings
def pytest_configure(config):
    warnings.warn("the option asyncio_default_fixture_loop_scope is unset")
"""


@pytest.mark.parametrize("path", ["tests/support_package", "benches/test_decode.py"])
def test_tests_and_benches_are_collected_where_pytest_asyncio_is_installed(path: str, tmp_path: Path) -> None:
    # pytest-asyncio registers itself under the name "asyncio" and warns like this when pytest configures it.
    (tmp_path / "asyncio_stand_in.py").write_text(PLUGIN)
    metadata = tmp_path / "asyncio_stand_in-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: asyncio-stand-in\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[pytest11]\nasyncio = asyncio_stand_in\n")
    # Remove the PYTEST_ variables of the outer pytest: with them pytest-benchmark believes that it runs in a worker.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", path],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
