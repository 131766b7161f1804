"""Clients that ask over WebSocket first: the gateway says no in a way that they fall back from."""

from __future__ import annotations

import openai
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.gateway.gateways import Reply, Seen, gateway, recorder

RESPONSE = (
    b'{"id": "r", "object": "response", "created_at": 1, "model": "gpt-4o",'
    b' "status": "completed", "output": []}'
)


def answer(one: Seen) -> Reply:
    """Answer as Responses does."""
    return 200, {}, RESPONSE


def test_a_client_of_websocket_is_refused_at_once_and_its_plain_request_is_served() -> None:
    """426, as OpenAI's own client and the library below it see it; the upstream is not asked before."""
    with recorder(answer) as behind, gateway(behind.address) as front:
        with pytest.raises(InvalidStatus) as told:
            connect(front.address.replace("http://", "ws://") + "/v1/responses", proxy=None)
        assert told.value.response.status_code == 426
        with openai.OpenAI(api_key="k", base_url=f"{front.address}/v1", max_retries=0) as client:
            with pytest.raises(InvalidStatus) as told, client.responses.connect(max_retries=0):
                pass
            assert told.value.response.status_code == 426
            assert behind.seen == []
            assert client.responses.create(model="gpt-4o", input="hi").id == "r"
    assert [one.target for one in behind.seen] == ["/v1/responses"]
