"""The advice for a missing optional package."""

from __future__ import annotations

from importlib import metadata

import pytest

from claude_wire.support.extras import install_extra


def test_the_advice_is_a_command_that_works_without_claude_wire_on_an_index() -> None:
    assert install_extra("otel") == 'pip install "opentelemetry-api>=1.28"'
    assert "claude-wire" not in install_extra("serve", distribution="claude-wire-kit")


def test_each_package_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        metadata, "requires", lambda _: [f"pyarrow>=17; extra == '{name}'" for name in ("ray", "export")]
    )
    assert install_extra("ray", "export") == 'pip install "pyarrow>=17"'


def test_the_marker_of_a_python_version_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: ["tomli>=2; python_version < '3.11' and extra == 'serve'"])
    assert install_extra("serve") == "pip install \"tomli>=2; python_version < '3.11'\""


def test_a_package_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    assert install_extra("mcp") == "pip install '.[mcp]' in a clone of claude_wire"
    of_the_kit = install_extra("serve", distribution="claude-wire-kit", folder="./kit")
    assert of_the_kit == "pip install './kit[serve]' in a clone of claude_wire"
