"""The demo's agent. It uses neither a model nor a network. Each function below writes one answer.

A word in the prompt selects the answer, such as "plan". If the prompt has no known word, the agent lists them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import anyio

from claude_wire.agent import Agent, Turn
from claude_wire.messages import (
    ImageBlock,
    InitializeRequest,
    InitializeResponse,
    ModelInfo,
    SlashCommand,
    TaskNotificationMessage,
    TaskStartedMessage,
)
from claude_wire_kit.commands.guide.project import BROKEN, FIXED, SOURCE
from claude_wire_kit.commands.guide.tools import TOOLS, use
from claude_wire_kit.commands.guide.waking import WOKEN, wake

#: Seconds between two words of an answer.
PACE = 0.015
#: The invented price per word in US dollars. The agent has no real cost to report.
WORD_USD = 0.00002

#: How long the background subagent works.
BACKGROUND_SECONDS = 5.0

#: The number of parts of the long answer.
PARTS = 12
TESTS = "python -m unittest -v"


async def words(text: str) -> AsyncIterator[str]:
    """Yield text word by word, as a model writes it."""
    for word in re.findall(r"\S+\s*|\s+", text):
        await anyio.sleep(PACE)
        yield word


async def say(turn: Turn, text: str) -> None:
    """Stream an answer, and report its tokens and cost."""
    count = len(text.split())
    turn.usage(input_tokens=len(turn.text.split()), output_tokens=count, cost_usd=count * WORD_USD)
    await turn.stream(words(text))


# --- answers


async def greet(turn: Turn) -> None:
    await say(
        turn,
        "Hello! I am a small agent that runs on this machine, without a model, an account or a network. I work on a "
        "tiny project: a shop whose total is **one cent too high**. Ask me for one of these:\n\n"
        f"{menu()}\n\nOne word is enough. You can stop me at any time.",
    )


def menu() -> str:
    """Return the topics as a Markdown table."""
    return "\n".join(["| Ask for | to see |", "|---|---|", *(f"| {one.ask} | {one.shows} |" for one in TOPICS)])


async def fix(turn: Turn) -> None:
    await turn.thinking(
        "`total()` rounds each item, and then adds them up. Three pens at $0.936 give 3 x 0.94 = 2.82, but the "
        "customer owes 2.81. It should round the sum, not the items."
    )
    await say(turn, "First I look for the code that adds up the cart.")
    await use(turn, "Grep", pattern="def total")
    seen = await use(turn, "Read", file_path=SOURCE)
    assert seen is not None  # reading does not need permission
    if BROKEN in str(seen.structured):
        old, new, done = (
            BROKEN,
            FIXED,
            "The code now rounds the sum instead of each item. Say **run the tests** to check.",
        )
    else:
        old, new, done = (
            FIXED,
            BROKEN,
            "The bug was already fixed, so I put the **old line back**. Ask again to fix it.",
        )
    result = await use(turn, "Edit", file_path=SOURCE, old_string=old, new_string=new)
    await say(turn, done if result else "Then I leave the file unchanged.")


async def run_tests(turn: Turn) -> None:
    await say(turn, "I run the project's tests.")
    result = await use(turn, "Bash", command=TESTS, description="Run the tests")
    if result is None:
        await say(turn, "Then I do not run them.")
    elif result.is_error:
        await say(turn, "**One test fails**: the discount is rounded for each item. Say **fix the bug**.")
    else:
        await say(turn, "All tests pass.")


async def question(turn: Turn) -> None:
    asked = {
        "question": "How should the shop round a total?",
        "header": "Rounding",
        "multiSelect": False,
        "options": [
            {"label": "Half up", "description": "2.345 becomes 2.35, as most people expect."},
            {
                "label": "Half to even",
                "description": "2.345 becomes 2.34. Over many carts, the differences cancel out.",
            },
            {"label": "Always down", "description": "The customer never pays more."},
        ],
    }
    also = {
        "question": "Which currencies should it support?",
        "header": "Currencies",
        "multiSelect": True,
        "options": [
            {"label": "Dollar", "description": "Two decimal digits."},
            {"label": "Yen", "description": "No decimal digits."},
            {"label": "Dinar", "description": "Three decimal digits."},
        ],
    }
    result = await use(turn, "AskUserQuestion", questions=[asked, also])
    answers: dict[str, str] = {} if result is None else result.structured["answers"]
    if not answers:
        await say(turn, "You did not choose, so the shop stays unchanged.")
        return
    chosen = "\n".join(f"- {question} **{answer}**" for question, answer in answers.items())
    await say(turn, f"You have decided:\n\n{chosen}")


async def review(turn: Turn) -> None:
    """Run two subagents, and report the progress with a task list."""
    steps = ["Find the callers", "Read the tests", "Summarize"]
    await todo(turn, steps, 0)
    found: list[str] = []
    for number, (name, look) in enumerate([("Explore", look_for_callers), ("test-reader", read_tests)]):
        task = {"description": steps[number], "subagent_type": name, "prompt": f"{steps[number]} of total()."}
        call = await turn.use_tool("Task", task)
        async with turn.subagent(call, description=steps[number], kind=name) as helper:
            found.append(await look(helper))
        await turn.tool_result(call, found[-1])
        await todo(turn, steps, number + 1)
    await say(turn, "My two subagents are back:\n\n" + "\n".join(f"{n}. {one}" for n, one in enumerate(found, 1)))
    await todo(turn, steps, len(steps))


async def look_for_callers(helper: Turn) -> str:
    result = await use(helper, "Grep", pattern="total(")
    assert result is not None
    count = len(str(result.content).splitlines())
    text = f"`total(` is on {count} lines of the project."
    await say(helper, text)
    return text


async def read_tests(helper: Turn) -> str:
    result = await use(helper, "Read", file_path="tests/test_cart.py")
    assert result is not None
    text = f"There are {str(result.content).count('def test_')} tests, one of them about a discount."
    await say(helper, text)
    return text


async def todo(turn: Turn, steps: list[str], done: int) -> None:
    states = ["completed"] * done + ["in_progress"] * (done < len(steps)) + ["pending"] * len(steps)
    todos = [{"content": step, "status": state, "activeForm": step} for step, state in zip(steps, states, strict=False)]
    await use(turn, "TodoWrite", todos=todos)


async def background(turn: Turn) -> None:
    """Start a background subagent. When it ends, another turn begins, and :func:`report` answers."""
    if "background" in turn.session.state:
        await say(turn, "It is already working. Wait for its report.")
        return
    about = "Check the links of the README"
    task = {"description": about, "subagent_type": "link-checker", "prompt": about, "run_in_background": True}
    call = await turn.use_tool("Task", task)
    ids: dict[str, Any] = {"task_id": f"task_{call.id}", "tool_use_id": call.id, "session_id": turn.session.id}
    await turn.emit(
        TaskStartedMessage(
            **ids,
            uuid=str(uuid4()),
            description=about,
            subagent_type="link-checker",
            task_type="local_agent",
            is_backgrounded=True,
        )
    )
    await turn.tool_result(call, "Async agent launched successfully.")
    turn.session.state["background"] = ids
    wake(BACKGROUND_SECONDS)
    await say(
        turn,
        f"A subagent now works in the background for {BACKGROUND_SECONDS:g} seconds. My turn is done, but the run is "
        "not. Look elsewhere: the page tells you when the run is done. Meanwhile, you can ask me for anything else.",
    )


async def report(turn: Turn) -> None:
    """Report the result of the background subagent."""
    ids: dict[str, Any] | None = turn.session.state.pop("background", None)
    if ids is None:
        return
    links = (Path(turn.session.cwd) / "README.md").read_text(encoding="utf-8").count("](")
    summary = f"The README has {links or 'no'} links."
    await turn.emit(
        TaskNotificationMessage(**ids, uuid=str(uuid4()), status="completed", output_file="", summary=summary)
    )
    await say(turn, f"My subagent is back from the background: {summary}\n\n")


async def plan(turn: Turn) -> None:
    text = (
        "## Plan\n\n1. Find the line in `shop/cart.py` that rounds each item\n2. Round the sum instead\n"
        "3. Report the change\n\nI change nothing else."
    )
    await say(turn, "I have a plan, and have not changed anything yet. May I go ahead?")
    result = await use(turn, "ExitPlanMode", plan=text)
    if result is None:
        await say(turn, "Then I change nothing. Tell me what to change in the plan.")
        return
    if turn.session.permission_mode == "plan":
        turn.session.permission_mode = "default"
    await fix(turn)


async def error(turn: Turn) -> None:
    """Show two failures: a tool reads a missing file, then the turn raises."""
    await say(turn, "I read a file that does not exist, and then I fail.")
    await use(turn, "Bash", command="cat no-such-file.txt", description="Read a file that does not exist")
    raise RuntimeError("The visitor wanted to see an error, so here is one. The next prompt works again.")


async def count(turn: Turn) -> None:
    await say(
        turn, "I count to 2,000. Press **Stop** when you have seen enough.\n\n" + " ".join(map(str, range(1, 2001)))
    )


async def long_answer(turn: Turn) -> None:
    paragraphs = [
        f"### Part {number}\n\nThis is part {number} of {PARTS}. A long answer arrives in pieces, and the page appends "
        "each piece. Scroll up while I write: the page stays where you are reading."
        for number in range(1, PARTS + 1)
    ]
    await say(turn, "\n\n".join(paragraphs))


async def markdown(turn: Turn) -> None:
    await say(turn, SAMPLE)


SAMPLE = """\
# A little of everything

