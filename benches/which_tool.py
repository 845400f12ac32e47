"""Write docs/which-tool.md, which compares what tools count in a folder of transcripts: ``which_tool.py [CCUSAGE…]``.

The folder has all recorded sessions of the tests. The right numbers are those that the API reported during the
recording. ``CCUSAGE`` is a folder in which npm has installed a version of ccusage. ccusage needs node on the PATH, and
no network. Without this argument the page has no rows for ccusage.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "support"))

from all_sessions import unpack_all, wanted  # noqa: E402 - found by the path above
from arrow_reader import rows  # noqa: E402 - found by the path above
from claude_wire.columns import files, scan, usage  # noqa: E402 - found by the path above

__all__ = ["PAGE", "Says", "line", "ours", "truth"]

PAGE = ROOT / "docs" / "which-tool.md"
_TOKENS = "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"


class Says(NamedTuple):
    """The numbers that a tool reports; None for a number that it does not report."""

    answers: int | None
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    #: The number of ``user`` lines that have text.
    texts: int | None


def truth(folder: Path) -> Says:
    """Return the API's numbers, and the number of texts by Python's json, which reads every complete line."""
    models = wanted().values()
    return Says(
        sum(counts["answers"] for counts in models),
        *(sum(counts[name] for counts in models) for name in _TOKENS),
        texts=sum(map(_has_text, _lines(folder, json.loads))),
    )


def ours(folder: Path) -> Says:
    """Return claude_wire.columns's numbers."""
    answers = rows(usage.combine(scan(path, "usage") for path in files(folder)))
    real = [row for row in answers if row["model"] != "<synthetic>"]
    texts = rows(scan(files(folder), "messages", ["text"], {"user"}))
    sums = (sum(row[name] for row in real) for name in _TOKENS)
    return Says(len(real), *sums, texts=sum(row["text"] is not None for row in texts))


def _lines(folder: Path, loads: Callable[[bytes], Any]) -> Iterator[dict[str, Any]]:
    """Yield the decoded lines of all files, except those that the decoder refuses."""
    for path in files(folder):
        for line in Path(path).read_bytes().splitlines():
            try:
                yield loads(line)
            except ValueError:
                continue


def _has_text(line: dict[str, Any]) -> bool:
    content = line["message"]["content"] if line.get("type") == "user" else None
    return isinstance(content, str) or any("text" in block for block in content or ())


def _sums(counts: Iterable[dict[str, int]], texts: int | None) -> Says:
    each = list(counts)
    return Says(len(each), *(sum(one[name] for one in each) for name in _TOKENS), texts=texts)


def all_lines(folder: Path) -> Says:
    lines = list(_lines(folder, json.loads))
    return _sums((line["message"]["usage"] for line in lines if _is_answer(line)), sum(map(_has_text, lines)))


def _is_answer(line: dict[str, Any]) -> bool:
    return line.get("type") == "assistant" and "usage" in line["message"] and line["message"]["model"] != "<synthetic>"


def by_orjson(folder: Path) -> Says:
    import orjson

    lines = list(_lines(folder, orjson.loads))
    last = {
        (line["message"]["id"], line.get("requestId")): line["message"]["usage"] for line in lines if _is_answer(line)
    }
    return _sums(last.values(), sum(map(_has_text, lines)))


def by_duckdb(folder: Path) -> Says:
    import duckdb

    counts = ", ".join(f"{name} BIGINT" for name in _TOKENS)
    query = f"""
        with lines as (from read_json($paths, format='newline_delimited', ignore_errors=true, columns={{
            type: 'VARCHAR', requestId: 'VARCHAR',
            message: 'STRUCT(id VARCHAR, model VARCHAR, "content" JSON, usage STRUCT({counts}))'}})),
        answers as (select last(message.usage) u from lines
            where type = 'assistant' and message.usage is not null and message.model <> '<synthetic>'
            group by message.id, requestId)
        select count(*), {", ".join(f"sum(u.{name})::bigint" for name in _TOKENS)},
            (select count(*) from lines where type = 'user' and (json_type(message.content) = 'VARCHAR'
                or len(json_extract(message.content, '$[*].text')) > 0)) from answers"""
    with duckdb.connect() as connection:
        return Says(*connection.execute(query, {"paths": files(folder)}).fetchall()[0])


