"""What benches share: how figures are judged and kept, that a failed call ends none, and what their texts are like."""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest
from svg_pictures import Picture

BENCH = Path(__file__).parent.parent / "bench"
sys.path.insert(0, str(BENCH))
try:
    import returning
    import scale
    import soak
    from chats import Chats, chat, grown, samples
    from curves import Curve, CurvePanel, drawn_curves, top_of_axis
    from footprint import START_METRIC, memory_of
    from memories import new_questions, sentences
    from report import Bar, Report, Sheet, judged, percentiles
    from rig import free_port, part_of
    from sides import Compared
    from turns import exchanges
finally:
    sys.path.remove(str(BENCH))

ANSWER = b"HTTP/1.1 %s\r\ncontent-length: 2\r\nx-memory-status: used\r\n\r\nok"


def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed() -> None:
    assert percentiles([float(n) for n in range(1, 101)]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert percentiles([3.0]) == {"p50": 3.0, "p95": 3.0, "p99": 3.0}


def test_percentiles_of_nothing_are_no_number() -> None:
    assert all(map(math.isnan, percentiles([]).values()))


def test_a_bar_is_met_at_its_limit_and_missed_where_nothing_could_be_measured() -> None:
    most, least = Bar("a", "ms", at_most=2), Bar("b", at_least=0.9)
    assert (most.is_met(2.0), most.is_met(2.001), most.is_met(math.nan)) == (True, False, False)
    assert (least.is_met(0.9), least.is_met(0.899), least.is_met(math.nan)) == (True, False, False)
    assert (most.limit, least.limit) == ("at most 2 ms", "at least 0.9")


def test_a_bar_without_a_figure_was_not_asked_for_and_a_figure_without_a_bar_is_a_mistake() -> None:
    bars = (Bar("a", at_most=1), Bar("b", at_most=1))
    assert [verdict.bar.name for verdict in judged(bars, {"b": 0.5})] == ["b"]
    with pytest.raises(AssertionError, match="no bar"):
        judged(bars, {"c": 0.5})


@pytest.mark.parametrize(("value", "code"), [(1.0, 0), (1.5, 1), (math.nan, 1)])
def test_a_report_is_json_without_nan_and_its_exit_code_says_whether_a_bar_is_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: float, code: int
) -> None:
    target = tmp_path / "deep" / "one.json"
    report = Report("one", (Bar("a", "ms", at_most=1),), target)
    report.failures["chat: answered 503"] += 2
    assert report.finish({"more": [value]}, [Sheet("t", ("x",), [(value,)])], {"a": value}) == code
    kept = json.loads(target.read_text(), parse_constant=pytest.fail)
    assert kept["bars"][0]["is_met"] is (code == 0)
    assert kept["failed_calls"] == {"chat: answered 503": 2}
    assert {"cores", "python", "load_at_start"} <= kept["machine"].keys()
    shown = capsys.readouterr().out
    assert ("MISSED" in shown) is (code == 1)
    assert "2 x chat: answered 503" in shown


async def test_a_call_that_fails_is_counted_and_the_next_one_opens_a_new_connection() -> None:
    replies = iter([ANSWER % b"503 Busy", ANSWER[:30], b"", ANSWER % b"200 OK"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(next(replies))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        failures: Counter[str] = Counter()
        client = Chats(server.sockets[0].getsockname()[1], failures)
        answers = [await client.ask(chat("Where?", "ann")) for _ in range(4)]
        client.close()
    assert [bool(answer.failure) for answer in answers] == [True, True, True, False]
    assert answers[-1].memory_status == "used"
    assert failures == {"chat: answered 503": 1, "chat: IncompleteReadError": 2}


@pytest.mark.parametrize(("end", "is_failed"), [(b"e\r\ndata: [DONE]\n\n\r\n", False), (b"", True)])
async def test_a_stream_is_read_to_its_end_and_one_that_breaks_off_is_a_failed_call(
    end: bytes, is_failed: bool
) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: x\n\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1_000):
            writer.write(head + end + b"0\r\n\r\n")
        writer.close()

    failures: Counter[str] = Counter()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        chats = Chats(server.sockets[0].getsockname()[1], failures)
        answers = [await chats.ask(chat("a")) for _ in range(2)]  # what one left unread would be the other's answer
        chats.close()
        await asyncio.sleep(0.05)  # until the server has closed as well
    assert [bool(answer.failure) for answer in answers] == [is_failed, is_failed]
    assert failures.total() == 2 * is_failed


async def test_nobody_who_listens_is_a_failed_call_too() -> None:
    failures: Counter[str] = Counter()
    port = free_port()
    assert (await Chats(port, failures).ask(b"{}")).failure == "ConnectionRefusedError"
    assert await samples(port, failures) is None
    assert failures.total() == 2
    assert math.isnan(grown(None, {"a": 1.0}, "a"))


def test_a_load_that_got_no_answer_has_figures_all_the_same() -> None:
    assert len(Compared("nobody answered").row()) > 1


def test_a_metric_grows_by_all_of_its_labels() -> None:
    before, after = {'a{x="1"}': 1.0}, {'a{x="1"}': 3.0, 'a{x="2"}': 1.0, "ab": 9.0}
    assert grown(before, after, "a") == 3.0


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("/x/bin/python /x/bin/memproxy filter --config s.yaml --socket f.sock ", "filter"),
        ("/x/bin/python /x/bin/memproxy worker --config s.yaml ", "worker"),
        ("/x/bin/python /x/bin/memproxy api --config s.yaml ", "api"),
        ("/x/bin/python /x/bin/memproxy up --filters 2 ", "supervisor"),
        ("/x/bin/python /x/bin/milvus-lite server --data-dir /d/worker ", "milvus"),
        ("/x/lib/envoy -c envoy.json --concurrency 2 ", "envoy"),
        ("sh -c true ", "other"),
    ],
)
def test_a_part_is_known_by_its_command_line(command: str, part: str) -> None:
    assert part_of(command) == part


