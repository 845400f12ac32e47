"""Mask secrets in text.

Five kinds of rules find a secret: by its form (:data:`KINDS` and :data:`.gitleaks.GITLEAKS`), by its name
(:mod:`.names`), as the argument of a command (:data:`COMMANDS`), by its column in a table (:mod:`.columns`), and by its
randomness (:mod:`.chance`). Then :mod:`.forms` decodes escapes in the text, and the rules run again. If they find
another secret, and the masked text still contains a part of it, the whole text is masked.

Every pattern must run in linear time. Keep repetitions bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from claude_wire_kit.tap.chance import ID, LONG_WORD, UUID, decoded, looks_random
from claude_wire_kit.tap.columns import masked_columns
from claude_wire_kit.tap.forms import (
    changed_parts,
    has_seams,
    is_quoted_printable,
    join_tokens,
    remove_seams,
    unescape,
    unescape_printable,
)
from claude_wire_kit.tap.gitleaks import GITLEAKS
from claude_wire_kit.tap.names import named_secrets

#: Replaces a secret.
MASK = "[masked]"
#: Maximum number of characters in text. Longer text is masked completely.
TEXT_CHARACTERS = 1024 * 1024
#: Maximum product of the lengths of the text and of its secrets, about 0.1 s of work. Above it, escaped text is masked
#: completely.
MAX_STEPS = 10**9

#: Name of a kind -> hints and a pattern. The pattern only runs if the lower-case text contains one of the hints.
#: Group ``s``, ``t`` or ``u`` of a match is masked, or else the whole match.
KINDS: dict[str, tuple[tuple[str, ...], str]] = {
    "private key": (("private key",), r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[\s\S]*?(?:-----END[^-]{0,60}-----|\Z)"),
    "Anthropic": (("sk-ant-",), r"sk-ant-[\w-]{8,}"),
    "OpenAI": (("sk-",), r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[\w-]{16,}"),
    "AWS access key": (("akia", "asia", "aroa", "abia", "acca"), r"(?:AKIA|ASIA|AROA|ABIA|ACCA)[A-Z0-9]{16}"),
    "Google API key": (("aiza",), r"AIza[\w-]{30,}"),
    "Google OAuth": (("ya29.",), r"ya29\.[\w.-]{16,}"),
    "Google client secret": (("gocspx-",), r"GOCSPX-[\w-]{16,}"),
    "Azure storage": (("accountkey=", "sharedaccesskey="), r"(?i:AccountKey|SharedAccessKey)=(?P<s>[\w+/=-]{16,})"),
    "Azure signature": (("sig=",), r"[?&;]sig=(?P<s>[\w%+/=.-]{16,})"),
    "Azure client secret": (("8q~",), r"[\w~.-]{3}8Q~[\w~.-]{30,}"),
    "GitHub": (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_\w{16,}"),
    "GitHub fine-grained": (("github_pat_",), r"github_pat_\w{16,}"),
    "GitLab": (("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-"), r"gl(?:pat|dt|rt|cbt|ptt|ft)-[\w.-]{16,}"),
    "Slack": (("xox", "xapp-"), r"(?:xox[a-z](?:\.xox[a-z])?|xapp)-[\w-]{8,}"),
    "Slack webhook": (("hooks.slack.com/",), r"hooks\.slack\.com/(?P<s>[\w/+-]{16,})"),
    "Discord webhook": (("/api/webhooks/",), r"/api/webhooks/(?P<s>[\w/-]{16,})"),
    "Discord": ((".",), r"(?<![\w.-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
    "Telegram": ((":",), r"(?<!\w)\d{8,10}:[\w-]{35}(?!\w)"),
    "Stripe": (("_live_", "_test_"), r"(?:sk|rk|pk)_(?:live|test)_\w{8,}"),
    "webhook signature": (("whsec_",), r"whsec_[\w+/=]{16,}"),
    "JSON Web Token": (("eyj",), r"(?<![\w-])eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)*"),
    "bearer": (("bearer",), r"(?i:bearer)[ \t]+(?P<s>[\w.~+/=-]{6,})"),
    "basic": (("basic",), r"(?i:basic)[ \t]+(?P<s>[\w+/=-]{8,})"),
    "password in a URL": (("://",), r"://[^\s/:@\"'<>]{0,300}:(?P<s>[^\s/@\"'<>]{1,500})@"),
    "password of Oracle": (
        ("oracle:", "sqlplus"),
        r"(?:jdbc:oracle:\w{1,10}:|\bsqlplus\s+(?:-\S+\s+){0,5})[^\s/@]{1,100}/(?P<s>[^\s/@\"']+)",
    ),
    "user of a URL": (("://",), r"://(?P<s>[^\s/:@\"'<>]{8,500})@"),
    "npm": (("npm_",), r"npm_\w{20,}"),
    "PyPI": (("pypi-",), r"pypi-[\w-]{16,}"),
    "RubyGems": (("rubygems_",), r"rubygems_\w{16,}"),
    "Docker": (("dckr_",), r"dckr_(?:pat|oat)_[\w-]{16,}"),
    "Hugging Face": (("hf_",), r"hf_[A-Za-z0-9]{16,}"),
    "SendGrid": (("sg.",), r"(?<![\w.-])SG\.[\w-]{16,}\.[\w-]{16,}"),
    "Twilio": (("sk", "ac"), r"(?<![A-Za-z0-9])(?:SK|AC)[0-9a-f]{32}"),
    "Mailgun": (("key-",), r"key-[0-9a-f]{24,}"),
    "Mailchimp": (("-us",), r"(?<!\w)[0-9a-f]{32}-us\d{1,2}"),
    "DigitalOcean": (("_v1_",), r"do[opr]_v1_[0-9a-f]{32,}"),
    "Shopify": (("shp",), r"shp(?:at|ca|pa|ss|tka)_\w{16,}"),
    "Square": (("sq0", "eaaa"), r"sq0[a-z]{3}-[\w-]{16,}|EAAA[\w-]{40,}"),
    "Heroku": (("hrku-",), r"HRKU-[\w-]{16,}"),
    "Linear, Notion, Figma": (("lin_api_", "secret_", "ntn_", "figd_"), r"(?:lin_api_|secret_|ntn_|figd_)[\w-]{16,}"),
    "Atlassian": (("atatt3", "atctt3"), r"AT[AC]TT3[\w=+/-]{16,}"),
    "Databricks": (("dapi",), r"dapi[0-9a-f]{32}"),
    "Grafana": (("glsa_", "glc_"), r"gl(?:sa|c)_[\w+/=]{16,}"),
    "New Relic": (("nrak-", "nrii-", "nrjs-"), r"NR(?:AK|II|JS)-[\w-]{16,}"),
    "Sentry": (("sntrys_", "sntryu_"), r"sntry[su]_[\w+/=]{16,}"),
    "Postman": (("pmak-",), r"PMAK-[\w-]{16,}"),
    "Vault": (("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[\w-]{16,}"),
    "Terraform": ((".atlasv1.",), r"\w{14}\.atlasv1\.[\w-]{40,}"),
    "Doppler": (("dp.",), r"(?<!\w)dp\.[a-z]{2,5}\.[\w.-]{16,}"),
    "Pulumi": (("pul-",), r"pul-[0-9a-f]{32,}"),
    "Groq, xAI, Replicate, Perplexity": (("gsk_", "xai-", "r8_", "pplx-"), r"(?:gsk_|xai-|r8_|pplx-)\w{16,}"),
    "age": (("age-secret-key-",), r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    "e-mail": (("@",), r"(?<![\w.+-])[\w.+-]+(?<!\bgit)@[\w-]{1,63}(?:\.[\w-]{1,63}){0,10}\.[^\W\d_]{2,63}(?!\w)"),
    "code of OAuth": (("code=",), r"[?&#]code=(?P<s>[\w%/.~+-]{8,})"),
    "Wi-Fi": (("wifi:",), r"WIFI:[^\n]{0,200}?\bP:(?P<s>(?:\\.|[^;\n\\])+)"),
    "recovery codes": (
        ("codes",),
        r"(?i:recovery|backup|scratch|one-time|2fa)[ _-]?(?i:codes)\b[^\n:]{0,60}:?"
        r"(?P<s>(?:[\s,;]{1,20}(?:[-*•]|\d{1,2}[.)])?[ \t]{0,5}(?=[\w-]{0,23}\d)[\w-]{6,24}(?![\w-]))+)",
    ),
    "crypt": (
        ("$",),
        r"\$(?:\d[a-z]?|y|gy|apr1|argon2\w{1,2}|scrypt|sha1|md5|pbkdf2\S{0,20}|7|P|H)\$(?P<s>[^\s:\"']{8,})",
    ),
    "LDAP hash": (("{ss", "{sha", "{crypt", "{md5"), r"\{(?i:S?SHA\d*|CRYPT|S?MD5)\}(?P<s>[\w+/=$.]{12,})"),
    "oauth": (("oauth:",), r"oauth:(?P<s>[a-z0-9]{20,})"),
    "one-time password": (("otpauth:",), r"otpauth:\S+"),
    ".pgpass": (
        (":",),
        r"(?<![\w.*-])[\w.*-]{1,200}:(?:\d{2,5}|\*):[A-Za-z_*][^:\s]{0,100}:[^:\s]{1,100}:(?P<s>\S+)",
    ),
    ".netrc": (("login ",), r"login\s+\S{1,200}\s+password\s+(?P<s>\S+)"),
    "words of a wallet": (
        ("mnemonic", "seed", "phrase", "recovery", "wallet"),
        r"(?:\b[a-z]{3,8}\b[ \n]){11,23}\b[a-z]{3,8}\b(?![ \n]*[a-z.,;:!?])",
    ),
}

#: Like :data:`KINDS`, for commands with a secret argument. The hints are parts of the commands' names.
COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "-p of a database": (
        ("mysql", "mariadb", "percona", "xtrabackup"),
        r"\b(?:mysql\w*|mariadb[\w-]*|percona[\w-]*|xtrabackup)\b[^\n|;&]{0,500}?\s-p(?P<s>[^\s|;&]+)",
    ),
    "-p": (
        ("sshpass", "login", "mongo", "cqlsh", "rabbitmqadmin", "ldap", "mosquitto", "influx", "impala", "beeline"),
        r"\b(?:sshpass|login|mongo\w*|cqlsh|rabbitmqadmin|mosquitto_\w+|influx|impala-shell|beeline|ldap\w+)\b"
        r"[^\n|;&]{0,500}?\s(?:-[pPwa]|-pw)[ =]?(?P<s>\"[^\"]*\"|'[^']*'|[^\s|;&-][^\s|;&]*)",
    ),
    "-a": (
        ("redis-cli", "valkey-cli", "keydb-cli"),
        r"\b\w+-cli\b[^\n|;&]{0,500}?\s(?:-a|--pass)[ =]?(?P<s>\"[^\"]*\"|'[^']*'|[^\s|;&]+)",
    ),
    "-P": (
        (
            "ssh-keygen",
            "security ",
            "ipmitool",
            "sqlcmd",
            "bcp ",
            "isql",
            "unzip",
            "zip ",
            "7z",
            "rar ",
            "curl",
            "putty",
            "plink",
            "pscp",
            "psftp",
            "winscp",
        ),
        r"\b(?:ssh-keygen|security|ipmitool)\b[^\n|;&]{0,500}?\s-[NPpw][ ]?(?P<u>\"[^\"]+\"|'[^']+'|[^\s|;&\"'-]\S*)"
        r"|\b(?:sqlcmd|bcp|isql|tsql|unzip|zip|putty|plink|pscp|psftp)\b[^\n|;&]{0,500}?\s(?:-P|-pw)[ =]?"
        r"(?P<s>\"[^\"]*\"|'[^']*'|[^\s|;&]+)|\b(?:7z[ar]?|[un]*rar)\b[^\n|;&]{0,500}?\s-h?p(?P<t>[^\s|;&]+)",
    ),
    "set": (
        ("secret set", "secrets set", "securestring", "put-parameter"),
        r"\b(?:secrets? set|put-parameter)\b[^\n|;&]{0,300}?\s(?:--body|-b|--value|-v)[ =]?"
        r"(?P<s>\"[^\"]*\"|'[^']*'|\S+)"
        r"|(?i:ConvertTo-SecureString)\s+(?:-String\s+)?(?P<t>\"[^\"]*\"|'[^']*'|\S+)",
    ),
    "identified by": (
        ("identified",),
        r"(?i:identified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?)(?P<s>'[^']*'|\"[^\"]*\"|\S+)",
    ),
    "user%password": (
        ("smb", "rpcclient", "net ", "winexe", "wmic"),
        r"\s-U[ =]?['\"]?[^\s%]{1,100}%(?P<s>[^\s'\"]+)|\bnet\s+user\s+\S+\s+(?P<t>\S+)"
        r"|\s/(?:p|pass|password):(?P<u>\S+)",
    ),
    "htpasswd -b": (
        ("htpasswd",),
        r"\bhtpasswd\b[^\n|;&]{0,200}?\s-\w*b\w*\s+(?:-\S+\s+)*(?:[^\s-]\S*\s+){1,2}(?P<s>[^\s|;&]+)",
    ),
    "standard input": (
        ("echo", "printf", "sudo", "passwd", "read ", "login", "su ", "cryptsetup", "gpg"),
        r"\b(?:echo|printf)\s+(?:-\w+\s+)*(?P<s>\"[^\"]*\"|'[^']*'|[^|\n]+?)\s*\|[^\n|]{0,200}?"
        r"\b(?:sudo\s[^|\n]*-S|chpasswd|passwd|gpg|cryptsetup|docker|podman|helm|su"
        r"|[\w-]+\s[^|\n]{0,100}(?:secrets?|--with-token|--[\w-]*stdin))\b"
        r"|\b(?:chpasswd|passwd|read\s+-\w*s\w*[^\n<]{0,100}|sudo\s[^<\n]{0,100})\s*<<<\s*(?P<t>\"[^\"]*\"|'[^']*'|\S+)",
    ),
    "expect": (("send",), r"\bsend(?:_user|line)?\s*\(?\s*[\"'](?P<s>[^\"'\n]+?)(?:\\[rn])[\"']"),
    "user of curl": (
        ("-u", "--user", "--proxy-user", "-a ", "--auth"),
        r"(?<!\S)(?:-u|--user|--proxy-user|-U|-a|--auth)[\s=]*[\"']?[^\s:\"'/]{0,200}:(?P<s>[^\s\"']{1,500})",
    ),
}

#: The value of an HTTP header ends at the closing quote, or at the end of the line.
_HEADER = re.compile(
    r"(?i)(?P<q>\\*[\"'])?(?:(?:proxy-)?authorization|(?:set-)?cookie2?)(?:(?P=q))?(?<=[\w\"'])\s{0,10}[:=]\s{0,10}"
    r"(?:(?P<r>\\*[\"'])(?P<s>(?:(?!(?P=r))[^\r\n])+)|(?P<t>(?(q)(?:(?!(?P=q))[^\r\n])+|[^\r\n]+)))"
)

_KINDS = [
    *(re.compile(pattern) for _, pattern in KINDS.values()),
    _HEADER,
    *(re.compile(pattern) for _, pattern in COMMANDS.values()),
]
#: Pairs: a hint (a lower-case string), and the index of the pattern to run if the text contains the hint.
_HINTS = [
    *((hint, index) for index, (hints, _) in enumerate(KINDS.values()) for hint in hints),
    ("authorization", len(KINDS)),
    ("cookie", len(KINDS)),
    *((hint, index) for index, (hints, _) in enumerate(COMMANDS.values(), len(KINDS) + 1) for hint in hints),
]
#: Indices of the patterns that need only the secret itself, without the words around it.
_ONE_WORD = {
    index
    for index, (hints, pattern) in enumerate(KINDS.values())
    if "(?P<" not in pattern and len(hints[0]) > 2 and hints[0] not in ("://", "private key", "otpauth:", "-us")
}
_ONE_WORD_HINTS = [(hint, _KINDS[index]) for hint, index in _HINTS if index in _ONE_WORD]
_TOKENS = [(hint, re.compile(pattern)) for hints, pattern in GITLEAKS.values() for hint in hints]
#: Long words, which may be random keys.
_WORD = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,6}")
_LONG = re.compile(r"[^\s\"'`<>(),;\\]{16,}")
#: A hash, which is not a secret after a word such as ``commit`` or ``sha256``.
_DIGEST = re.compile(
    r"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128}|(?:sha\d{3}-)?[A-Za-z0-9+/]{27,88}={0,2})"
)
_OF_DIGEST = re.compile(
    r"(?<![A-Za-z])(?i:commit|tree|parent|blob|sha\d{1,3}|md5|checksum|digest|etag|integrity|h1)"
    r"[\"']?\s{0,3}[:=-]?\s{0,3}(?:W/)?[\"']?\Z"
)
#: Hex bytes with separators, as in hex dumps and array literals.
_BYTES = re.compile(r"(?:(?:0x|\\x)?[0-9a-fA-F]{2}(?:[0-9a-fA-F]{2})?(?:[ ,:]{1,2}|(?=\\x)|(?![0-9A-Za-z]))){6,}")
#: A word with a space after each letter.
_SPACED = re.compile(r"(?<!\S)(?:\S[ \t]){15,}\S(?!\S)")
_NUMBERS = re.compile(r"(?:[1-9]\d{1,2}[ ,]{1,2}){7,}\d{2,3}")
#: An encoded file: base64 lines of the same length.
_FILE = re.compile(r"(?:[A-Za-z0-9+/]{56,100}\r?\n[ \t]{0,20}){1,}[A-Za-z0-9+/]{1,100}={0,2}")
#: Strings that do not need to be searched, such as words and ids. Most of a session's strings are like this.
_HARMLESS = re.compile(rf"[a-z_]{{1,40}}|{UUID.pattern}|{ID.pattern}")


def masked_text(text: str) -> str:
    """Mask the secrets in text. Text that is too long, or hides a secret by escapes, is masked completely."""
    if len(text) < 400:
        return _masked_short(text)
    return MASK if len(text) > TEXT_CHARACTERS else _masked_in_any_form(text)


def is_token_over(texts: list[str]) -> bool:
    """Return True if none of these texts contains a token, but all of them joined do."""
    return any(len(text) < 200 for text in texts) and _has_token("".join(texts)) and not any(map(_has_token, texts))


def _masked_in_any_form(text: str) -> str:
    clean = _masked(text, [])
    # Joining the tokens is slow, so first search the text without seams for a hint.
    if has_seams(clean) and _has_hint(remove_seams(clean)) and _has_token(join_tokens(clean)) and not _has_token(clean):
        return MASK
    if any(map(_is_secret_in_other_form, changed_parts(text))):
        return MASK
    return clean


def _is_secret_in_other_form(text: str) -> bool:
    """Return True if the text without its escapes contains a secret that the rules do not find in the text itself."""
    return _is_hidden(text, unescape) or (is_quoted_printable(text) and _is_hidden(text, unescape_printable))


def _is_hidden(text: str, undo: Callable[[str], str]) -> bool:
    taken: list[str] = []
    clean = _masked(text, taken)
    for _ in range(4):  # escapes within escapes
        shown, left = undo(text), undo(clean)
        if shown == text and left == clean:
            break
        secrets: list[str] = []
        _masked(shown, secrets)
        if shown == left:
            if secrets:
                return True
        elif sum(map(len, secrets)) * len(left) > MAX_STEPS or _masked(left, []) != left:
            return True
        if any(_is_left(secret, left) for secret in secrets if secret not in taken or _is_telling(secret)):
            return True
        text, clean = shown, left
    return False


def _is_left(secret: str, text: str) -> bool:
    """Return True if the text still contains six consecutive characters of a secret."""
    return any(secret[begin : begin + 6] in text for begin in range(min(max(len(secret) - 5, 1), 2000)))


@lru_cache(4096)
def _masked_short(text: str) -> str:
    # Cached, because sessions repeat short texts: names, paths, models.
    return text if len(text) < 5 or _HARMLESS.fullmatch(text) else _masked_in_any_form(text)


def _has_hint(lowered: str) -> bool:
    return any(hint in lowered for hint, _ in _ONE_WORD_HINTS)


def _has_token(text: str) -> bool:
    """Return True if the text contains a provider's token. A token has a digit, to exclude names with dashes."""
    lowered = text.lower()
    for hint, pattern in _ONE_WORD_HINTS:
        if hint in lowered and any(any(map(str.isdigit, found[0])) for found in pattern.finditer(text)):
            return True
    return False


