"""Names of secrets, decided by their words: ``DB_PASS``, ``dbPass``, ``x-auth`` and ``api_key_prod``.

A name is split where a person would split it, at separators, at capitals and at digits. One secret word is enough.
"""

from __future__ import annotations

import re
from functools import lru_cache

# ruff: noqa: SIM905 - a list of words is easier to read and to change as one text

__all__ = ["STEMS", "counts_tokens", "is_plain_value", "is_secret_name"]

_WORDS, _ANY_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"), re.compile(r"[^\W\d_]+")

#: Each of these words makes a name that of a secret.
_SECRET = frozenset(
    """
    pass passwd password passwords passphrase passphrases passcode passcodes passkey pwd pwds pw pswd psw pword
    secret secrets token tokens cred creds credential credentials auth authn authorization bearer jwt otp totp pin pins
    cookie cookies signature mnemonic psk ssn cvv cvc dsn sid sessid phpsessid jsessionid
    passwort kennwort contrasena senha mdp passe motdepasse wachtwoord haslo passord salasana parola heslo
    geheimnis zugangscode zugangsdaten adgangskode losenord lösenord jelszo jelszó
    contraseña пароль 密码 密碼 口令 パスワード 비밀번호 hasło
    """.split()
)
#: Ends of words that are written as one, such as ``pgpassword`` and ``mysqlpwd``.
_ENDS = ("pass", "passwd", "pwd", "password", "passphrase", "secret", "secrets", "token", "creds", "cookie")
_NO_SECRET = frozenset("bypass compass encompass surpass trespass overpass underpass subtoken pretoken".split())
#: A key is secret when one of these words stands before it.
_KEYS = (
    "api access private secret signing sign encryption encrypt decryption account master auth authentication ssh shared"
    " service storage session license deploy aes rsa dsa hmac jwt crypto cipher admin app application client consumer"
    " subscription functions function user server webhook project publishable restricted recovery backup root ssl tls"
    " gpg pgp wallet stripe openai anthropic google gemini azure aws github gitlab sendgrid mailgun twilio datadog"
)
_GLUED = re.compile(
    rf"passw(?:or)?d|passphrase|passcode|credential|(?:{_KEYS.replace(' ', '|')})[_.-]?keys?(?![a-z])"
    r"|connectionstring|webhookurl|seedphrase|recoveryphrase|(?:recovery|backup)codes?|keymaterial|sharedaccess|bindpw"
)
#: As the last word: the name of something about a secret, such as ``token_type``.
_ABOUT = frozenset("rate type policy length path file filename name field strength".split())
#: A number beside one of these words is a count, as in ``max_tokens``.
_COUNTS = frozenset(
    """
    max min count counts counter total input output used usage limit budget cache cached prompt completion num number
    per thinking reasoning remaining window length size creation read cost context ephemeral estimated saved left
    """.split()
)
#: What may stand in a field or behind a word that names a secret, and is none.
_PLAIN = frozenset(
    """
    none null nil undefined true false yes no on off unset empty user project local organization org temporary oauth env
    keep-alive close upgrade str string option int integer bytes bool boolean number any object float optional required
    await new return lambda not null_mut vec usize u64 i64 &str type text self default auto basic bearer
    /login managed [masked]
    """.split()
)
_REFERENCE = re.compile(
    r"\$\{?\{?\s?[A-Z_][A-Z0-9_.]*\s?\}?\}?|\$\([\w .-]+\)|%[A-Z_]+%|<[A-Za-z _-]{1,40}>|\{\{[\w .-]{1,60}\}\}"
    r"|[.*x•…(-]{1,40}|\$\{\{|\$\{\w+:\?.*|[A-Za-z_]{1,40}:|\([A-Za-z_, ]+\)?"
    r"|(?:self|this|cls|os|process|config|settings|env|options|args|request|req|secrets|var|local|data)"
    r"(?:\.[A-Za-z_]+)+(?:[(\[].*)?"
    r"|[a-z_]{2,40}\.[A-Z][A-Za-z]+"
    r"|[A-Za-z_]{1,40}(?:(?:\.|::)[A-Za-z_]{1,40})+\(.*"
    r"|[A-Za-z_]{3,60}\((?:[A-Za-z_\"', .:(){}\[\]]|=\s?\d{1,5}(?!\w)|=)*"
    r"|(?:Optional|List|list|Sequence)\[\w+\]|(?:str|bytes|int|string) ?\| ?\w+"
)
_CODE_NAME = re.compile(r"[A-Za-z][a-z]+(?:[A-Z][a-z]+)+")
_DOTTED = re.compile(r"[A-Za-z_]{1,40}(?:\.[A-Za-z_]{1,40})+")
_ENDING = re.compile(r"[\s,;:)\]}?]+$")

#: A text without one of these, in lower case, names no secret.
STEMS = (
    *("pass", "pwd", "pw", "psw", "secret", "token", "key", "cred", "auth", "bearer", "jwt", "otp", "pin", "cookie"),
    *("signature", "mnemonic", "phrase", "psk", "ssn", "cvv", "cvc", "dsn", "sid", "sess", "connection", "webhook"),
    *("kennwort", "contrase", "senha", "mdp", "wacht", "salasana", "senord", "parola", "heslo", "haslo", "jelsz"),
    *("heimnis", "angsc", "angsd", "angskod", "hasł", "парол", "密", "口令", "パス", "비밀"),
)


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """True for the name of a field, a variable or a flag that holds a secret."""
    if not 1 < len(name) <= 200 or name.strip("$") in ("PWD", "OLDPWD"):
        return False
    words = [word.lower() for word in (_WORDS if name.isascii() else _ANY_WORDS).findall(name)]
    if not words or (len(words) > 1 and words[-1] in _ABOUT):
        return False
    if any(word in _SECRET or (word.endswith(_ENDS) and word not in _NO_SECRET) for word in words):
        return True
    joined = "_".join(words)
    return (
        _GLUED.search(joined) is not None
        or _GLUED.search("".join(words)) is not None
        or name.endswith(("_KEY", "_PAT", "_KEYS"))
        or words in (["connection"], ["conn"])
    )


@lru_cache(1024)
def counts_tokens(name: str) -> bool:
    """True for a name such as ``input_tokens``, whose number is a count and no secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    return words == ["tokens"] or (
        any(word in ("token", "tokens") for word in words)
        and (words[-1] == "tokens" or any(word in _COUNTS for word in words))
    )


def is_plain_value(value: str, name: str = "") -> bool:
    """True for what stands in the place of a secret and is none: ``none``, a type, ``$PASSWORD``, ``get_token()``."""
    whole = value.strip("\\\"'`")
    bare = _ENDING.sub("", whole)
    return (
        not bare
        or bare.lower() in _PLAIN
        or (bare != "" and name.lower().endswith(bare.lower()) and is_secret_name(bare))
        or (whole != bare and _CODE_NAME.fullmatch(bare) is not None and is_secret_name(bare))  # f(userToken);
        or (name == "auth" and bare.isalpha() and bare.islower())  # the subject of a commit
        or (_DOTTED.fullmatch(bare) is not None and is_secret_name(bare.rpartition(".")[2]))  # token = user.token
        or _REFERENCE.fullmatch(bare) is not None
        or _REFERENCE.fullmatch(whole) is not None
    )
