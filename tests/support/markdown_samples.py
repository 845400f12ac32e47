"""Fifty Markdown texts, in the style of models and from CommonMark and GFM, and some attacks."""

from __future__ import annotations

__all__ = ["ATTACKS", "SAMPLES"]

SAMPLES: dict[str, str] = {
    "paragraph": "One line.",
    "paragraphs": "One line\nand another.\n\nA second paragraph.  \nWith a hard break.\\\nAnd another one.",
    "headings": "# One\n## Two\n### Three\n#### Four\n##### Five\n###### Six\n####### no heading\n#hashtag",
    "underlined headings": "Title\n=====\n\nSubtitle\n---\n\nA text.",
    "emphasis": "*em* _em_ **strong** __strong__ ***both*** ~~gone~~ snake_case_name 2 * 3 * 4 **not closed",
    "code in a line": "Run `make test`, or ``a ` b``, or `` ` ``; ` x ` and `<b>`.",
    "escapes": r"\*no em\* \# no heading \[no link\] \\ \` &amp; &lt;b&gt; &copy; &#65; &#x202a;",
    "bullets": "- one\n- two\n  - nested\n    - deeper\n- three",
    "other bullets": "* one\n* two\n\n+ another list\n+ goes on",
    "numbers": "1. one\n2. two\n   1. nested\n3. three",
    "numbers that begin later": "7. seven\n8. eight\n\n3) three\n4) four",
    "loose list": "- one\n\n- two\n\n  with a second paragraph\n\n- three",
    "list with code": "1. Install:\n\n   ```sh\n   pip install .\n   ```\n\n2. Run:\n\n       indented code\n",
    "list after a paragraph": "These are missing:\n- one\n- two\nand this belongs to two.\n\n14. no list before\n",
    "tasks": "- [ ] open\n- [x] done\n- [X] done, too\n- [y] no task\n- [ ]no task\n- [ ] with `code` and **strong**",
    "tasks within": "1. first\n   - [x] a\n   - [ ] b\n\n   - [ ] loose\n2. [x] numbered",
    "quote": "> quoted\n> goes on\nlazily\n\n> # heading\n> - list\n>\n> > nested",
    "fence": '```python\ndef f(x: int) -> str:\n    return f"<{x}>"  # a note\n```',
    "fence of tildes": "~~~\n```\nnot a fence within\n```\n~~~",
    "fence that is open": "Look:\n```js\nconst a = 1;\n\nlet b = `two`;",
    "fence with an unknown language": "```nosuchlanguage\na < b && c\n```\n\n``` \nno language\n```",
    "fence with more in its line": '```rust title="main.rs"\nfn main() { println!("hi"); }\n```',
    "longer fences": "````markdown\n```python\nx = 1\n```\n````\n\nafter",
    "indented fence": "  ```yaml\n  a: 1\n    b: 2\n  ```\n\n    ```\n    code\n",
    "indented code": "Text:\n\n    a = 1\n\n    b = 2\n\nafter",
    "diff": "```diff\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n```",
    "json": '```json\n{"a": [1, 2.5e3, true, null], "b": "text \\u202e"}\n```',
    "shell": '```bash\n$ for f in *.py; do echo "$f"; done | sort -u > out.txt\n```',
    "empty code": "```\n```\n\n``` \n\n```",
    "table": "| name | count |\n|------|------:|\n| a | 1 |\n| b | 22 |",
    "table without edges": "a | b | c\n:-- | :-: | --:\n1 | 2 | 3\n`x` | **y** |",
    "table with bars in cells": "| a \\| b | `c \\| d` |\n|---|---|\n| 1 | 2 | 3 |\n| only one |\n\nafter",
    "no table": "| a | b |\n| c | d |\n\na | b\n- | -| -",
    "table in a list": "- point\n\n  | a | b |\n  |---|---|\n  | 1 | 2 |",
    "links": '[site](https://example.com) [titled](https://example.com/a?b=c&d=e "A <title>") <https://example.com/x>',
    "bare links": "See https://example.com/a_b?c=d. (http://example.com/(x)) www.example.com README.md a@example.com",
    "references": "[one][a], [two], [no][missing].\n\n[a]: https://example.com/a\n[two]: <https://example.com/b> 'Two'",
    "links to files": (
        "[app.py:42](src/app.py#L42), [up](../README.md), [root](/etc/hosts), [part](#part), [host](//evil.example/x)"
    ),
    "links to scripts": (
        "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](vbscript:x) [e](file:///x)"
    ),
    "pictures": (
        "![alt *text*](https://example.com/x.png) ![](x.png) [![badge](https://b.example/b.svg)](https://b.example)"
    ),
    "html": '<b>bold</b> <script>alert(1)</script>\n\n<div onclick="x">\n\n*em*\n\n</div>\n\n<!-- note -->',
    "rules": "one\n\n---\n\n***\n\n_ _ _\n\ntwo",
    "mixed languages": (
        "Zuerst: größer.\n\n\u05e9\u05dc\u05d5\u05dd `code` \u05e2\u05d5\u05dc\u05dd\n\n- "
        "\u0645\u0631\u062d\u0628\u0627\n- hello\n\n\u4f60\u597d**\u4e16\u754c**\u3002"
    ),
    "emoji": "Done \U0001f389 **\U0001f680 go** :tada: \u2705 `\U0001f600`",
    "odd whitespace": "a\u00a0b\n\n\tcode by tab\n\n-\ttab\n\n   three blanks\n\n\n\n\nmany lines",
    "line ends": "one\r\ntwo\r\n\r\n- a\r\n- b\r\n\r\n```\r\ncode\r\n```",
    "nothing": "  \n\n",
    "deep": "> - > 1. > - deep\n\n" + "- " * 6 + "x\n\n" + "> " * 12 + "y",
    "answer of a model": (
        "I'll fix this in **three** steps:\n\n1. **Read** `parser.py`\n2. Change `parse()`:\n   ```python\n"
        "   if not line:\n"
        "       continue\n   ```\n3. Run the tests\n\n## Result\n\n| test | before | after |\n|---|:-:|---|\n"
        "| `test_empty` | ❌ | ✅ |\n\n"
        "> **Note**: nothing else changed. See [the guide](https://docs.example.com/guide).\n\n"
        "- [x] code\n- [ ] docs\n"
    ),
    "summary of a change": (
        "Done. Summary:\n\n- `src/a.rs`: *removed* the second copy\n- `src/b.rs`\n  - new: `fn merge`\n"
        "  - gone: ~~`fn join`~~\n\n"
        "```diff\n-fn join()\n+fn merge()\n```\n\nRun it:\n\n```console\n$ cargo test\n"
        "test result: ok. 3 passed; 0 failed\n```\n\n---\n"
        "Next: https://example.com/next?"
    ),
}
assert len(SAMPLES) == 50

