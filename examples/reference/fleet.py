import asyncio

import ray

from claude_wire_kit.fleet import Fleet
from claude_wire_kit.supervisor.attach import spec_of


async def main():
    fleet = Fleet()
    async with fleet.create(spec_of(["examples/echo.py"])) as session:
        print((await session.ask("Hi")).result)  # You said: Hi
    await fleet.end()


ray.init(num_cpus=2, include_dashboard=False)
asyncio.run(main())
ray.shutdown()
