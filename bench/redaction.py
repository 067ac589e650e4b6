"""Measures the time to find secrets in a message: the filter searches everything that is recorded.

`python bench/redaction.py`: messages of 1.2 KB that are put together here, half of them plain, half full of the words
that announce secrets, with and without one. Times are milliseconds of one core.
"""

from __future__ import annotations

import statistics
import time

from report import Bar, Report, Sheet, bench_parser

from memory.secrets.redaction import redact

MESSAGE_CHARACTERS = 1_200
ROUNDS = 200
BARS = (Bar("median over all messages", "ms", at_most=0.5),)

PLAIN = {
    "travel": (
        "I moved to Porto in 2019 with my sister, who works as a nurse at the hospital by the river. "
        "On Saturdays we cook: last week it was 2 kg of clams for 12 people, and the week before a pie "
        "from page 114 of her book. "
    ),
    "work": (
        "The quarterly review went fine, though the slides for the second half were late. Could you turn "
        "these notes into an agenda: budget first, then hiring, then the move to the new office in May? "
        "Keep it under one page. "
    ),
    "German": (
        "Wir fahren im Mai nach Rom und suchen ein ruhiges Hotel, am liebsten in der Nähe des Bahnhofs. "
        "Meine Frau verträgt keine Milch, und die Kinder wollen jeden Tag ein Eis. Was sollten wir in "
        "drei Tagen gesehen haben? "
    ),
    "Chinese": (
        "我今天去了公园，天气很好，然后和朋友一起吃饭。下个月我们打算去杭州旅行，想找一家安静的酒店，"
        "离西湖近一点。你有什么建议吗？"
    ),
    "figures": (
        "Invoice 2024-0117 of 3 May: 12 chairs at 89.90, 4 tables at 240, delivery 35. The lorry comes "
        "on the 14th at 10:30, gate 3; call 030 1234567 half an hour before, and measure the door, which "
        "is 2.05 m by 0.9 m. "
    ),
}
LABELLED = {
    "help desk": (
        "I forgot the password of the ticket system again. The manager says that the reset link is sent "
        "by mail, but the code never arrives. My PIN works, and the token of the phone app is accepted. "
        "What is the policy here? "
    ),
    "with secrets": (
        "Hi, for the guests: the wifi password is blue-otter-42 and the door code is 4471. The alarm "
        "wants the other PIN, 8812, within thirty seconds. If anything is wrong, call the number on the "
        "fridge, please. Thanks! "
    ),
    "code": (
        "def login(user, password):\n    token = session.get_token(user.id)\n    if not token:\n        "
        "raise AuthError('no token')\n    return client.post(url, headers={'Authorization': f'Bearer {token}'}, "
        "timeout=30)\n\n"
    ),
    "settings": (
        "# service\nHOST=localhost\nPORT=8080\nDB_PASSWORD=${DB_PASSWORD}\nAPI_KEY=<your key>\nLOG_LEVEL=info\n"
        "SECRET_TOKEN=changeme\nexport PATH=/usr/local/bin:$PATH\nRETRIES=3\nCACHE_DIR=/var/cache/service\n"
        "\n"
    ),
    "German labels": (
        "Mein Passwort für das Portal habe ich vergessen, und die PIN der Karte steht auf einem Zettel. "
        "Der Schlüssel liegt beim Nachbarn. Wie setze ich den Zugangscode zurück, ohne die Kontonummer "
        "zu nennen? "
    ),
    "Chinese labels": (
        "我忘了邮箱的密码，重置链接一直收不到。银行卡的密码没有问题，验证码也能收到，可是登录的时候总说账号不对。"
        "应该怎么办？"
    ),
}


def main() -> int:
    options = bench_parser("redaction", __doc__).parse_args()
    report = Report("redaction", BARS, options.json)
    messages = {name: (text * MESSAGE_CHARACTERS)[:MESSAGE_CHARACTERS] for name, text in {**PLAIN, **LABELLED}.items()}
    took = {name: milliseconds(message) for name, message in messages.items()}
    rows = [(name, "many" if name in LABELLED else "", ms) for name, ms in took.items()]
    rows.append(("worst", "", max(took.values())))
    result = {"messages": {name: {"ms": ms, "is_labelled": name in LABELLED} for name, ms in took.items()}}
    sheet = Sheet("looking for secrets", ("message of 1.2 KB", "labels", "ms"), rows)
    return report.finish(result, [sheet], {"median over all messages": statistics.median(took.values())})


def milliseconds(message: str) -> float:
    """Of one core, the median: what else the machine does is not ours."""
    redact(message)
    took = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        redact(message)
        took.append((time.process_time() - begun) * 1e3)
    return statistics.median(took)


if __name__ == "__main__":
    raise SystemExit(main())
