import asyncio
import subprocess

from claude_wire_kit.supervisor import connect, spec_of


async def main():
    supervisor = connect()
    async with supervisor.create(spec_of(["examples/echo.py"])) as session:
        print((await session.ask("Hi")).result)  # You said: Hi
    await supervisor.stop(session.cursor.id)


subprocess.run(["claude-wire", "supervisor", "start"], check=True, stdout=subprocess.DEVNULL)
asyncio.run(main())