Text can be **bold**, *italic*, ~~gone~~ or `code`, and has [links](https://docs.python.org/3/library/decimal.html).

- pens
  - red
  - green
- books

1. count
2. add up
3. round

- [x] find the fault
- [ ] correct it

> A total is rounded once.

| item | price | count |
|:-----|------:|:-----:|
| pen | 1.04 | 3 |
| book | 12.00 | 1 |

```python
from decimal import Decimal, ROUND_HALF_UP

def cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
```

```diff
-return round(amount, 2)
+return cents(amount)
```
"""


async def picture(turn: Turn) -> None:
    await say(turn, "This is the logo of the shop.")
    await use(turn, "Read", file_path="logo.png")


async def model(turn: Turn) -> None:
    await say(turn, f"I am `{turn.session.model}`, in the permission mode `{turn.session.permission_mode}`.")


class Topic(NamedTuple):
    """An answer that a visitor can ask for.

    Attributes:
        name: the name of the slash command.
        ask, shows: the cells of :func:`menu`.
        words: a regular expression; a prompt with a match gets this answer.
        answer: answers a turn.
    """

    name: str
    ask: str
    shows: str
    words: str
    answer: Callable[[Turn], Awaitable[None]]


TOPICS = [
    Topic("fix", "**fix** the bug", "thinking, a search, a permission question, a diff", r"fix|bug|diff|edit", fix),
    Topic("test", "run the **test**s", "a command, its output and its exit code", r"tests?|command", run_tests),
    Topic("question", "a **question**", "choices for you", r"question|ask me|choices?", question),
    Topic("review", "a **review**", "a list of steps, and two subagents", r"review|subagents?|todo|progress", review),
    Topic("plan", "a **plan**", "a plan that you approve or reject", r"plan", plan),
    Topic("background", "**background** work", "a run that continues after its turn", r"background", background),
    Topic("markdown", "some **markdown**", "lists, a table, code", r"markdown|table|lists?|code", markdown),
    Topic("picture", "the **picture**", "an image that a tool returns", r"picture|image|logo", picture),
    Topic("long", "a **long** answer", "text that streams", r"long", long_answer),
    Topic("count", "**count**", "work that you can stop", r"count|stop|interrupt", count),
    Topic("error", "an **error**", "a tool that fails, and a turn that fails", r"errors?|fail|crash", error),
    Topic("model", "which **model**", "the model and the permission mode", r"model|mode", model),
]


async def answer(turn: Turn) -> None:
    text = turn.text
    if WOKEN in text:  # the same turn may also have a waiting prompt
        await report(turn)
        text = text.replace(WOKEN, "").strip()
        if not text:
            return
    content = turn.prompt.message.content
    images = [] if isinstance(content, str) else [block for block in content if isinstance(block, ImageBlock)]
    if images:
        await say(
            turn, f"You sent {len(images)} image{'s' * (len(images) > 1)}. I cannot see, but I received everything."
        )
        return
    for one in TOPICS:
        if re.search(rf"(?<!\w)(?:{one.words})(?!\w)", text, re.IGNORECASE):
            # In plan mode, show the plan before changing anything.
            await (plan(turn) if one.answer is fix and turn.session.permission_mode == "plan" else one.answer(turn))
            return
    await greet(turn)


def offer(request: InitializeRequest) -> InitializeResponse:
    """Answer ``initialize`` with the commands and models for the host's menus."""
    commands = [SlashCommand(name=one.name, description=one.shows.capitalize(), argumentHint="") for one in TOPICS]
    models = [
        ModelInfo(value="guide", displayName="Guide", description="The default"),
        ModelInfo(value="guide-mini", displayName="Guide mini", description="The same agent by another name"),
    ]
    return InitializeResponse(commands=commands, models=models)


agent: Agent = Agent(
    answer,
    requests={InitializeRequest: offer},
    model="guide",
    version="1.0.0",
    init={"tools": TOOLS, "slash_commands": [one.name for one in TOPICS], "agents": ["Explore", "test-reader"]},
)
