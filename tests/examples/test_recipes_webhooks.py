"""The recipe of webhooks, as a server runs it."""

from __future__ import annotations

import hashlib
import hmac
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.brokers.processes import free_ports

ROOT = Path(__file__).parents[2]
SECRET = "correct horse"


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    """The service, in a process of its own."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "uvicorn", "examples.recipes.webhooks:app", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "WEBHOOK_SECRET": SECRET})
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
        try:
            for _ in range(1000):
                assert process.poll() is None
                try:
                    client.get("/")
                    break
                except httpx.ConnectError:
                    time.sleep(0.1)
            yield client
        finally:
            process.terminate()
            process.wait(60)


def post(client: httpx.Client, body: str, key: str, secret: str = SECRET) -> httpx.Response:
    digest = hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()
    headers = {"X-Hub-Signature-256": f"sha256={digest}", "Idempotency-Key": key}
    return client.post("/orders/", content=body, headers=headers)


def test_each_order_is_charged_once(client: httpx.Client) -> None:
    """However often it is sent; what is not signed, or cannot be charged, is not."""
    lamp = '{"shop": "lamps", "cents": 3500}'
    answers = [post(client, lamp, key) for key in ("1", "1", "2")]
    assert [each.json() for each in answers] == [
        [{"shop": "lamps", "total": 3500}],
        [{"shop": "lamps", "total": 3500}],
        [{"shop": "lamps", "total": 7000}],
    ]
    assert post(client, lamp, "3", "another").status_code == 401
    bad = post(client, '{"shop": "lamps", "cents": 0}', "4")
    assert (bad.status_code, bad.json()) == (422, {"problem": "nobody is charged 0 cents"})
