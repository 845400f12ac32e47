"""What a secret looks like in a text, and what fields are called that hold one.

Knows characters and names; not lines, nor messages. Every pattern takes time that grows with its text alone.
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from urllib.parse import unquote

__all__ = ["KINDS", "MASK", "TEXT_CHARACTERS", "is_secret_name", "masked_text"]

#: Stands for what was taken out.
MASK = "[masked]"
#: A longer text is masked as a whole.
TEXT_CHARACTERS = 1024 * 1024
#: A text with escapes in which so much would have to be looked for is masked as a whole, too: 0.1 s.
MOST_STEPS = 10**9

_NAMES = (
    "password|passwd|passphrase|passcode|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key"
    "|signing[_-]?key|encryption[_-]?key|account[_-]?key|master[_-]?key|auth[_-]?key|credential|authorization"
)
#: By its name, a kind of secret: some of these (in lower case) are in a text that has one, which this pattern finds.
#: What a group ``s`` matches is masked, or else all.
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
    "bearer": (("bearer",), r"(?i:bearer)\s+(?P<s>[\w.~+/=-]{6,})"),
    "basic": (("basic",), r"(?i:basic)\s+(?P<s>[\w+/=-]{8,})"),
    "authorization": (("authorization",), r"(?i:authorization)[\"'\\]*\s*[:=]\s*[\"'\\]*(?P<s>[^\r\n\"'\\]+)"),
    "cookie": (("cookie",), r"(?i:cookie2?)[\"'\\]*\s*[:=]\s*[\"'\\]*(?P<s>[^\r\n\"'\\]+)"),
    "password in a URL": (("://",), r"://[^\s/:@\"'<>]{0,300}:(?P<s>[^\s/@\"'<>]{1,500})@"),
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
    "e-mail": (("@",), r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"),
    "flag": (("--",), rf"--[\w-]{{0,40}}(?i:{_NAMES})[\w-]{{0,40}}(?:\s+|=)(?P<s>\"[^\"]*\"|'[^']*'|\S+)"),
    "user of curl": (("-u", "--user"), r"(?<!\S)(?:-u|--user)[\s=]+[\"']?[^\s:\"']{1,200}:(?P<s>[^\s\"']{1,500})"),
    "in a sentence": (
        (" is ", " was "),
        r"(?i:password|passphrase|passcode|secret|token|key)\s+(?:is|was)\s+(?P<s>(?=\S{0,200}\d)\S{6,})",
    ),
    "assignment": (
        tuple(_NAMES.replace("[_-]?key", "").split("|")),
        rf"(?i:{_NAMES})[\w.-]{{0,40}}[\"'\\\]]{{0,6}}\s{{0,20}}(?:=>|:=|[:=]|\bis\b|\bwas\b)\s{{0,20}}"
        r"(?P<s>\\*\"(?:[^\"\\]|\\.)*\"?|\\*'[^']*'?|[^\s\"',;&]{3,})",
    ),
}

_PATTERNS = [(hints, re.compile(pattern)) for hints, pattern in KINDS.values()]
#: Long words, among them those that only chance could have made.
_WORD = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: Ids of the API and of the CLI, which tie the lines of a session together.
_ID = re.compile(r"(?:msg|toolu|srvtoolu|mcptoolu|req|msgbatch|file|container)_[A-Za-z0-9_-]{8,40}")
#: What most strings of a session are.
_HARMLESS = re.compile(rf"[a-z_ ]{{1,40}}|{_UUID.pattern}|{_ID.pattern}")
_CLASSES = {
    **dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 1),
    **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 2),
    **dict.fromkeys("0123456789", 3),
}

_SEPARATORS = re.compile(r"[\s_.:-]")
_SECRET_NAME = re.compile(
    rf"(?:{_NAMES.replace('[_-]?', '')}|accesskeyid|cookie|signature|connectionstring|webhookurl|mnemonic|seedphrase)"
    r"s?$|^(?:auth|bearer|jwt|otp|pin|pwd|pass|dsn|ssn|cvv|cvc)$"
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " ", "/": "/", '"': '"', "'": "'", "\\": "\\"}


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret, such as ``x-api-key`` or ``AWS_SECRET_ACCESS_KEY``."""
    return len(name) <= 200 and (
        _SECRET_NAME.search(_SEPARATORS.sub("", name.lower())) is not None or name.endswith(("_KEY", "_PAT"))
    )


def masked_text(text: str) -> str:
    """The text without its secrets; masked as a whole if one stands in it in another form, or if it is very long."""
    if len(text) < 6 or _HARMLESS.fullmatch(text):
        return text
    if len(text) > TEXT_CHARACTERS:
        return MASK
    return _masked_short(text) if len(text) < 200 else _masked_in_any_form(text)


def _masked_in_any_form(text: str) -> str:
    whole = clean = _masked(text, [])
    for _ in range(4):  # escapes within escapes
        plain, left = _unescaped(text), _unescaped(clean)
        if plain == text and left == clean:
            break
        secrets: list[str] = []
        _masked(plain, secrets)
        if sum(map(len, secrets)) * len(left) > MOST_STEPS or _masked(left, []) != left:
            return MASK
        if any(_is_left(secret, left) for secret in secrets):
            return MASK
        text, clean = plain, left
    return whole


def _is_left(secret: str, text: str) -> bool:
    """Whether a part of a secret stands in a text from which it was taken as it looked with escapes."""
    return any(secret[begin : begin + 8] in text for begin in range(0, min(max(len(secret) - 7, 1), 2000), 2))


#: Sessions repeat short texts: names, paths, models.
_masked_short = lru_cache(1024)(_masked_in_any_form)


def _masked(text: str, secrets: list[str]) -> str:
    """The text without the secrets that stand in it as they are, which are added to ``secrets``."""

    def mask(match: re.Match[str]) -> str:
        name = "s" if "s" in match.re.groupindex else 0
        secrets.append(match[name])
        whole, begin = match[0], match.start()
        return whole[: match.start(name) - begin] + MASK + whole[match.end(name) - begin :]

    def mask_word(match: re.Match[str]) -> str:
        clean = _mask_word(match)
        if clean == MASK:
            secrets.append(match[0])
        return clean

    lowered = text.lower()
    for hints, pattern in _PATTERNS:
        if any(hint in lowered for hint in hints):
            text = pattern.sub(mask, text)
    return _WORD.sub(mask_word, text)


def _mask_word(match: re.Match[str]) -> str:
    word = match[0]
    if _ID.fullmatch(word):
        return word
    rest = _UUID.sub("", word)
    return MASK if _is_random(rest) or _hides_secret(rest) else word


def _is_random(word: str) -> bool:
    """Whether capitals, small letters and digits change places as often as in a key, or it is a long number in hex."""
    classes = [_CLASSES[one] for one in word if one in _CLASSES]
    if len(classes) < 20:
        return False
    counts = [classes.count(one) for one in (1, 2, 3)]
    changes = sum(map(int.__ne__, classes, classes[1:]))
    if min(counts) >= 2 and changes >= 0.35 * len(classes):
        return True
    return counts[2] >= 6 and changes >= 0.3 * len(classes) and len(classes) >= 30


def _hides_secret(word: str) -> bool:
    """Whether it is base64 of a text with a secret, or of so much that nobody knows."""
    if len(word) >= 400:
        return True
    try:
        plain = base64.b64decode(word.replace("-", "+").replace("_", "/").rstrip("=") + "==", validate=True)
        text = plain.decode()
    except ValueError:
        return False
    return _masked(text, []) != text


def _unescaped(text: str) -> str:
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
    return unquote(text) if "%" in text else text


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, f" {escape}")
