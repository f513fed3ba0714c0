"""Clients that ask an endpoint again and again, streaming and not, and count failures."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class Load:
    """So many clients at a time for as long as the context lasts, each with a pause after an answer.

    Every answer has to be whole.
    """

    def __init__(
        self, url: str, model: str, *, clients: int, tokens: int = 32, pause: float = 0.0, patience: float = 300
    ) -> None:
        """`patience`: seconds after which a client gives up."""
        self.asked = 0
        self.streamed = 0
        self.failures: list[str] = []
        self.last: dict[str, float] = {}
        """The beginnings of the answers, and when the last request was sent that got each one."""
        self._url, self._model, self._clients, self._tokens, self._pause = url, model, clients, tokens, pause
        self._patience = patience
        self._enough = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=self._patience)
        )
        self._tasks = [asyncio.create_task(self._client(number)) for number in range(self._clients)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._enough.set()
        await asyncio.gather(*self._tasks)
        await self._session.close()

    @property
    def said(self) -> set[str]:
        """The beginnings of all answers."""
        return {*self.last}

    async def more(self, count: int) -> None:
        """Wait until this many more requests are answered, or one fails."""
        until, failed = self.asked + count, len(self.failures)
        while self.asked < until and len(self.failures) == failed:
            await asyncio.sleep(0.01)

    async def _client(self, number: int) -> None:
        streams = number % 2 == 0
        while not self._enough.is_set():
            sent = time.monotonic()
            try:
                text = await (self._stream() if streams else self._whole())
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
            else:
                said = " ".join(text.split()[:4])
                self.last[said] = max(sent, self.last.get(said, sent))
            self.asked += 1
            self.streamed += streams
            await asyncio.sleep(self._pause)

    async def _whole(self) -> str:
        async with self._session.post(self._url, json=self._body(stream=False)) as response:
            if response.status != 200:
                raise ValueError(f"{response.status} {(await response.text())[:200]}")
            answer = await response.json()
        return str(answer["choices"][0]["message"]["content"])

    async def _stream(self) -> str:
        said, ended = "", False
        async with self._session.post(self._url, json=self._body(stream=True)) as response:
            if response.status != 200:
                raise ValueError(f"{response.status} {(await response.text())[:200]}")
            async for line in response.content:
                event = line.removeprefix(b"data: ").strip()
                if event == b"[DONE]":
                    ended = True
                elif event:
                    said += json.loads(event)["choices"][0]["delta"].get("content") or ""
        if not ended:
            raise ValueError("a stream was cut")
        return said

    def _body(self, *, stream: bool) -> dict[str, object]:
        message = {"role": "user", "content": "What do you say?"}
        return {"model": self._model, "messages": [message], "max_tokens": self._tokens, "stream": stream}
