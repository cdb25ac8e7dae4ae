"""The authorization matrix of ``tests/real``, sent to the embedded server: answered as a real one did.

The answers of the real one are recorded, so this needs none; that it still gives them is checked by
``tests/real/test_authorization_matrix.py``.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.real import authorization_play as matrix
from tests.real import scenario_play
from tests.real.authorization_rows import Chapter


@pytest.mark.parametrize("chapter", matrix.CHAPTERS, ids=lambda chapter: chapter.name)
async def test_the_embedded_server_answers_every_row_as_a_real_one_did(chapter: Chapter) -> None:
    async with scenario_play.embedded() as target:
        ours = await matrix.play(target, (chapter,))
    theirs = {
        title: line for title, line in matrix.recorded().items() if title.startswith(f"{chapter.name}: ")
    }
    assert "\n".join(matrix.differences(ours, theirs)) == ""


def test_every_row_has_a_name_of_its_own_and_an_answer() -> None:
    titles = [
        chapter.title(user, asked.title) for chapter in matrix.CHAPTERS for user, asked in chapter.rows()
    ]
    rows = [title for title in matrix.recorded() if not title.endswith(": what remains")]
    assert rows == titles
    assert len(titles) == len(set(titles)) > 400


@pytest.mark.parametrize("chapter", matrix.CHAPTERS, ids=lambda chapter: chapter.name)
def test_no_two_requests_of_a_chapter_are_the_same(chapter: Chapter) -> None:
    asked = Counter(
        (each.method, each.path, str(each.body), str(each.headers), str(each.given))
        for each in chapter.requests
    )
    assert [each for each, times in asked.items() if times > 1] == []


@pytest.mark.parametrize("chapter", matrix.CHAPTERS, ids=lambda chapter: chapter.name)
def test_every_chapter_has_requests_that_are_allowed_and_requests_that_are_refused(chapter: Chapter) -> None:
    answers = matrix.recorded()
    codes = [int(answers[chapter.title(user, asked.title)][:3]) for user, asked in chapter.rows()]
    for answered in (sum(code < 300 for code in codes), sum(code in (403, 422) for code in codes)):
        assert answered > 1


@pytest.mark.parametrize("chapter", matrix.CHAPTERS, ids=lambda chapter: chapter.name)
def test_no_two_users_of_a_chapter_have_the_same_rights(chapter: Chapter) -> None:
    assert len({str((user.grants, user.anonymous)) for user in chapter.users}) == len(chapter.users)