def _is_telling(secret: str) -> bool:
    """Return True if a secret cannot be an ordinary name in code: it has six characters or more, and a digit."""
    return len(secret) >= 6 and any(map(str.isdigit, secret))


class _Masker:
    """Replacement functions for :func:`re.sub`. Each masks a secret and appends it to ``secrets``."""

    def __init__(self, secrets: list[str]) -> None:
        self._secrets = secrets

    def whole(self, match: re.Match[str]) -> str:
        """Mask the named group of a match, or the whole match."""
        name = next((one for one in ("s", "t", "u") if match.re.groupindex.get(one) and match[one] is not None), 0)
        return self._without(match, name)

    def word(self, match: re.Match[str]) -> str:
        word = match[0]
        if word.startswith("/") and word.count("/") > 1 and not any(map(looks_random, word.split("/"))):
            return word
        if ID.fullmatch(word):
            return word
        rest = UUID.sub("", word)
        if looks_random(rest) or len(rest) >= LONG_WORD or decoded(rest) is not None or self._is_glued(rest):
            if _DIGEST.fullmatch(word) and _OF_DIGEST.search(match.string, max(match.start() - 24, 0), match.start()):
                return word
            self._secrets.append(word)
            return MASK
        return word

    def long(self, match: re.Match[str]) -> str:
        word = match[0]
        lowered = word.lower()
        for hint, pattern in _TOKENS:
            if hint in lowered:
                word = pattern.sub(self.whole, word)
        backwards = match[0][::-1]
        if word == match[0] and _has_token(backwards):
            self._secrets.append(word)
            return MASK
        return word

    def spaced(self, match: re.Match[str]) -> str:
        word = re.sub(r"[ \t]", "", match[0])
        return self.whole(match) if looks_random(word) or _has_token(word) else match[0]

    def hexed(self, match: re.Match[str]) -> str:
        groups = re.findall(r"(?:0x|\\x)?([0-9a-fA-F]{2,4})", match[0])
        is_cut = match.string[: match.start()][-1:].isalnum()  # the first group is the end of an address: skip it
        digits = "".join(groups[is_cut:])
        return self._if_readable(match, bytes.fromhex(digits[: len(digits) // 2 * 2]))

    def numbers(self, match: re.Match[str]) -> str:
        codes = [int(one) for one in re.findall(r"\d+", match[0])]
        return self._if_readable(match, bytes(codes)) if max(codes) < 127 else match[0]

    def _if_readable(self, match: re.Match[str], data: bytes) -> str:
        readable = sum(32 <= byte < 127 for byte in data)
        letters = sum(chr(byte).isalnum() for byte in data if byte < 127)
        if len(data) < 6 or readable < 0.9 * len(data) or letters < 0.6 * len(data):
            return match[0]
        self._secrets.append(match[0])
        return MASK + (" " if match[0].endswith(" ") else "")

    def _is_glued(self, word: str) -> bool:
        """Return True if a word is the base64 of a secret, after one to three other characters."""
        for begin in range(1, 4):
            text = decoded(word[begin:]) if len(word) >= 24 else None
            if text is not None and _masked(text, []) != text:
                return True
        return False

    def _without(self, match: re.Match[str], name: str | int) -> str:
        if match[name] == MASK:
            return match[0]
        self._secrets.append(match[name])
        whole, begin = match[0], match.start()
        return whole[: match.start(name) - begin] + MASK + whole[match.end(name) - begin :]


def _masked(text: str, secrets: list[str]) -> str:
    """Return the text with its secrets masked, without undoing escapes. Append the secrets to ``secrets``."""
    masker = _Masker(secrets)
    lowered = text.lower()

    done = -1
    for hint, index in _HINTS:
        if hint in lowered and index != done:
            text, done = _KINDS[index].sub(masker.whole, text), index
    for begin, end in reversed(named_secrets(text)):
        if text[begin:end] != MASK:
            secrets.append(text[begin:end])
            text = text[:begin] + MASK + text[end:]
    text = masked_columns(text, MASK, secrets)
    if len(text) >= 16:
        text = _LONG.sub(masker.long, text)
        if "\n" in text:
            text = _FILE.sub(masker.whole, text)
        text = _BYTES.sub(masker.hexed, text)
        if text.count(" ") >= 7:
            text = _NUMBERS.sub(masker.numbers, text)
            text = _SPACED.sub(masker.spaced, text)
    return _WORD.sub(masker.word, text)
