"""The redaction of a recording finds secrets of many forms, and leaves ordinary texts readable."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent_traffic_secrets import INNOCENT, LINES, TEXTS
from claude_wire_kit.tap.chance import decoded, looks_random
from claude_wire_kit.tap.gitleaks import GITLEAKS
from claude_wire_kit.tap.names import is_secret_name
from claude_wire_kit.tap.redact import Lines, redacted_flags, redacted_line
from claude_wire_kit.tap.secrets import KINDS, MASK, masked_text
from each import each
from secret_forms import LEFT_ONCE, result, tool
from secret_forms_elsewhere import ELSEWHERE

ROOT = Path(__file__).resolve().parents[3]


def strings(value: Any) -> list[str]:
    """Return all keys and texts in a JSON value."""
    match value:
        case dict():
            return [text for key, item in value.items() for text in (key, *strings(item))]
        case list():
            return [text for item in value for text in strings(item)]
        case _:
            return [str(value)]


def is_left(line: bytes, secret: str) -> bool:
    redacted = redacted_line(line)
    return any(secret in text for text in strings(json.loads(redacted))) or secret.encode() in redacted


@each("name", LEFT_ONCE, str)
def test_a_form_that_was_left_once(name: str) -> None:
    line, secret = LEFT_ONCE[name]
    assert not is_left(line, secret)


@each("name", ELSEWHERE, str)
def test_a_form_of_a_manual_or_a_program(name: str) -> None:
    text, secret = ELSEWHERE[name]
    assert secret in text
    assert not is_left(result(text), secret)
    assert not is_left(tool({"command": text}), secret)


def test_there_are_enough_forms() -> None:
    assert len(LEFT_ONCE) >= 109
    assert len(ELSEWHERE) >= 160


def test_each_pattern_of_gitleaks_compiles_and_has_a_hint_that_its_tokens_have() -> None:
    assert len(GITLEAKS) + len(KINDS) >= 120
    for name, (hints, pattern) in GITLEAKS.items():
        assert re.compile(pattern), name
        assert all(hint == hint.lower() for hint in hints), name


def test_the_environment_and_the_arguments_of_a_server_in_the_flags() -> None:
    servers = {"x": {"command": "c", "env": {"DB_PASS": "hunter2xyz", "LANG": "C"}, "args": ["-p", "hunter2xyz", "-v"]}}
    flags = ["--append-system-prompt", "DB_PASS=hunter2xyz", "--mcp-config", json.dumps({"mcpServers": servers}), "-p"]
    redacted = redacted_flags(flags)
    assert "hunter2xyz" not in " ".join(redacted)
    kept = json.loads(redacted[3])["mcpServers"]["x"]
    assert kept == {"command": "c", "env": {"DB_PASS": MASK, "LANG": "C"}, "args": ["-p", MASK, "-v"]}
    assert redacted[4] == "-p"


@pytest.mark.parametrize(
    "value",
    [
        {"parts": ["sk-ant-api03-q7Xp2Lm", "9Zt4Rk8VwB3dHf6Js"]},
        {"env": [["DB_PASSWORD", "=", "hunter2xyz"]]},
        {"secrets": [48211234]},
        {"password": {"hunter2xyz": 1}},
        {"type": "Buffer", "data": [104, 117, 110, 116, 101, 114, 50]},
        {"bytes": [104, 117, 110, 116, 101, 114, 50]},
        {"Name": "DB_PASS", "Value": "hunter2xyz"},
    ],
    ids=str,
)
def test_a_secret_in_the_structure(value: dict[str, Any]) -> None:
    left = redacted_line(tool(value))
    for secret in "9Zt4Rk8VwB3dHf6Js", "hunter2xyz", "48211234", "104,117":
        assert secret.encode() not in left


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *(
            "db_pass",
            "dbPass",
            "DB_PASS",
            "x-auth",
            "creds",
            "password1",
            "token_value",
            "api_key_prod",
            "privateKeyPem",
        ),
        *(
            "pgpassword",
            "mysqlpwd",
            "bindpw",
            "authkey2",
            "SSHKey",
            "apikeys",
            "X-Auth-Token",
            "passphrase.old",
            "PASS",
        ),
        *("PHPSESSID", "user_pin", "otp_code", "Passwort", "пароль", "contraseña", "secretsManager", "refreshTokens"),
    ],
)
def test_the_name_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "author",
            "authority",
            "keyboard",
            "primaryKey",
            "foreign_key",
            "key",
            "bypass",
            "compass",
            "spinner",
            "mapping",
        ),
        *("tokenizer", "passed", "passenger", "PWD", "OLDPWD", "session_id", "path", "pinned", "secretary", "name", ""),
    ],
)
def test_the_name_of_something_else(name: str) -> None:
    assert not is_secret_name(name)


# --- texts that stay --------------------------------------------------------------------------------------------------

ORDINARY = [
    "The password is required.",
    "the token is invalid, and the secret was not set",
    "Your key is missing. Passwords are hashed; tokens are counted.",
    "password = os.environ['DB_PASSWORD']",
    "token: str = self.next_token()",
    "token: Optional[str] = None",
    "API_KEY=$API_KEY ./run",
    "password: ${DB_PASSWORD}",
    "password=<your password>",
    "export TOKEN={{ vault.token }}",
    "max_tokens: 4096, input_tokens=17, output_tokens: 3,",
    '{"usage": {"input_tokens": 12, "output_tokens": 345}}',
    "def authenticate(user: User, password: str) -> bool:",
    "from claude_wire.session.permissions import PermissionResult",
    "https://docs.example.com/a/b-c-d/page.html?page=2&sort=name#part",
    "/home/me/project/node_modules/@scope/package/dist/index.js",
    "cargo build --release --target x86_64-unknown-linux-gnu",
    "git commit -m 'Fix the parser' && git push origin main",
    "commit 21cf411 of 2026-11-24T10:20:30.123Z",
    "ssh -p 2222 me@host.local ls -la".replace("me@host.local", "host"),
    "docker run -p 8080:80 -v /a:/b nginx",
    "mkdir -p a/b && cp -a a b",
    "The quick brown fox jumps over the lazy dog while the cat sleeps on the warm stone and dreams of fish",
    "| name | value |\n|---|---|\n| a | 1 |",
    "id,name,size\n1,one,10\n2,two,20",
    "getElementById, addEventListener, XMLHttpRequest, iPhone13ProMax, HTTP2Server1, utf8mb4_unicode_ci",
    "test_a_file_that_is_larger_than_4096_bytes_is_read_in_2_pieces",
    "sizes: 10, 200, 31, 47, 12, 99, 100, 64",
    "v1.2.3-rc.4+build.5, numpy==1.26.4, torch>=2.1",
    'Traceback (most recent call last):\n  File "a.py", line 12, in <module>\nValueError: invalid literal',
    "caf\u00e9 na\u00efve \u65e5\u672c\u8a9e \U0001f600 \u2014 \u201cquoted\u201d",
    "PWD=/home/me/project",
    "keyboard: qwerty\nauthor: Ada Lovelace\nmonkey: business",
    "for key, value in sorted(pairs.items()):\n    print(key, value)",
    "const key = keyOf(event.requestId);",
    "a key to success, the secret of life, a pass of the ball",
    "\x1b[32mPASSED\x1b[0m tests/test_a.py::test_b \x1b[31mFAILED\x1b[0m",
    "printf 'a\\tb\\n' | sort -u > out.txt",
    "12345678901234567890 bytes, 0x7fffffffffffffff, 1e-9, 3.14159",
]


@each("text", ORDINARY, str)
def test_an_ordinary_text_stays(text: str) -> None:
    assert masked_text(text) == text


@pytest.mark.parametrize(
    ("pattern", "at_most"),
    [
        ("docs/**/*.md", 0.03),
        ("python/claude_wire/session/**/*.py", 0.05),
        ("kit/claude_wire_kit/supervisor/**/*.py", 0.05),
    ],
)
def test_the_paragraphs_of_a_project_stay_but_for_few(pattern: str, at_most: float) -> None:
    """Many paragraphs mention tokens, keys and passwords. The redaction changes few, and masks hardly any entirely."""
    paragraphs = [
        paragraph
        for path in sorted(ROOT.glob(pattern))
        for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8"))
        if paragraph.strip()
    ]
    assert len(paragraphs) > 300
    redacted = [masked_text(paragraph) for paragraph in paragraphs]
    changed = [before for before, after in zip(paragraphs, redacted, strict=True) if before != after]
    assert len(changed) <= at_most * len(paragraphs), changed
    assert redacted.count(MASK) <= 0.002 * len(paragraphs)


# --- random texts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word",
    ["xK9mP2qL7vRt4wZn", "q7xp2lm9zt4rk8vw3b5d", "K7XQ2MPL9ZT4RK8VWB3D", "9f8e7d6c5b4a39281706f5e4", "x7Kq9Lm2Pz4R"],
)
def test_a_word_that_chance_made(word: str) -> None:
    assert looks_random(word)


@pytest.mark.parametrize(
    "word",
    ["iPhone13ProMax", "getElementById2", "20251123T235959Z", "a0f3d1c2b4e5f6a7b", "1764012345678901234", "x86_64"],
)
def test_a_word_that_a_person_made(word: str) -> None:
    assert not looks_random(word)


def test_a_word_in_another_alphabet() -> None:
    assert decoded("aHVudGVyMnh5eg==") == "hunter2xyz"
    assert decoded("68756e7465723278797a") == "hunter2xyz"
    assert decoded("NB2W45DFOIZHQ6L2") == "hunter2xyz"
    assert decoded("getElementById") is None
    assert decoded("ffd8ffe000104a464946") is None


# --- The redaction masks secrets in the traffic of a coding agent, and leaves harmless texts readable -----------------


def shown(lines: bytes) -> str:
    """Redact lines. Return all keys and texts that remain, one per line."""
    redaction = Lines()
    redacted = redaction.feed(lines + b"\n") + redaction.close()
    return "\n".join(text for line in redacted.splitlines() for text in strings(json.loads(line)))


@each("name", TEXTS, str)
def test_no_secret_of_a_text_is_left(name: str) -> None:
    text, secrets = TEXTS[name]
    assert all(secret in text for secret in secrets)
    for line in result(text), tool({"command": text}), tool({"file_path": "a.txt", "content": text}):
        left = shown(line)
        assert [secret for secret in secrets if secret in left] == []


@each("name", LINES, str)
def test_no_secret_of_a_line_is_left(name: str) -> None:
    lines, secrets = LINES[name]
    left = shown(lines)
    assert [secret for secret in secrets if secret in left] == []


@each("text", INNOCENT, str)
def test_an_innocent_text_stays(text: str) -> None:
    for line in result(text), tool({"command": text}):
        assert text in shown(line)


def test_the_corpus_is_large() -> None:
    assert len(TEXTS) + len(LINES) >= 170
    assert len(INNOCENT) >= 170


@pytest.mark.parametrize("text", [f"(a) VALUES ({chr(39) * 3999}", "name=password " + "a=b " * 2000, "codes " * 2000])
def test_a_text_that_nearly_matches_stays(text: str) -> None:
    """The redaction takes linear time for each text. With quadratic time, this test would take minutes."""
    assert masked_text(text * 10) == text * 10