def by_polars(paths: list[str]) -> Says:
    import polars

    counts = polars.Struct(dict.fromkeys(_TOKENS, polars.Int64))
    of = {"id": polars.String, "model": polars.String, "content": polars.String, "usage": counts}
    schema = {"type": polars.String, "requestId": polars.String, "message": polars.Struct(of)}
    part = polars.col("message").struct
    lines = polars.scan_ndjson(paths, schema=schema, ignore_errors=True).collect()
    last = (
        lines.filter(
            polars.col("type") == "assistant", part.field("usage").is_not_null(), part.field("model") != "<synthetic>"
        )
        .group_by(part.field("id"), "requestId")
        .agg(part.field("usage").last())["usage"]
    )
    texts = lines.filter(polars.col("type") == "user").select(part.field("content").is_not_null().sum())
    return _sums(last.to_list(), texts.item())


def readable(read: Callable[[list[str]], Says], paths: list[str]) -> list[str]:
    """Return the files that a tool does not refuse."""

    def taken(path: str) -> bool:
        try:
            read([path])
        except Exception:
            return False
        return True

    return list(filter(taken, paths))


def by_ccusage(installed: Path, folder: Path) -> Says:
    program = json.loads((installed / "package.json").read_text())["bin"]
    command = ["node", str(installed / (program if isinstance(program, str) else program["ccusage"]))]
    with tempfile.TemporaryDirectory() as home:
        # ccusage reads the folder ``projects`` in a configuration folder.
        os.symlink(folder, Path(home) / "projects")
        done = subprocess.run(
            [*command, "daily", "--json", "--offline"],
            env={"PATH": os.environ["PATH"], "HOME": home, "CLAUDE_CONFIG_DIR": home},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=120,
            check=True,
        )
    sums = json.loads(done.stdout)["totals"]
    names = "inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens"
    return Says(None, *(sums[name] for name in names), texts=None)


def line(name: str, says: Says | str, true: Says) -> str:
    """Return a row of the table. A wrong number is followed by its difference from the right one."""
    if isinstance(says, str):
        return f"| {name} | {says} | | | | | |"
    cells = []
    for said, right in zip(says, true, strict=True):
        apart = "" if said is None or said == right else f" (**{(said - right) / right:+.1%}**)"
        cells.append("-" if said is None else f"{said:,}{apart}")
    return f"| {name} | {' | '.join(cells)} |"


def version(package: str) -> str:
    return importlib.metadata.version(package)


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = unpack_all(Path(temporary))
        true = truth(folder)
        said: dict[str, Says | str] = {"**claude_wire**": ours(folder)}
        for installed in map(Path, sys.argv[1:]):
            package = installed / "node_modules" / "ccusage"
            name = f"ccusage {json.loads((package / 'package.json').read_text())['version']}"
            said[name] = by_ccusage(package, folder)
        for package, read in (("duckdb", by_duckdb), ("orjson", by_orjson)):
            said[f"{package} {version(package)}"] = read(folder)
        paths, name = files(folder), f"polars {version('polars')}"
        try:
            said[name] = by_polars(paths)
        except Exception as error:  # the error's message becomes the row
            said[name] = str(error).partition("\n")[0].replace("|", "/")[:120]
            some = readable(by_polars, paths)
            said[f"{name}, without {len(paths) - len(some)} files of {len(paths)}"] = by_polars(some)
        said["`usage` of all lines, added up"] = all_lines(folder)
    table = [
        "| tool | answers | input | output | cache creation | cache read | texts of users |",
        "|---|" + "---:|" * 6,
    ]
    table += [line("**the API**", true, true), *(line(name, says, true) for name, says in said.items())]
    page = PAGE.read_text(encoding="utf-8")
    written = "<!-- table -->\n\n" + "\n".join(table) + "\n\n<!-- end of table -->"
    page = re.sub("<!-- table -->.*<!-- end of table -->", lambda _: written, page, count=1, flags=re.S)
    PAGE.write_text(page, encoding="utf-8")
    print("\n".join(table))


if __name__ == "__main__":
    main()
