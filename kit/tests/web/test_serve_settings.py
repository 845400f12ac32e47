"""Clients of the service change settings, answers, the queue and names, and find sessions, files and images."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.server import ServerProtocol

from claude_wire.messages import CommandLifecycleMessage, ControlResponse, InitMessage
from claude_wire.testing import Replay
from claude_wire_kit.commands.guide import command
from claude_wire_kit.commands.guide.project import PICTURE, write_project
from claude_wire_kit.supervisor.attach import connect
from claude_wire_kit.supervisor.frames import INITIALIZE_ID
from claude_wire_kit.web import Config, Profile, create_app, load_config
from claude_wire_kit.web import files as files_module
from claude_wire_kit.web import past as past_module
from claude_wire_kit.web import search as search_module
from claude_wire_kit.web.abilities import Abilities
from claude_wire_kit.web.files import find_files
from claude_wire_kit.web.server import TESTED_UVICORN, TESTED_WEBSOCKETS, ServiceServer
from folders import ROOT
from pages import blocks
from past_sessions import PAST, keep_session
from recordings import load
from served import TOKEN, EventReader, Served, agent_profile, served

Json = dict[str, Any]


class Guided:
    """A session with the demo agent."""

    def __init__(self, client: httpx.AsyncClient, id: str, reader: EventReader) -> None:
        self._client = client
        self._reader = reader
        self.id = id

    async def post(self, what: str, body: Json | None = None) -> httpx.Response:
        return await self._client.post(f"/sessions/{self.id}/{what}", **({} if body is None else {"json": body}))

    async def get(self, what: str) -> Any:
        return (await self._client.get(f"/sessions/{self.id}/{what}")).json()

    async def until(self, type: str, **fields: Any) -> Json:
        """Return the next event of a type with these fields."""
        while piece := await self._reader.piece():
            event: Json = json.loads(piece.partition(b"data: ")[2])
            if event["type"] == type and fields.items() <= event.items():
                return event
        raise AssertionError(type)


@asynccontextmanager
async def guided(folder: Path) -> AsyncIterator[Guided]:
    project = folder / "shop"
    write_project(project)
    guide = Profile(roots=[os.fspath(project)], argv=command())
    async with served(folder, guide=guide) as service, service.client() as client:
        id = await service.create(profile="guide")
        async with service.events(id) as reader:
            yield Guided(client, id, reader)


async def test_model_and_mode(tmp_path: Path) -> None:
    async with guided(tmp_path) as session:
        for body in ({"model": "guide-mini"}, {"permissionMode": "plan"}):
            assert (await session.post("settings", body)).status_code == 204
        await session.until("session_state", model="guide-mini", permissionMode="plan")
        await session.post("prompts", {"text": "Which model?"})
        said = await session.until("claude_response", content="I am `guide-mini`, in the permission mode `plan`.")
        assert "partial" not in said


@pytest.mark.parametrize(
    "body",
    [
        {"permissionMode": "bypassPermissions"},
        {"permissionMode": "dontAsk"},
        {"permissionMode": ""},
        {"model": ""},
        {"model": "x" * 201},
        {"argv": ["x"]},
    ],
)
async def test_a_client_cannot_have_the_cli_ask_nobody(tmp_path: Path, body: Json) -> None:
    async with guided(tmp_path) as session:
        assert (await session.post("settings", body)).status_code == 400


async def test_commands_and_models_are_there_before_the_first_prompt(tmp_path: Path) -> None:
    async with guided(tmp_path) as session:
        await session.until("session_state", abilities=1)
        abilities = await session.get("abilities")
        assert [one["value"] for one in abilities["models"]] == ["guide", "guide-mini"]
        assert {"value": "fix", "name": "fix"}.items() <= abilities["commands"][0].items()


async def test_choices_are_the_answer_to_a_question(tmp_path: Path) -> None:
    async with guided(tmp_path) as session:
        await session.post("prompts", {"text": "question"})
        asked = await session.until("permission_request", tool="AskUserQuestion")
        question = asked["input"]["questions"][0]["question"]
        answer = {"requestId": asked["requestId"], "allow": True}
        for wrong in ({"Who are you?": "x"}, {question: 1}):
            assert (await session.post("answers", {**answer, "answers": wrong})).status_code == 400
        assert (await session.post("answers", {**answer, "answers": {question: "Always down"}})).status_code == 204
        said = await session.until("claude_response", content=f"You have decided:\n\n- {question} **Always down**")
        assert "partial" not in said


async def test_another_tool_takes_no_answers(tmp_path: Path) -> None:
    async with guided(tmp_path) as session:
        await session.post("prompts", {"text": "fix"})
        asked = await session.until("permission_request", tool="Edit")
        body = {"requestId": asked["requestId"], "allow": True, "answers": {}}
        assert (await session.post("answers", body)).status_code == 400
        assert (await session.post("answers", {**body, "answers": None})).status_code == 204


async def test_a_prompt_of_the_queue_is_taken_back(tmp_path: Path) -> None:
    async with guided(tmp_path) as session:
        await session.post("prompts", {"text": "fix", "uuid": "first"})
        await session.until("permission_request")
        await session.post("prompts", {"text": "a picture", "uuid": "second"})
        await session.until("session_state", queued=["second"])
        assert (await session.post("withdraw", {"uuid": "second"})).status_code == 204
        await session.until("session_state", queued=[])
        taken = await session.post("withdraw", {"uuid": "first"})
        assert (taken.status_code, taken.json()["error"]) == (409, "taken")


async def test_images(tmp_path: Path) -> None:
    async with guided(tmp_path) as session:
        image = {"mediaType": "image/png", "data": base64.b64encode(PICTURE).decode()}
        assert (await session.post("prompts", {"text": "", "images": [image, image]})).status_code == 202
        assert (await session.until("user_prompt"))["attachments"] == 2
        await session.until("claude_response", content="You sent 2 images. I cannot see, but I received everything.")


async def test_a_session_is_renamed_ended_and_removed(tmp_path: Path) -> None:
    async with guided(tmp_path) as session:
        assert (await session.post("rename", {"name": "The shop"})).status_code == 204
        (info,) = (await session._client.get("/sessions")).json()["sessions"]
        assert info["name"] == "The shop"
        for name in ("", "x" * 201):
            assert (await session.post("rename", {"name": name})).status_code == 400
        assert (await session.post("remove")).json()["error"] == "running"
        assert (await session.post("stop")).status_code == 204
        await session.until("session_state", ended=True)
        assert (await session.post("remove")).status_code == 204
        assert (await session._client.get("/sessions")).json()["sessions"] == []
        for what in ("stop", "remove"):
            assert (await session.post(what)).status_code == 404


async def test_files_of_the_folder(tmp_path: Path) -> None:
    async with guided(tmp_path) as session:
        assert (await session.get("files?q=CART"))["files"] == ["shop/cart.py", "tests/test_cart.py"]
        assert "error" in await session.get(f"files?q={'x' * 201}")


async def test_a_search_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path) as service, service.client() as client:
        ids = [await service.create({"lines": 2, "mark": number}) for number in range(2)]
        for id in ids:
            async with service.events(id) as events:
                await events.until("turn_complete")
        assert [(await client.get(f"/search{query}")).status_code for query in ("", "?q=%20", f"?q={'x' * 201}")] == [
            400
        ] * 3
        found = (await client.get("/search", params={"q": '"MARK": 1'})).json()
        assert ([one["id"] for one in found["found"]], found["cut"]) == ([ids[1]], False)
        assert len(found["found"][0]["excerpts"]) == 3  # one from the prompt, two from texts
        assert (await client.get("/search", params={"q": "nothing has this"})).json() == {"found": [], "cut": False}
        monkeypatch.setattr(search_module, "MAX_BYTES", 1)
        assert (await client.get("/search", params={"q": "nothing has this"})).json() == {"found": [], "cut": True}


async def test_sessions_on_disk_of_allowed_folders_are_read_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", os.fspath(tmp_path / "cli"))
    inside, outside = tmp_path / "inside", tmp_path.parent
    inside.mkdir()
    keep_session(tmp_path / "cli", inside)
    keep_session(tmp_path / "cli", outside, "elsewhere")
    async with served(tmp_path) as service, service.client() as client:
        (one,) = (await client.get("/past")).json()["sessions"]
        assert (one["id"], one["title"], one["cwd"], one["profile"]) == (PAST, "Count the pens", str(inside), "agent")
        events = (await client.get(f"/past/{PAST}/events")).json()["events"]
        said = [one["event"] for one in events]
        said = [event["content"] for event in said if event["type"] in ("user_prompt", "claude_response")]
        assert said == ["Count the pens", "There are three pens."]
        last = (await client.get(f"/past/{PAST}/events?last=1")).json()
        assert [one["event"]["content"] for one in last["events"] if "content" in one["event"]] == said[1:]
        older = (await client.get(f"/past/{PAST}/events?last=1&before={last['before']}")).json()
        assert ([one["event"]["content"] for one in older["events"]], older["before"]) == (said[:1], None)
        assert last["events"][0]["id"] == last["before"]
        for wrong in ("last=0", "before=x", "before=10"):
            refused = await client.get(f"/past/{PAST}/events?{wrong}")
            assert (refused.status_code, refused.json()["error"]) == (400, "id")
        monkeypatch.setattr(past_module, "PAGE_BYTES", 10)
        monkeypatch.setattr(past_module, "MAX_LINE_BYTES", 10)
        assert (await client.get(f"/past/{PAST}/events")).json()["error"] == "unreadable"
        for id in ("elsewhere", "..%2f..%2fx", "nothing"):
            assert (await client.get(f"/past/{id}/events")).status_code == 404
            assert (await client.post(f"/past/{id}/resume")).status_code == 404
        made = (await client.post(f"/past/{PAST}/resume")).json()
        assert (made["name"], made["cwd"]) == ("Count the pens", str(inside))
        monkeypatch.setattr(past_module, "MAX_FILES", 0)
        assert (await client.get("/past")).json()["sessions"] == []
        record = json.loads((tmp_path / "state" / "sessions" / made["id"] / "session.json").read_text())
        assert record["argv"][-2:] == ["--resume", PAST]


async def test_what_a_profile_lets_one_choose(tmp_path: Path) -> None:
    """By default a profile only offers the permission modes that ask a user. The configuration may offer more."""
    secret = {"cli_path": "/bin/true", "model": "sonnet", "append_system_prompt": "secret"}
    profile = Profile(
        roots=[os.fspath(tmp_path)], options=secret, choices={"model": ["sonnet", "opus"], "max_turns": [1, 5]}
    )
    async with served(tmp_path, choosing=profile) as service, service.client() as client:
        _, listed = (await client.get("/sessions")).json()["profiles"]
        assert listed == {
            "name": "choosing",
            "roots": [str(tmp_path)],
            "choices": {
                "permission_mode": ["default", "acceptEdits", "plan"],
                "model": ["sonnet", "opus"],
                "max_turns": [1, 5],
            },
            "options": {"model": "sonnet"},
        }
        chosen = {"model": "opus", "max_turns": 5, "permission_mode": "plan"}
        made = await client.post("/sessions", json={"profile": "choosing", "options": chosen})
        assert made.status_code == 201, made.text
        record = json.loads((tmp_path / "state" / "sessions" / made.json()["id"] / "session.json").read_text())
        argv = " ".join(record["argv"]).replace("=", " ")
        for flag in ("--model opus", "--max-turns 5", "--permission-mode plan"):
            assert flag in argv
        for wrong in ({"model": "haiku"}, {"max_turns": True}, {"permission_mode": "bypassPermissions"}, {"cwd": "/"}):
            refused = await client.post("/sessions", json={"profile": "choosing", "options": wrong})
            assert (refused.status_code, refused.json()["error"]) == (403, "choice"), wrong
        refused = await client.post("/sessions", json={"profile": "agent", "options": {"permission_mode": "plan"}})
        assert (refused.status_code, refused.json()["error"]) == (403, "choice")
        refused = await client.post("/sessions", json={"profile": "choosing", "options": {"model": ["opus"]}})
        assert refused.status_code == 400


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('argv = ["x"]\n[profiles.a.choices]\nmodel = ["x"]', "must have argv or choices"),
        ('[profiles.a.choices]\nnothing = ["x"]', "nothing"),
        ('[profiles.a.choices]\nmax_turns = ["x"]', "max_turns"),
    ],
)
def test_choices_that_cannot_be_are_named(tmp_path: Path, more: str, said: str) -> None:
    (tmp_path / "serve.toml").write_text(f'[profiles.a]\nroots = ["."]\n{more}\n')
    with pytest.raises(ValueError, match=said):
        load_config(tmp_path / "serve.toml")


def test_the_options_of_a_profile_resume_too(tmp_path: Path) -> None:
    profile = Profile(roots=[os.fspath(tmp_path)], options={"cli_path": "/bin/true"})
    assert f"--resume={PAST}" in profile.spec(os.fspath(tmp_path), None, PAST).argv


async def test_each_needs_a_token_and_the_page_its_own_origin(tmp_path: Path) -> None:
    acts = ["settings", "withdraw", "rename", "stop", "remove", "prompts", "answers"]
    async with served(tmp_path) as service:
        id = await service.create()
        assert await _refused(service, id, acts, {"Authorization": "Bearer no"}) == {401}
        async with service.browser() as browser:
            await browser.post("/login", json={"token": service.client().headers["authorization"].split()[1]})
            for act in acts:
                reply = await browser.post(f"/sessions/{id}/{act}", headers={"Origin": "http://evil.example"}, json={})
                assert (act, reply.status_code) == (act, 403)
        async with service.client() as client:
            (info,) = (await client.get("/sessions")).json()["sessions"]
            assert info["life"] != "ended"


async def _refused(service: Served, id: str, acts: list[str], headers: dict[str, str]) -> set[int]:
    async with service.client(**headers) as client:
        replies = [await client.post(f"/sessions/{id}/{act}", json={}) for act in acts]
        replies += [await client.get(f"/sessions/{id}/{what}") for what in ("files", "abilities")]
        replies += [await client.get(path) for path in ("/search?q=x", "/past", "/past/x/events")]
        replies.append(await client.post("/past/x/resume"))
        return {reply.status_code for reply in replies}


def test_abilities_are_bounded() -> None:
    abilities = Abilities()
    offered = [{"name": f"c{n}", "description": "x" * 1000, "argumentHint": 1} for n in range(600)]
    payload = {"commands": offered, "models": [{"value": str(n)} for n in range(600)]}
    assert abilities.add(ControlResponse.success(INITIALIZE_ID, payload))
    assert (len(abilities.commands), len(abilities.models)) == (500, 500)
    assert len(abilities.commands[0].description) == 400
    for n in range(101):
        abilities.add(CommandLifecycleMessage(command_uuid=str(n), state="queued"))
    assert len(abilities.queued) == 100
    assert abilities.add(CommandLifecycleMessage(command_uuid="0", state="started"))
    assert not abilities.add(CommandLifecycleMessage(command_uuid="0", state="completed"))


def test_commands_and_skills_of_init_join_those_of_initialize() -> None:
    """Each name is in the menu once. A repeated ``init`` changes nothing."""
    abilities = Abilities()
    init = InitMessage(slash_commands=["fix", "plan"], skills=["plan", "long" * 100])
    assert abilities.add(init)
    long = abilities.commands[-1].name
    assert [one.name for one in abilities.commands] == ["fix", "plan", long]
    abilities.add(ControlResponse.success(INITIALIZE_ID, {"commands": [{"name": "fix", "description": "Fixes"}]}))
    changes = abilities.changes
    assert abilities.add(init)
    assert [(one.name, one.description) for one in abilities.commands] == [
        ("fix", "Fixes"),
        ("plan", ""),
        (long, ""),
    ]
    assert abilities.changes == changes + 1
    assert not abilities.add(init)
    abilities.add(InitMessage(skills=[f"s{number}" for number in range(600)]))
    assert len(abilities.commands) == 500


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_search_stays_below_its_folder(tmp_path: Path) -> None:
    """Neither a link nor a path leads out of the folder."""
    outside, root = tmp_path / "outside", tmp_path / "root"
    (root / "inside").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text("")
    (root / "inside" / "secret.md").write_text("")
    (root / "link").symlink_to(outside)
    (root / "secret-link").symlink_to(outside / "secret.txt")
    assert find_files(os.fspath(root), "secret") == ["inside/secret.md"]
    assert find_files(os.fspath(root), "../outside") == []
    assert find_files(os.fspath(root / "nowhere"), "") == []


def test_a_search_is_bounded_and_leaves_out_what_nobody_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("a.py", "b/a.py", "b/ba.py", ".hidden/a.py", ".git/a.py", "node_modules/a.py", "line\nfeed.a.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.py")).write_text("")
    assert find_files(os.fspath(tmp_path), "a.py") == ["a.py", "b/a.py", "b/ba.py"]
    assert find_files(os.fspath(tmp_path), ".hidden") == [".hidden/a.py"]
    monkeypatch.setattr(files_module, "MAX_FOUND", 2)
    assert find_files(os.fspath(tmp_path), "") == ["a.py", "b/a.py"]
    monkeypatch.setattr(files_module, "MAX_ENTRIES", 0)
    assert find_files(os.fspath(tmp_path), "") == []


# --- The Python program of docs/web.md runs against a real service ----------------------------------------------------


(PROGRAM,) = (block.text for block in blocks(ROOT / "docs" / "web.md") if block.language == "python")


async def printed(url: str) -> str:
    """Run the program of the page. Return its output."""
    command = [sys.executable, "-W", "error", "-c", PROGRAM, url, TOKEN]
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    child = await asyncio.create_subprocess_exec(*command, **pipes, env={**os.environ, "NO_PROXY": "*"})
    out, faults = await asyncio.wait_for(child.communicate(), 60)
    assert (child.returncode, faults) == (0, b"")
    return out.decode()


async def test_the_program_asks_its_question(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    async with served(tmp_path, work=agent_profile(tmp_path)) as service:
        assert await printed(service.url) == "0 What is in this folder?\n$0.0000\n"


async def test_the_program_with_a_recorded_session(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    recording = tmp_path / "recording"
    recording.mkdir()
    for name, content in load("04_tools_bypass_partial").files.items():
        (recording / name).write_bytes(content)
    profile = Profile(roots=[os.fspath(tmp_path)], argv=Replay(recording, wait=False).argv())
    async with served(tmp_path, work=profile) as service:
        *texts, cost = (await printed(service.url)).splitlines()
    assert texts
    assert cost.startswith("$0.")


# --- The service uses internals of uvicorn and websockets. It reports a clear error if a new version changes them -----


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (H11Protocol, "send_400_response", f"tested up to uvicorn {TESTED_UVICORN}; .* H11Protocol has no "),
        (WebSocketsSansIOProtocol, "handle_ping", "uvicorn .* WebSocketsSansIOProtocol has no "),
        (ServerProtocol, "reject", f"tested up to websockets {TESTED_WEBSOCKETS}; .* ServerProtocol has no "),
    ],
)
def test_a_part_that_is_gone_is_named_when_the_service_starts(
    owner: type, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ServiceServer(create_app(connect("/nowhere"), Config(), "t" * 43, port=1))
    monkeypatch.delattr(owner, name)
    with pytest.raises(ImportError, match=said + name):
        asyncio.run(server.serve())


@pytest.mark.parametrize(("package", "tested"), [("uvicorn", TESTED_UVICORN), ("websockets", TESTED_WEBSOCKETS)])
def test_the_newest_version_that_was_tested_is_named(package: str, tested: str) -> None:
    installed, named = (tuple(map(int, re.findall(r"\d+", text))) for text in (version(package), tested))
    assert installed <= named
