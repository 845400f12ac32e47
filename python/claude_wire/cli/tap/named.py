"""What stands beside the name of a secret in a text: assignments, flags, elements, columns and sentences.

A text is searched for the stems of such names once. What follows a name is looked at only there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from claude_wire.cli.tap.chance import UUID
from claude_wire.cli.tap.names import STEMS, counts_tokens, is_plain_value, is_secret_name

__all__ = ["named_secrets"]

#: A longer name is none.
NAME_CHARACTERS = 80

_STEM = re.compile("|".join(map(re.escape, STEMS)))
_ANY_STEM = re.compile(_STEM.pattern, re.I)
_NAME = re.compile(r"[\w.$-]+")

#: Each of these stands behind a name. ``s`` or ``t`` is the value.
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
#: As in a program: ``storePassword 'winter24'``.
_QUOTED = re.compile(
    r"[ \t]{1,5}(?:(?:\|\||\?\?|or)[ \t]{1,5})?(?P<q>[\"'])(?P<s>(?=[^\"'\s]{0,100}\d)[^\"'\s]{5,1000})(?P=q)"
)
#: A literal in a call: ``check_password("winter24")``, ``auth=("bob", "winter24")``.
_LITERAL = re.compile(
    r"=?[ ]?\((?:[\"'\w.@-]{1,60},[ ]?)?[\"'](?P<s>(?=[^\"'\s]{0,100}\d)[^\"'\s]{5,1000})[\"'],?\s{0,20}\)"
)
_ARGUMENT = re.compile(r"(?<=[(=])[\"'](?P<s>(?=[^\"'\s]{0,100}\d)[^\"'\s]{5,1000})[\"']")
_SET = re.compile(r"[ \t]+[\"']?(?P<s>(?=[^\s\"']{0,100}\d)[^\s\"']{5,1000})")
#: The rest of a value in several words: passphrases, and seeds and passwords in groups of four.
_PHRASE, _GROUPS = re.compile(r"\w+(?:[ -]\w+)+"), re.compile(r"\w{4}(?:[ -]\w{4}){2,7}(?!\w)")
#: What may stand before a name.
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

#: A name in a sentence, the words behind it, and the secret.
_SENTENCE = re.compile(
    r"(?i)(?:pass ?(?:word|phrase|code)|passwd|pwd|pin(?: code)?|secret(?: key)?|token|key|credentials?"
    r"|passwort|kennwort|passe|contraseña|senha|wachtwoord|пароль)s?\b"
    r"(?:[\"'*_`)]{0,3}\s+(?:(?:for|für|pour|para)\s+\S{1,60}\s+)?(?P<verb>is|was|are|to|of|ist|lautet|est|es)"
    r"[ \t]*:?\s+[\"'*_`(]{0,3}"
    r"(?P<s>[^\s\"'*`]{3,})"
    r"|[ \t]{1,20}(?:\d{1,2}[ \t]{1,20})?[\"'`(*]{0,2}(?P<t>(?=[^\s]{0,100}\d)(?=[^\s]{0,100}[^\W\d_])[^\s\"'`*,)]{5,})"
    rf"|\W{{1,3}}(?P<u>{UUID.pattern}))"
)
#: Words after "the password is", of sentences about passwords.
_ABOUT = re.compile(
    r"(?i)(?:not|an?|the|in|too|so|now|no|never|always|only|also|still|just|here|there|this|that|it|what|how|where|your|my"
    r"|our|their|empty|wrong|correct|valid|invalid|missing|ok|okay|fine|set|optional|blank|secret|secure|weak|strong|public"
    r"|private|same|different|unknown|read|sent|kept|built|gone|lost|short|long|new|old|absent|present|plain|text|safe|used"
    r"|in|at|by|for|from|on|with|of|to|as|be|being|been|all|any|one|two|each|either|both|about|per|more|less|due|up|out"
    r"|required|success|access|understanding|note|str|string|int|bytes|none|null|true|false|a|b|c"
    r"|\w{2,}(?:ed|ing|able|ible|ly|ary|ent|ant|ive|less|ful|ous|ory))[.,;:!?)]{0,3}"
)
_COUNT = re.compile(r"[\d_.,^*kKMG~ ]{1,16}[\s,;:)\]}]*")


def named_secrets(text: str) -> list[tuple[int, int]]:
    """Where in a text something stands beside the name of a secret: begins and ends, in order."""
    lowered = text.lower()
    # A capital may have small letters of another length.
    hits = _STEM.finditer(lowered) if len(lowered) == len(text) else _ANY_STEM.finditer(text)
    spans: list[tuple[int, int]] = []
    behind = -1
    for hit in hits:
        stem = hit.start()
        if stem < behind:
            continue
        begin = stem
        while begin > max(behind, stem - NAME_CHARACTERS, 0) and (
            text[begin - 1].isalnum() or text[begin - 1] in "_.$-"
        ):
            begin -= 1
        name = _NAME.match(text, begin)
        if name is None:
            continue
        behind = name.end()
        for place in _values(text, begin, name[0], behind):
            if spans and place[0] < spans[-1][1]:
                place = (spans[-1][0], max(place[1], spans[-1][1]))
                spans[-1] = place
            else:
                spans.append(place)
        sentence = _SENTENCE.match(text, stem)
        if sentence is not None and (stem == begin or not text[stem - 1].isalnum()) and _is_said(sentence):
            group = next(one for one in ("s", "t", "u") if sentence[one] is not None)
            if not spans or sentence.start(group) >= spans[-1][1]:
                spans.append(sentence.span(group))
    return spans


def _values(text: str, begin: int, name: str, end: int) -> Iterator[tuple[int, int]]:
    if len(name) > NAME_CHARACTERS or not is_secret_name(name):
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
            # A type may stand before the value, and an old value before the new one.
            if tail is _ASSIGNED:
                found = _ASSIGNED.match(text, found.end()) or _ARGUMENT.match(text, found.end())
            else:
                found = None
        if is_found:
            return


def _end(text: str, name: str, found: re.Match[str], group: str) -> int:
    begin, end = found.span(group)
    more = (_PHRASE if "phrase" in name.lower() else _GROUPS).match(text, begin)
    return max(end, more.end()) if more else end


def _is_said(sentence: re.Match[str]) -> bool:
    if sentence["verb"] is None:
        value = sentence["t"] or sentence["u"]
        return not is_plain_value(value)
    value = sentence["s"]
    if _ABOUT.fullmatch(value) or is_plain_value(value):
        return False
    return sentence["verb"].lower() not in ("to", "of", "es", "est", "are") or any(map(str.isdigit, value))
