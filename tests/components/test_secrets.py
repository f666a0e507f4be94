"""Secrets by name: a file of a folder, else an environment variable; never anything outside the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from paperwasp.components.json_client import find_secret, secret
from paperwasp.errors import Unavailable


def test_a_file_goes_before_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "voyage_api-key").write_text("from the file\n")
    monkeypatch.setenv("PAPERWASP_SECRETS", str(tmp_path))
    monkeypatch.setenv("PAPERWASP_SECRET_VOYAGE_API_KEY", "from the variable")
    assert secret("voyage_api-key") == "from the file"
    (tmp_path / "voyage_api-key").write_text(" \n")
    assert secret("voyage_api-key") == "from the variable"
    monkeypatch.delenv("PAPERWASP_SECRET_VOYAGE_API_KEY")
    (tmp_path / "voyage_api-key").write_bytes(b"\xff")
    assert find_secret("voyage_api-key") is None


@pytest.mark.parametrize("name", ["", "../key", "a/b", ".hidden", "a\0b", "x" * 201])
def test_names_that_are_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("outside")
    (tmp_path / "secrets").mkdir()
    monkeypatch.setenv("PAPERWASP_SECRETS", str(tmp_path / "secrets"))
    assert find_secret(name) is None


def test_where_it_would_be_is_told() -> None:
    with pytest.raises(Unavailable, match=r"^There is no secret 'my.key': .* or the variable PAPERWASP_SECRET_MY_KEY$"):
        secret("my.key")
