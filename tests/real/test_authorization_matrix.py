"""The authorization matrix, sent to a real kube-apiserver and to the embedded server: the same answers.

``python tests/real/test_authorization_matrix.py`` records anew what the real server answers.
"""

from __future__ import annotations

import asyncio

from tests.real import authorization_play as matrix
from tests.real import scenario_play


async def ask_real_server() -> dict[str, str]:
    async with scenario_play.real() as target:
        return await matrix.play(target)


async def test_both_servers_give_every_row_the_same_answer() -> None:
    theirs = await ask_real_server()
    assert "\n".join(matrix.differences(matrix.recorded(), theirs)) == "", (
        "the record is not the real server's"
    )
    async with scenario_play.embedded() as target:
        ours = await matrix.play(target)
    assert "\n".join(matrix.differences(ours, theirs)) == ""


if __name__ == "__main__":
    matrix.RECORDED.write_text(matrix.write(asyncio.run(ask_real_server())))