#: Each text tries to create an element that runs a script, loads something or links to a dangerous URL.
ATTACKS = [
    "[a](javascript:window.hit=1)",
    "[a](java\nscript:window.hit=1)",
    "[a](\x01javascript:window.hit=1)",
    "[a](&#106;avascript:window.hit=1)",
    "[a](javascript&colon;window.hit=1)",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "<javascript:window.hit=1>",
    "[a]\n\n[a]: javascript:window.hit=1",
    '![a](https://x.example/"onerror="window.hit=1)',
    '![a"onerror="window.hit=1](x)',
    '[a](https://x.example "title\\"onmouseover=\\"window.hit=1")',
    "![a](https://evil.example/pixel.png)",
    "```html\n<img src=x onerror=window.hit=1>\n```",
    '```"><img src=x onerror=window.hit=1>\ncode\n```',
    "`<img src=x onerror=window.hit=1>`",
    "<img src=x onerror=window.hit=1>",
    "<svg><style><img src=x onerror=window.hit=1></style></svg>",
    "<math><mi//xlink:href='data:x,<script>window.hit=1</script>'>",
    "<form action=//evil.example><button>x</button></form>",
    "| a |\n|---|\n| <img src=x onerror=window.hit=1> |",
    "- [x] <input onfocus=window.hit=1 autofocus>",
    "https://x.example/<script>window.hit=1</script>",
    "<a name=body><a id=log><img name=getElementById>",
]
