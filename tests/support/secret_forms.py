"""Secrets that the redaction once missed in a recording: a line as the CLI writes it, and its secret."""

from __future__ import annotations

import base64
import codecs
import html
import json
import random
import string
from typing import Any

__all__ = ["LEFT_ONCE"]

LOWER, WORD = string.ascii_lowercase, string.ascii_letters + string.digits
_random = random.Random(5)


def some(count: int, characters: str = WORD) -> str:
    return "".join(_random.choice(characters) for _ in range(count))


def result(text: str) -> bytes:
    """Return a line with a tool result."""
    block = {"type": "tool_result", "tool_use_id": "toolu_01", "content": text}
    message = {"role": "user", "content": [block]}
    return json.dumps({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "s"}).encode()


def tool(given: Any) -> bytes:
    """Return a line with a tool call that has this input."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": given}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": {}}
    return json.dumps({"type": "assistant", "message": message, "session_id": "s"}).encode()


#: Name -> a line and its secret.
LEFT_ONCE: dict[str, tuple[bytes, str]] = {}


def add(name: str, line: bytes, secret: str) -> None:
    LEFT_ONCE[name] = line, secret


sh = "hunter2xyz"
ant = "sk-ant-api03-" + some(60)
akia = "AKIA" + some(16, string.ascii_uppercase + string.digits)
for k in (
    "DB_PASS",
    "MYSQL_PWD",
    "SMTP_PASS",
    "PASS",
    "REDIS_AUTH",
    "DB_CREDS",
    "PW",
    "password1",
    "PASSWORD_PROD",
    "token_value",
    "api_key_prod",
):
    add(f"text {k}=…", result(f"{k}={sh}\n"), sh)
for k in (
    "DB_PASS",
    "dbPass",
    "smtp_pass",
    "password1",
    "passwordConfirm",
    "password_old",
    "api_key_prod",
    "tokenValue",
    "pw",
    "creds",
    "secret_value",
    "client_secret_expires",
    "auth",
    "x-auth",
    "authkey2",
    "privateKeyPem",
    "connection",
):
    add(f"field {k}", tool({k: sh}), sh)
add(".netrc", result(f"machine github.com login me password {sh}"), sh)
add(".pgpass", result(f"localhost:5432:db:me:{sh}"), sh)
add("mysql -pPASS", tool({"command": f"mysql -u root -p{sh} db"}), sh)
add("sshpass -p", tool({"command": f"sshpass -p {sh} ssh host"}), sh)
add("docker login -p", tool({"command": f"docker login -u me -p {sh}"}), sh)
add("openssl pass:", tool({"command": f"openssl rsa -passin pass:{sh} -in k"}), sh)
add("PASS in env prefix", tool({"command": f"DB_PASS={sh} ./run"}), sh)
add("redis-cli -a", tool({"command": f"redis-cli -a {sh}"}), sh)
add("ldap bindpw", result(f"bindpw {sh}"), sh)
add("yaml pass:", result(f"db:\n  user: a\n  pass: {sh}\n"), sh)
add("yaml pwd:", result(f"pwd: {sh}"), sh)
add("wpa psk", result(f'ssid="home"\npsk="{sh}"'), sh)
add("htpasswd", result("me:$apr1$x9Vl2b1D$0qZ3mUO1XkqGxF7w1yEAb/"), "0qZ3mUO1XkqGxF7w1yEAb")
add("shadow", result("root:$y$j9T$abcdefgh$Qk3mUO1Xkq.GxF7w1yEAbZz0:19000:0:99999:7:::"), "Qk3mUO1Xkq.GxF7w1yEAbZz0")
add("lower-case bearer alone", tool({"header": "bearer mysecretbearer"}), "mysecretbearer")
add("'password is …' lower case", tool({"note": "the password is swordfish"}), "swordfish")
add("'secret: …' in lower case words", tool({"a": "my token was abcdefgh"}), "abcdefgh")
add("cookie behind a quoted one", result(f'Set-Cookie: prefs="dark"; sid={sh}'), sh)
add("Cookie with '", result(f"Cookie: a=it's; sid={sh}"), sh)
add("Digest", result(f'Authorization: Digest username="me", opaque="{sh}"'), sh)
add("HTML entity AKIA", result(html.escape(akia).replace("A", "&#65;", 1)), akia[4:])
add("QP AKIA", result(akia.replace("K", "=4B", 1)), akia[4:])
add("octal AKIA", result(akia.replace("A", "\\101", 1)), akia[4:])
add("\\u{41} AKIA", result(akia.replace("A", "\\u{41}", 1)), akia[4:])
add("ANSI colour in AKIA", result("\x1b[01;31m\x1b[KAKIA\x1b[m\x1b[K" + akia[4:]), akia[4:])
add("zero-width in AKIA", result(akia[:4] + "\u200b" + akia[4:]), akia[4:])
add("full-width", result("".join(chr(ord(c) + 65248) for c in akia)), "".join(chr(ord(c) + 65248) for c in akia))
add("AKIA wrapped", result(akia[:10] + "\n" + akia[10:]), akia[10:])
add("AKIA spaced", result(" ".join(akia)), " ".join(akia)[8:])
add("AKIA reversed", result(akia[::-1]), akia[::-1])
add(
    "base64 of password assignment",
    result(base64.b64encode(f"password={sh}".encode()).decode()),
    base64.b64encode(f"password={sh}".encode()).decode(),
)
add(
    "base64 of DB_PASS",
    result(base64.b64encode(f"DB_PASS={sh}".encode()).decode()),
    base64.b64encode(f"DB_PASS={sh}".encode()).decode(),
)
add(
    "k8s secret (base64 of a short password)",
    result("data:\n  db: " + base64.b64encode(sh.encode()).decode()),
    base64.b64encode(sh.encode()).decode(),
)
add(
    "base64 glued to a word",
    result("X" + base64.b64encode(b"password=correcthorse ok").decode()),
    base64.b64encode(b"password=correcthorse ok").decode()[4:],
)
add(
    "base64 MIME lines",
    result(base64.encodebytes(("password=" + "correcthorsebatterystaple" * 6).encode()).decode()),
    base64.encodebytes(("password=" + "correcthorsebatterystaple" * 6).encode()).decode().split("\n")[1],
)
add(
    "base32",
    result(base64.b32encode(f"password={sh}".encode()).decode()),
    base64.b32encode(f"password={sh}".encode()).decode(),
)
add("hex", result(f"password={sh}".encode().hex()), f"password={sh}".encode().hex())
add("hex short", result(sh.encode().hex()), sh.encode().hex())
add(
    "xxd",
    result("00000000: 7061 7373 776f 7264 3d68 756e 7465 7232  password=hunter2"),
    "7061 7373 776f 7264 3d68 756e 7465 7232",
)
add("rot13 ant", result(codecs.encode(ant, "rot13")), codecs.encode(ant, "rot13")[13:])
add("lower-case token of 28", result("api " + some(28, LOWER + "0123456789")), "@@")
t28 = some(28, LOWER + string.digits)
add("lower-case token of 28", result("here: " + t28), t28)
t19 = some(19)
add("mixed token of 19", result("here " + t19), t19)
add("hex of 28", result("x " + some(28, "0123456789abcdef")), "@@")
add("URL-encoded %", result(f"password%3D{sh}"), sh)
add("double URL-encoded", result(f"password%253D{sh}"), sh)
add("JSON in JSON in JSON", result(json.dumps({"a": json.dumps({"b": json.dumps({"password": sh})})})), sh)
add("JSON behind text", result("Output: " + json.dumps({"password": sh})), sh)
add("JSON with a BOM", result("\ufeff" + json.dumps({"password": sh})), sh)
add("python dict repr", result(repr({"password": sh})), sh)
add("XML", result(f"<password>{sh}</password>"), sh)
add("ini with spaces", result(f"password   {sh}"), sh)
add("table", result(f"| user | password |\n| me | {sh} |"), sh)
add("CSV", result(f"user,password\nme,{sh}"), sh)
add("TOML multi", result(f'password = """\n{sh}"""'), sh)
add("shell heredoc", result(f"read -s P <<< {sh}"), sh)
add("key as value pair list", tool({"env": [["DB_PASSWORD", sh]]}), sh)
add("pair of three", tool({"env": [["DB_PASSWORD", "=", sh]]}), sh)
add("split in a list", tool({"parts": [ant[:16], ant[16:30]]}), ant[16:30])
add("header list", tool({"args": ["-H", "X-Auth: " + sh]}), sh)
add("secret number", tool({"secrets": [48211234]}), "48211234")
add("pin number", tool({"user_pin": 48211}), "48211")
add("secret in a key", tool({sh + "@x": 1, ant: 1}), ant)
add("low secret in a key", tool({"password": {sh: 1}}), sh)
add(
    "account in initialize",
    json.dumps(
        {
            "type": "control_response",
            "response": {
                "subtype": "success",
                "request_id": "r",
                "response": {"account": {"email": "me@example.com", "organization": "o", "tokenSource": sh}},
            },
        }
    ).encode(),
    sh,
)
h28 = some(28, "0123456789abcdef")
add("hex of 28", result("x " + h28), h28)
kat = "key" + some(14)
add("Airtable key", result(kat), kat)
fly = "FlyV1 fm2_" + some(40)
add("Fly.io", result(fly), fly[10:])
nf = "nfp_" + some(36)
add("Netlify", result(nf), nf[6:])
sb = "sbp_" + some(40, "0123456789abcdef")
add("Supabase", result(sb), sb[6:])
cf = some(40, WORD + "_-")
add("Cloudflare", result(cf), cf)
ve = some(24)
add("Vercel", result(ve), ve)
pin = "-".join(some(n, "0123456789abcdef") for n in (8, 4, 4, 4, 12))
add("Pinecone/Heroku (UUID)", result("key " + pin), pin)
tw = "oauth:" + some(30, LOWER + string.digits)
add("Twitch", result(tw), tw[6:])
lang = "lsv2_pt_" + some(32, "0123456789abcdef") + "_" + some(10, "0123456789abcdef")
add("LangSmith", result(lang), lang[8:])
tv = "tvly-" + some(32)
add("Tavily", result(tv), tv[5:])
jir = some(24)
add("Atlassian old", result(jir), jir)
op = "ops_eyJ" + some(60)
add("1Password", result(op), op[8:])
bws = "0." + pin + "." + some(30) + ":" + some(22) + "=="
add("Bitwarden", result(bws), bws.split(":")[1][:20])
wg = some(43, WORD + "+/") + "="
add("WireGuard", result("PrivateKey = " + wg), wg)
totp = some(16, string.ascii_uppercase + "234567")
add("TOTP seed", result(f"otpauth://totp/x?secret={totp}"), totp)
add("TOTP seed alone", result(totp), totp)
mn = "abandon ability able about above absent absorb abstract absurd abuse access accident"
add("BIP39", result("seed: " + mn), mn)
