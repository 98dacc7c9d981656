import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from workloads.logs.swf import FIELDS, NAMES, Comment, SwfLog, read_swf, write_swf

whole = st.integers(-1, 2**62)
fraction = st.floats(-1e15, 1e15, allow_nan=False)
text = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=20)


@st.composite
def logs(draw: st.DrawFn) -> SwfLog:
    count = draw(st.integers(0, 6))
    columns = {
        name: draw(
            st.lists(
                whole if name in NAMES else draw(st.sampled_from([whole, fraction])),
                min_size=count,
                max_size=count,
            )
        )
        for name in FIELDS
    }
    jobs = pd.DataFrame(columns, dtype="int64" if count == 0 else None)
    places = sorted(draw(st.lists(st.integers(0, count), min_size=1, max_size=4)))
    comments = [Comment(place, draw(st.sampled_from([";", " ;"])) + draw(text)) for place in places]
    return SwfLog(jobs, tuple(comments))


@given(log=logs(), packed=st.booleans())
def test_any_log_survives_writing_and_reading(tmp_path_factory, log, packed):
    path = tmp_path_factory.mktemp("swf") / ("log.swf.gz" if packed else "log.swf")
    write_swf(path, log)
    again = read_swf(path)
    pd.testing.assert_frame_equal(again.jobs, log.jobs, check_dtype=False, check_exact=True)
    assert again.comments == log.comments
