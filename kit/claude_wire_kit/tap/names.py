"""Find secrets by their names: ``DB_PASS=...``, ``"dbPass": ...``, ``x-auth: ...``, "the password is ...".

Separators, capitals and digits split a name into words. A name with one secret word is a secret name. To be fast, one
pattern first searches for :data:`STEMS`. Each hit is extended to the whole name. If the name is secret, other patterns
search for its value around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from claude_wire_kit.tap.chance import UUID

# ruff: noqa: SIM905 - a list of words is easier to read and to change as one text

_WORDS, _ANY_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"), re.compile(r"[^\W\d_]+")

#: A name that contains one of these words is the name of a secret.
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
#: Endings of compound words such as ``pgpassword`` and ``mysqlpwd``.
_ENDS = ("pass", "passwd", "pwd", "password", "passphrase", "secret", "secrets", "token", "creds", "cookie")
_NO_SECRET = frozenset("bypass compass encompass surpass trespass overpass underpass subtoken pretoken".split())
#: A name such as ``api_key`` is secret: one of these words, followed by ``key``.
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
#: A name that ends with one of these words describes a secret but is not the name of one, such as ``token_type``.
_ABOUT = frozenset("rate type policy length path file filename name field strength".split())
#: If a token name contains one of these words, it is a count, such as ``max_tokens``.
_COUNTS = frozenset(
    """
    max min count counts counter total input output used usage limit budget cache cached prompt completion num number
    per thinking reasoning remaining window length size creation read cost context ephemeral estimated saved left
    """.split()
)
#: Harmless values for fields with a secret name.
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

#: Each secret name contains one of these stems. The search is faster with few different first letters, so there is
#: "heimnis" instead of "geheimnis".
STEMS = (
    *("pass", "pwd", "pw", "psw", "secret", "token", "key", "cred", "auth", "bearer", "jwt", "otp", "pin", "cookie"),
    *("signature", "mnemonic", "phrase", "psk", "ssn", "cvv", "cvc", "dsn", "sid", "sess", "connection", "webhook"),
    *("kennwort", "contrase", "senha", "mdp", "wacht", "salasana", "senord", "parola", "heslo", "haslo", "jelsz"),
    *("heimnis", "angsc", "angsd", "angskod", "hasł", "парол", "密", "口令", "パス", "비밀"),
)


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """Return True if a field, variable or flag with this name has a secret value."""
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
    """Return True if the value of a field with this name is a count, as for ``input_tokens``."""
    words = [word.lower() for word in _WORDS.findall(name)]
    return words == ["tokens"] or (
        any(word in ("token", "tokens") for word in words)
        and (words[-1] == "tokens" or any(word in _COUNTS for word in words))
    )


def is_plain_value(value: str, name: str = "") -> bool:
    """Return True if a value of the field ``name`` is harmless: ``none``, a type, ``$PASSWORD``, ``get_token()``."""
    whole = value.strip("\\\"'`")
    bare = _ENDING.sub("", whole)
    return (
        not bare
        or bare.lower() in _PLAIN
        or (bare != "" and name.lower().endswith(bare.lower()) and is_secret_name(bare))
        or (whole != bare and _CODE_NAME.fullmatch(bare) is not None and is_secret_name(bare))  # f(userToken);
        or (name == "auth" and bare.isalpha() and bare.islower())  # "auth: fix", as in the subject of a commit
        or (_DOTTED.fullmatch(bare) is not None and is_secret_name(bare.rpartition(".")[2]))  # token = user.token
        or _REFERENCE.fullmatch(bare) is not None
        or _REFERENCE.fullmatch(whole) is not None
    )


# --- in text ----------------------------------------------------------------------------------------------------------

#: Maximum number of characters in a name.
MAX_NAME = 80

_STEM = re.compile("|".join(map(re.escape, STEMS)))
_ANY_STEM = re.compile(_STEM.pattern, re.I)
_NAME = re.compile(r"[\w.$-]+")

# The following patterns match right after a name. Group ``s`` or ``t`` is the value.
_ASSIGNED = re.compile(
    r"(?!\)+:[ \t]*\n)(?:[ ](?:code|value|number|key|token|string|d'ordine))?"
    r"(?:\\*[\"'`]|[\])?!*]){0,6}[ \t]{0,20}(?:=>|:=|\?=|[!=]?==?|::(?=\s)|:(?![:?])|->)\s{0,40}"
    r"(?:(?:[rbfuRBFUNE]{0,2}|@)(?P<q>\\*(?:\"\"\"|'''|[\"'`]))(?P<s>(?:(?!(?P=q))(?:\\.|[^\\])|\\(?!.))*)"
    r"|(?P<t>&str|[|>][+-]?\d?[ \t]*\n(?:[ \t]+[^\n]*\n?)+|[^\s\"'`&<>|{}\[\]][^\s\"'`&<>]*))",
    re.S,
)
_OF_FLAG = re.compile(r"[ \t]+(?:<<<[ \t]*)?(?P<s>\"[^\"]*\"?|'[^']*'?|[^\s-]\S*)")
_OF_ELEMENT = re.compile(r"(?:\s[^<>]{0,300})?>(?P<s>[^<]{1,10000})")
_OF_PROPERTY = re.compile(
    r"[\"']?[\s,;/{]{0,40}"
    r"(?:(?:--)?[\"']?(?!(?i:name|key|val|value|default|content)\b)\w{1,30}[\"']?(?:\s{0,5}[=:]\s{0,5}|[ ])"
    r"(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|[^\s\"',;<>{}]{1,100})[\s,;]{1,40}){0,4}"
    r"(?:(?:--)?[\"']?(?i:value|default|content|val)[\"']?(?:\s{0,5}[=:]\s{0,5}|[ ])[\"']?"
    r"|>(?:\s{0,40}<(?:value|string)>\s{0,40})?)"
    r"(?P<s>[^\"'<>\n]{1,10000})"
    r"|</(?:key|string)>\s{0,200}<(?:string|data|integer)>(?P<t>[^<]{1,10000})"
)
_OF_COLUMN = re.compile(
    r"(?:[ \t]{2,}|\t|[ ](?=[A-Za-z]*[^\sA-Za-z.,:;!?)|])|[ \t]{0,80}\|[ \t](?=[A-Za-z]*[^\sA-Za-z.,:;!?)|]))"
    r"(?P<s>[^\s|]\S*)[ \t]*\|?[ \t]*(?:$|\n)"
)
#: A quoted value after a space, as in Gradle: ``storePassword 'winter24'``.
_QUOTED = re.compile(
    r"[ \t]{1,5}(?:(?:\|\||\?\?|or)[ \t]{1,5})?(?P<q>[\"'])(?P<s>(?=[^\"'\s]{0,100}\d)[^\"'\s]{5,1000})(?P=q)"
)
#: A literal in a call: ``check_password("winter24")``, ``auth=("bob", "winter24")``.
_LITERAL = re.compile(
    r"=?[ ]?\((?:[\"'\w.@-]{1,60},[ ]?)?[\"'](?P<s>(?=[^\"'\s]{0,100}\d)[^\"'\s]{5,1000})[\"'],?\s{0,20}\)"
)
_ARGUMENT = re.compile(r"(?<=[(=])[\"'](?P<s>(?=[^\"'\s]{0,100}\d)[^\"'\s]{5,1000})[\"']")
_SET = re.compile(r"[ \t]+[\"']?(?P<s>(?=[^\s\"']{0,100}\d)[^\s\"']{5,1000})")
#: Values of several words: passphrases, and seeds or passwords in groups of four characters.
_PHRASE, _GROUPS = re.compile(r"\w+(?:[ -]\w+)+"), re.compile(r"\w{4}(?:[ -]\w{4}){2,7}(?!\w)")
# The following patterns match the text before a name.
_IN_ELEMENT = re.compile(r"<(?:\w{1,40}:)?\Z")
_IN_PROPERTY = re.compile(
    r"(?i:name|key|id|field|header|variable)\s{0,5}[=:]?\s{0,5}[\"']?(?:[\w/-]{0,40}/)?\Z|<(?:key|string)>\Z"
)
_OF_CALL = re.compile(r"[\"']\s{0,5},\s{0,5}[a-zA-Z]?[\"'](?P<s>[^\"']{1,1000})")
_IN_SET = re.compile(r"\bset(?:env|x)?[ \t]+(?:-\S+[ \t]+)?[^\s=]{0,40}\Z")
#: The secret may come before the name: "use winter24 as the password".
_SAID_BEFORE = re.compile(
    r"(?<!\S)[\"'`]?(?P<s>(?=\S{0,60}\d)(?=\S{0,60}[A-Za-z])[^\s\"'`]{5,60})[\"'`]?"
    r"[ ](?:as|is)[ ](?:(?:the|my|your|our|a|an)[ ])?\Z"
)
_IN_CALL = re.compile(r"\(\s{0,5}[\"']\Z")
_AT_BEGIN = re.compile(r"(?:\A|\n)[ \t]*(?:\|[ \t]*)?\Z")

#: A name in a sentence, a verb, and the secret.
_SENTENCE = re.compile(
    r"(?i)(?:pass ?(?:word|phrase|code)|passwd|pwd|pin(?: code)?|secret(?: key)?|token|key|credentials?"
    r"|passwort|kennwort|passe|contraseña|senha|wachtwoord|пароль)s?\b"
    r"(?:[\"'*_`)]{0,3}\s+(?:(?:for|für|pour|para)\s+\S{1,60}\s+)?(?P<verb>is|was|are|to|of|ist|lautet|est|es)"
    r"[ \t]*:?\s+[\"'*_`(]{0,3}"
    r"(?P<s>[^\s\"'*`]{3,})"
    r"|[ \t]{1,20}(?:\d{1,2}[ \t]{1,20})?[\"'`(*]{0,2}(?P<t>(?=[^\s]{0,100}\d)(?=[^\s]{0,100}[^\W\d_])[^\s\"'`*,)]{5,})"
    rf"|\W{{1,3}}(?P<u>{UUID.pattern}))"
)
#: Words that are not a password, although they follow "the password is", as in "the password is wrong".
_NOT_SAID = re.compile(
    r"(?i)(?:not|an?|the|in|too|so|now|no|never|always|only|also|still|just|here|there|this|that|it|what|how|where|your|my"
    r"|our|their|empty|wrong|correct|valid|invalid|missing|ok|okay|fine|set|optional|blank|secret|secure|weak|strong|public"
    r"|private|same|different|unknown|read|sent|kept|built|gone|lost|short|long|new|old|absent|present|plain|text|safe|used"
    r"|in|at|by|for|from|on|with|of|to|as|be|being|been|all|any|one|two|each|either|both|about|per|more|less|due|up|out"
    r"|required|success|access|understanding|note|str|string|int|bytes|none|null|true|false|a|b|c"
    r"|\w{2,}(?:ed|ing|able|ible|ly|ary|ent|ant|ive|less|ful|ous|ory))[.,;:!?)]{0,3}"
)
_COUNT = re.compile(r"[\d_.,^*kKMG~ ]{1,16}[\s,;:)\]}]*")


def named_secrets(text: str) -> list[tuple[int, int]]:
    """Find the values of secret names in text. Returns their (begin, end) positions, in order."""
    lowered = text.lower()
    # The positions in the lower-case text are only valid in the text if both have the same length.
    hits = _STEM.finditer(lowered) if len(lowered) == len(text) else _ANY_STEM.finditer(text)
    spans: list[tuple[int, int]] = []
    done = -1
    for hit in hits:
        stem = hit.start()
        if stem < done:
            continue
        begin = stem
        while begin > max(done, stem - MAX_NAME, 0) and (text[begin - 1].isalnum() or text[begin - 1] in "_.$-"):
            begin -= 1
        name = _NAME.match(text, begin)
        if name is None:
            continue
        done = name.end()
        for place in _values(text, begin, name[0], done):
            if spans and place[0] < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(place[1], spans[-1][1]))
            else:
                spans.append(place)
        sentence = _SENTENCE.match(text, stem)
        if sentence is not None and (stem == begin or not text[stem - 1].isalnum()) and _is_said(sentence):
            group = next(one for one in ("s", "t", "u") if sentence[one] is not None)
            if not spans or sentence.start(group) >= spans[-1][1]:
                spans.append(sentence.span(group))
    return spans


def _values(text: str, begin: int, name: str, end: int) -> Iterator[tuple[int, int]]:
    """Yield the positions of a name's values.

    Cheap checks choose the patterns to try. The search ends with the first pattern that finds a value.
    """
    if len(name) > MAX_NAME or not is_secret_name(name):
        return
    before = text[max(begin - 60, 0) : begin]
    tails = [_ASSIGNED]
    if text.startswith((" ", "\t"), end):
        tails.append(_QUOTED)
    if text.startswith(("(", "=(", "= ("), end):
        tails.append(_LITERAL)
    if name.startswith("-"):
        tails.append(_OF_FLAG)
    if before.endswith(("<", ":")) and _IN_ELEMENT.search(before):
        tails.append(_OF_ELEMENT)
    if _IN_PROPERTY.search(before):
        tails.append(_OF_PROPERTY)
    if before.endswith(("'", '"')) and _IN_CALL.search(before):
        tails += _OF_CALL, _OF_PROPERTY
    if "set" in before and _IN_SET.search(before):
        tails.append(_SET)
    if " as " in before or " is " in before:
        said = _SAID_BEFORE.search(before)
        if said is not None:
            yield begin - len(before) + said.start("s"), begin - len(before) + said.end("s")
    if text[begin - 1 : begin] in ("", "\n", " ", "\t", "|") and _AT_BEGIN.search(before):
        tails.append(_OF_COLUMN)
    for tail in tails:
        found, is_found = tail.match(text, end), False
        while found is not None:
            group = "t" if "t" in found.re.groupindex and found["t"] is not None else "s"
            value = found[group]
            if value and not is_plain_value(value, name) and not (counts_tokens(name) and _COUNT.fullmatch(value)):
                yield found.start(group), _end(text, name, found, group)
                is_found = True
            # Keep searching, because this may be a type (`password: str = "x"`) or an old value (`"x" -> "y"`).
            if tail is _ASSIGNED:
                found = _ASSIGNED.match(text, found.end()) or _ARGUMENT.match(text, found.end())
            else:
                found = None
        if is_found:
            return


def _end(text: str, name: str, found: re.Match[str], group: str) -> int:
    """Return the end of a value, including the other words of a passphrase or groups of a seed."""
    begin, end = found.span(group)
    more = (_PHRASE if "phrase" in name.lower() else _GROUPS).match(text, begin)
    return max(end, more.end()) if more else end


def _is_said(sentence: re.Match[str]) -> bool:
    """Return True if a sentence states a secret. False if it is only about secrets."""
    if sentence["verb"] is None:
        value = sentence["t"] or sentence["u"]
        return not is_plain_value(value)
    value = sentence["s"]
    if _NOT_SAID.fullmatch(value) or is_plain_value(value):
        return False
    return sentence["verb"].lower() not in ("to", "of", "es", "est", "are") or any(map(str.isdigit, value))