def test_memories_are_about_a_hundred_characters_and_no_two_alike() -> None:
    said = sentences()
    assert len(set(said)) == len(said)
    assert 85 <= sum(map(len, said)) / len(said) <= 115
    questions = new_questions()
    assert len({next(questions) for _ in range(1_000)}) == 1_000


def test_turns_are_as_long_as_those_of_real_chats() -> None:
    turns = exchanges(500)
    users, answers = [len(message) for message, _ in turns], [len(answer) for _, answer in turns]
    assert 245 <= sum(users) / 500 <= 270
    assert 2_050 <= sum(answers) / 500 <= 2_200
    assert len({message for message, _ in turns}) == 500
    assert {len(message) > 1_100 for message, _ in exchanges(20, characters=1_200)} == {True}


def test_memory_is_counted_by_part_and_a_process_that_has_ended_counts_nothing() -> None:
    resident, proportional = memory_of([os.getpid(), 2**22 + 1])
    assert set(resident) == set(proportional) == {"other"}
    assert resident["other"] >= proportional["other"] > 10


@pytest.mark.parametrize(("label", "part"), [("filter-0", "filter"), ("worker-1", "worker"), ("milvus", "milvus")])
def test_the_start_of_a_part_is_read_from_the_metrics(label: str, part: str) -> None:
    found = START_METRIC.match(f'memproxy_part_start_seconds{{part="{label}"}}')
    assert found is not None
    assert found[1] == part


def test_a_soak_compares_each_process_after_the_warm_up_with_the_end_and_counts_those_that_died() -> None:
    own, gone = os.getpid(), 1 << 30

    def size(resident: float, descriptors: int) -> soak.ProcessSize:
        return soak.ProcessSize(resident, resident, descriptors)

    taken = [(float(at), {own: size(100 + at, 5 + at % 3), gone: size(1, 1)}) for at in range(100)]
    taken += [(100.0, {own: size(200, 7)})]
    [one], died = soak.grown(taken, warm_seconds=20.0)
    assert (one.before.resident, one.after.resident) == (130.0, 190.0)
    assert one.percent == pytest.approx(100 * 60 / 130)
    assert (one.before.descriptors, one.descriptors, died) == (5, 0, 1)


def test_what_holds_stored_data_is_judged_by_what_was_stored_since_the_warm_up() -> None:
    before, after = soak.ProcessSize(100.0, 90.0, 5), soak.ProcessSize(103.0, 92.0, 5)
    found = [
        soak.Grown(part, pid, before, after) for pid, part in enumerate((soak.REDIS, soak.MILVUS_SERVER, "filter"))
    ]
    assert soak.kb_for_each(found, soak.REDIS, [1_000.0, 1_500.0, 2_024.0]) == 3.0
    assert soak.kb_for_each(found, soak.MILVUS_LITE, [1.0, 2.0]) == 0.0
    assert math.isnan(soak.kb_for_each(found, soak.REDIS, [1.0]))
    assert found[1].percent == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, ""),
        ({"users": 99}, "--users 99: at least 100"),
        ({"asked": 19}, "--asked 19: at least 20"),
        ({"users": 100, "asked": 51}, "--asked 51: at most half"),
        ({"memories": 1}, "--memories: at least 2"),
        ({"seconds": 0.0}, "more than 0"),
    ],
)
def test_figures_of_returning_users_need_enough_of_them(changed: dict[str, float], reason: str) -> None:
    options = Namespace(users=1_000, memories=100, asked=40, seconds=20.0)
    vars(options).update(changed)
    mistake = returning.mistake_of(options)
    assert reason in mistake
    assert bool(mistake) == bool(reason)


def test_curves_stand_in_the_picture_with_their_names_and_values() -> None:
    panel = CurvePanel("users < all", ["1", "20"], [Curve("chats", [3.0, 40.0]), Curve("turns", [0.0, 7.0])])
    picture = Picture(drawn_curves("Scale & more", [panel, panel]))
    assert (picture.title, picture.foreign_parts) == ("Scale & more", [])
    for frame in picture.frames:
        texts = [text for text in picture.texts if frame.holds(text)]
        assert (texts[0].words, texts[0].is_bold) == ("users < all", True)
        assert {"1", "20", "chats", "turns", "3", "40", "0", "7"} <= {text.words for text in texts}
    assert len(picture.frames) == 2
    assert [top_of_axis(value) for value in (0.0, 40.0, 41.0, 1_300.0)] == [1.0, 40.0, 60.0, 1_600.0]


def test_the_table_of_the_scaling_page_is_replaced_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, image = tmp_path / "scaling.md", tmp_path / "scale.svg"
    page.write_text(f"before\n{scale.BEGIN}old\n{scale.END}after\n")
    monkeypatch.setattr(scale, "PAGE", page)
    monkeypatch.setattr(scale, "IMAGE", image)
    rate = scale.Rate(a_second=120.0, share=1.0, median_ms=3.0, filter_cpu_ms=2.5, failed=0)
    points = {setup: scale.Point(setup, rate, rate, 60.0, 14.0, 0.0) for setup in scale.SETUPS}
    for _ in range(2):
        scale.write_docs(points)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert text.count("| 1 | 20 | 5,000 | 120 | 1.00 | 120 | 2.5 ms | 2.5 ms | 60 | 14 ms |") == 1
    picture = Picture(image.read_text())
    assert picture.title == "Chats and learning a second, on one machine"
    assert len(picture.frames) == 3
    assert "120" in {text.words for text in picture.texts if picture.frames[0].holds(text)}
