"""One generated secret of each kind that the tap's redaction knows.

The secrets are not stored in a file, so secret scanners find nothing here.
"""

from __future__ import annotations

import base64
import random
import string

__all__ = ["SAMPLES", "pieces"]

_random = random.Random(20)
_WORD = string.ascii_letters + string.digits


def some(count: int, characters: str = _WORD) -> str:
    return "".join(_random.choice(characters) for _ in range(count))


def upper(count: int) -> str:
    return some(count, string.ascii_uppercase + string.digits)


def hexed(count: int) -> str:
    return some(count, "0123456789abcdef")


def part(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _pem() -> str:
    lines = "\n".join(some(64, _WORD + "+/") for _ in range(12))
    return f"-----BEGIN {'RSA'} PRIVATE KEY-----\n{lines}\n-----END {'RSA'} PRIVATE KEY-----"


#: Kind -> a text, and the secret part of it.
SAMPLES: dict[str, tuple[str, str]] = {
    name: (text, secret or text)
    for name, text, secret in [
        ("private key", _pem(), ""),
        ("private key of OpenSSH, cut", _pem().replace("RSA", "OPENSSH")[:500], ""),
        ("Anthropic", f"sk-ant-api03-{some(80)}-{some(6)}AA", ""),
        ("OpenAI", f"sk-{some(20)}T3BlbkFJ{some(20)}", ""),
        ("OpenAI, of a project", f"sk-proj-{some(40)}_{some(30)}", ""),
        ("OpenRouter", f"sk-or-v1-{hexed(64)}", ""),
        ("AWS access key", f"AKIA{upper(16)}", ""),
        ("AWS access key of a session", f"ASIA{upper(16)}", ""),
        ("AWS secret key", some(40, _WORD + "+/"), ""),
        ("AWS session token", some(300, _WORD + "+/"), ""),
        ("Google API key", f"AIza{some(35)}", ""),
        ("Google OAuth", f"ya29.{some(60)}", ""),
        ("Google client secret", f"GOCSPX-{some(28)}", ""),
        ("Azure storage", *(lambda key: (f"AccountName=a;AccountKey={key};X=y", key))(some(86, _WORD + "+/") + "==")),
        ("Azure signature", *(lambda key: (f"https://a.blob.core.windows.net/c?sv=1&sig={key}&se=2", key))(some(43))),
        ("Azure client secret", f"abc8Q~{some(34)}", ""),
        ("GitHub", f"ghp_{some(36)}", ""),
        ("GitHub, of an app", f"ghs_{some(36)}", ""),
        ("GitHub fine-grained", f"github_pat_{some(22)}_{some(59)}", ""),
        ("GitLab", f"glpat-{some(20)}", ""),
        ("Slack", f"xoxb-{some(11, string.digits)}-{some(12, string.digits)}-{some(24)}", ""),
        ("Slack app", f"xapp-1-A{upper(9)}-{some(13, string.digits)}-{hexed(40)}", ""),
        (
            "Slack webhook",
            *(lambda key: (f"https://hooks.slack.com/services/{key}", key))(f"T{upper(8)}/B{upper(8)}/{some(24)}"),
        ),
        ("Discord", f"M{some(23)}.{some(6)}.{some(38)}", ""),
        (
            "Discord webhook",
            *(lambda key: (f"https://discord.com/api/webhooks/{key}", key))(f"{some(18, string.digits)}/{some(68)}"),
        ),
        ("Telegram", f"{some(10, string.digits)}:AA{some(33)}", ""),
        ("Stripe", f"sk_live_{some(24)}", ""),
        ("Stripe, restricted", f"rk_test_{some(24)}", ""),
        ("webhook signature", f"whsec_{some(32)}", ""),
        ("JSON Web Token", ".".join([part('{"alg":"HS256"}'), part('{"sub":"1234567890"}'), some(43)]), ""),
        ("bearer", *(lambda key: (f"Authorization: Bearer {key}", key))(some(18, string.ascii_lowercase))),
        ("basic", *(lambda key: (f"Authorization: Basic {key}", key))(part("user:correct horse"))),
        ("authorization", *(lambda key: (f"Authorization: ApiKey {key}", key))(some(12, string.ascii_lowercase))),
        ("cookie", *(lambda key: (f"Cookie: theme=dark; sid={key}", key))(some(14, string.ascii_lowercase))),
        (
            "cookie that is set",
            *(lambda key: (f"Set-Cookie: sid={key}; Path=/", key))(some(14, string.ascii_lowercase)),
        ),
        (
            "password in a URL",
            *(lambda key: (f"postgres://admin:{key}@db:5432/x", key))(some(9, string.ascii_lowercase)),
        ),
        ("token as the user of a URL", *(lambda key: (f"https://{key}@example.com/a.git", key))(hexed(20))),
        ("npm", f"npm_{some(36)}", ""),
        ("PyPI", f"pypi-AgEIcHlwaS5vcmc{some(60)}", ""),
        ("RubyGems", f"rubygems_{hexed(48)}", ""),
        ("Docker", f"dckr_pat_{some(27)}", ""),
        ("Hugging Face", f"hf_{some(34)}", ""),
        ("SendGrid", f"SG.{some(22)}.{some(43)}", ""),
        ("Twilio", f"SK{hexed(32)}", ""),
        ("Mailgun", f"key-{hexed(32)}", ""),
        ("Mailchimp", f"{hexed(32)}-us12", ""),
        ("DigitalOcean", f"dop_v1_{hexed(64)}", ""),
        ("Shopify", f"shpat_{hexed(32)}", ""),
        ("Square", f"sq0atp-{some(22)}", ""),
        ("Heroku", f"HRKU-{some(30)}", ""),
        ("Linear", f"lin_api_{some(40)}", ""),
        ("Notion", f"ntn_{some(46)}", ""),
        ("Figma", f"figd_{some(40)}", ""),
        ("Atlassian", f"ATATT3xFfGF0{some(60)}={upper(8)}", ""),
        ("Databricks", f"dapi{hexed(32)}", ""),
        ("Grafana", f"glsa_{some(32)}_{hexed(8)}", ""),
        ("New Relic", f"NRAK-{upper(27)}", ""),
        ("Sentry", f"sntrys_{some(60)}", ""),
        ("Postman", f"PMAK-{hexed(24)}-{hexed(34)}", ""),
        ("Vault", f"hvs.{some(24)}", ""),
        ("Terraform", f"{some(14)}.atlasv1.{some(60)}", ""),
        ("Doppler", f"dp.pt.{some(43)}", ""),
        ("Pulumi", f"pul-{hexed(40)}", ""),
        ("Groq", f"gsk_{some(52)}", ""),
        ("xAI", f"xai-{some(80)}", ""),
        ("Replicate", f"r8_{some(37)}", ""),
        ("Perplexity", f"pplx-{hexed(48)}", ""),
        ("age", f"AGE-SECRET-KEY-1{upper(58)}", ""),
        ("e-mail", f"{some(8, string.ascii_lowercase)}@{some(8, string.ascii_lowercase)}.org", ""),
        ("number in hex", hexed(32), ""),
        ("flag", *(lambda key: (f"deploy --db-password {key} --now", key))(some(9, string.ascii_lowercase))),
        ("flag with quotes", *(lambda key: (f"deploy --token='{key} {key}'", key))(some(9, string.ascii_lowercase))),
        ("user of curl", *(lambda key: (f"curl -u admin:{key} http://a", key))(some(9, string.ascii_lowercase))),
        ("variable", *(lambda key: (f"export DB_PASSWORD={key}\n", key))(some(9, string.ascii_lowercase))),
        ("line of a file", *(lambda key: (f'client_secret = "{key} {key}"', key))(some(9, string.ascii_lowercase))),
        ("part of an object", *(lambda key: (f"{{'api-key': '{key}'}}", key))(some(9, string.ascii_lowercase))),
        ("sentence", *(lambda key: (f"The password is {key}.", key))(f"{some(8, string.ascii_lowercase)}7")),
        ("crypt", *(lambda hashed: (f"root:$6$saltsalt${hashed}:19000:0", hashed))(some(40))),
        ("LDAP hash", *(lambda hashed: (f"userPassword: {{SSHA}}{hashed}", hashed))(some(32))),
        ("OAuth of a chat", *(lambda key: (f"oauth:{key}", key))(some(30, string.ascii_lowercase))),
        ("one-time password", *(lambda key: (f"otpauth://totp/x?secret={key}", key))(some(16, "ABCDEFGH234567"))),
        (".pgpass", *(lambda word: (f"localhost:5432:db:me:{word}", word))(some(12))),
        (".netrc", *(lambda word: (f"machine x login me password {word}", word))(some(12))),
        ("password of Oracle", *(lambda word: (f"sqlplus -s me/{word}@//db:1521/XE", word))(f"{some(12)}7")),
        ("code of OAuth", *(lambda code: (f"GET /callback?code=4/{code}&state=1", code))(some(24))),
        ("Wi-Fi", *(lambda word: (f"WIFI:T:WPA;S:cafe;P:{word};;", word))(f"{some(12)}7")),
        ("recovery codes", *(lambda code: (f"Recovery codes:\n  1. {code}\n  2. {code}\n", code))(f"{some(10)}7")),
        (
            "words of a wallet",
            *(lambda words: (f"The seed phrase\n{words}", words))(" ".join(["abandon"] * 11 + ["zoo"])),
        ),
    ]
}


def pieces(secret: str) -> list[str]:
    """Return parts of 9 characters of a secret. The redaction may leave none of them."""
    return [secret[begin : begin + 9] for begin in range(0, max(len(secret) - 8, 1), 3)]
