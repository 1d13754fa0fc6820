"""Ways in which a server, or what stands before it, breaks a list or a watch."""

import asyncio

from aiohttp import web

from support.list_watch_server import Break, refusal

FOR_LONG = 1000
"""Virtual seconds."""


def answers(status: int, text: str = "", **headers: str) -> Break:
    async def breaks(_request: web.Request, _response: web.StreamResponse | None) -> web.StreamResponse:
        return web.Response(status=status, text=text, headers=headers)

    return breaks


def refuses(code: int, reason: str, **headers: str) -> Break:
    async def breaks(_request: web.Request, _response: web.StreamResponse | None) -> web.StreamResponse:
        return refusal(code, reason, "no", **headers)

    return breaks


async def cuts(request: web.Request, _response: web.StreamResponse | None) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"items":[')
    return await resets(request, response)


async def resets(request: web.Request, response: web.StreamResponse | None) -> web.StreamResponse:
    assert request.transport
    request.transport.abort()
    return response or web.Response()


async def hangs(_request: web.Request, response: web.StreamResponse | None) -> web.StreamResponse:
    await asyncio.sleep(FOR_LONG)
    return response or web.Response()


async def ends(_request: web.Request, response: web.StreamResponse | None) -> web.StreamResponse:
    assert response
    return response


def sends(data: bytes) -> Break:
    async def breaks(_request: web.Request, response: web.StreamResponse | None) -> web.StreamResponse:
        assert response
        await response.write(data)
        return response

    return breaks
