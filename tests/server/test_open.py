"""What the API leaves open: plain data, however it is sent."""

import msgspec

from steersman.api.generated import apps_v1
from steersman.api.kinds.revisions import ControllerRevision
from steersman.server.codec.convert import to_struct


def test_raw_data_in_a_view_is_plain_data_in_the_object() -> None:
    view = ControllerRevision(data=msgspec.Raw(b'{"spec":{"replicas":3}}'), revision=2)
    assert to_struct(apps_v1.ControllerRevision, view).data == {"spec": {"replicas": 3}}


def test_data_that_is_plain_already_is_shared() -> None:
    made = apps_v1.ControllerRevision(data={"spec": {}}, revision=2)
    assert to_struct(apps_v1.ControllerRevision, made).data is made.data
