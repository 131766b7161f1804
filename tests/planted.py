"""Made conversations of many days in which facts are told once, and questions that need them much later.

Every sentence is written here. Chit-chat uses the words of the facts and of the questions, too, so that a
word alone finds much else; some facts are answers that share no word with the question asked of them later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

Message = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A conversation, and what is asked at its end."""

    messages: list[Message]
    questions: list[tuple[str, int]]
    """Each with the position of the one message that answers it."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """Words and sentences of one language."""

    names: Sequence[str]
    things: Sequence[str]
    places: Sequence[str]
    days: Sequence[str]
    chat: Sequence[tuple[str, str]]
    """What the user says and what is answered."""
    facts: Sequence[tuple[tuple[str, ...], int, str]]
    """Sentences in turns of user and assistant, which of them is the evidence, and the question."""


def _words(text: str) -> list[str]:
    return text.split()


ENGLISH = Language(
    names=_words("Nora Felix Priya Tomas Ingrid Kofi Mei Oscar Leila Hugo Sanne Dario Yuki Amos Greta Ravi"),
    things=_words(
        "bicycle piano tent kettle camera lawnmower bookshelf canoe suitcase telescope heater ladder drill"
        " mattress printer fridge"
    ),
    places=_words(
        "Bergen Hillside Lisbon Northgate Porto Redbarn Utrecht Riverside Graz Oldtown Malmo Eastend"
    ),
    days=_words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    chat=(
        ("Good morning! It rains again on this {day}.", "Then it is a day for tea and a book."),
        ("I saw {name} near {place} today.", "How nice. Did you two talk for long?"),
        ("We talked about moving the {thing} upstairs.", "Careful with your back when you move it."),
        ("What should I cook tonight?", "What about soup? It is quick, and you have leeks left."),
        ("{name} says hello, by the way.", "Hello back! Tell {name} I send my regards."),
        ("Work was long, many meetings and little done.", "Some days are like that. Rest a little."),
        ("I am thinking about a walk to {place}.", "The weather should hold until the evening."),
        ("The {thing} looks dusty.", "A dry cloth does wonders, and takes a minute."),
        ("Do you know a good film about trains?", "There are several; do you want an old or a new one?"),
        ("My neighbor is playing loud music again.", "You could ask kindly when it will be over."),
        ("I booked nothing for {day}, for once.", "A free day is worth a lot."),
        ("{name} and I want to meet on {day}.", "Shall I help to find a place for it?"),
        ("The code review at work took all day.", "Long reviews are tiring. Was it worth it?"),
        ("Remind me to be less hard on myself.", "Gladly: you did more today than you think."),
    ),
    facts=(
        (
            ("{name} has started as a {job} at a firm in {place}.", "Good for {name}!"),
            0,
            "What is {name}'s job?",
        ),
        (
            ("I have parked the {thing} at {place}, row {number}.", "Noted, you will find it there."),
            0,
            "Where did I park the {thing}?",
        ),
        (
            ("What did you say about {name}'s wedding?", "I asked you when it will be.", "It is in {month}."),
            2,
            "When is the wedding of {name}?",
        ),
        (
            ("The warranty of the {thing} is {code}, please keep it.", "I keep it."),
            0,
            "I need the warranty number of my {thing}, what was it?",
        ),
        (
            ("{name} cannot eat {food}, it makes {name} ill.", "Good to know before a dinner."),
            0,
            "Which dishes would be bad for {name}, who is eating here?",
        ),
        (
            ("Which color did we choose for the {thing}?", "You wanted {color}, after some debate."),
            1,
            "What color will the {thing} be?",
        ),
    ),
)

CHINESE = Language(
    names=_words("小雅 建国 子轩 美玲 志强 晓燕 浩然 雨桐 国栋 思琪 文博 丽娟 家豪 春梅 俊杰 海燕"),
    things=_words(
        "自行车 钢琴 帐篷 水壶 相机 割草机 书架 皮划艇 行李箱 望远镜 暖气片 梯子 电钻 床垫 打印机 冰箱"
    ),
    places=_words("青岛 老码头 昆明 火车站 厦门 红房子 杭州 北门 大理 图书馆 哈尔滨 河边小屋"),
    days=_words("星期一 星期二 星期三 星期四 星期五 星期六 星期天"),
    chat=(
        ("早上好！{day}又下雨了。", "那就适合喝茶看书。"),
        ("今天我在{place}附近看见{name}了。", "真好，你们聊了很久吗？"),
        ("我们商量把{thing}搬到楼上去。", "搬的时候小心腰。"),
        ("今天晚上我该做什么菜？", "煮个汤怎么样？很快，而且还有青菜。"),
        ("对了，{name}向你问好。", "也替我问好！"),
        ("工作太累了，开会很多，事情没做完。", "有些日子就是这样，休息一下吧。"),
        ("我想去{place}散散步。", "天气到傍晚应该都不错。"),
        ("{thing}上面都是灰。", "用干布擦一擦就好了。"),
        ("你知道什么好看的电影吗？", "有好几部，你想看老的还是新的？"),
        ("邻居又在放很吵的音乐。", "你可以客气地问问什么时候结束。"),
        ("{day}我什么都没安排。", "有一天空闲很难得。"),
        ("{name}和我想在{day}见面。", "要我帮忙找个地方吗？"),
        ("公司的代码审查花了一整天。", "审查很累人，值得吗？"),
        ("提醒我对自己好一点。", "好的，你今天做的比你想的多。"),
    ),
    facts=(
        (("{name}开始在{place}的一家公司当{job}了。", "恭喜{name}！"), 0, "{name}的工作是什么？"),
        (("我把{thing}停放在{place}第{number}排了。", "记住了。"), 0, "我的{thing}停放在哪里？"),
        (
            ("你刚才说{name}的婚礼怎么了？", "我问你婚礼什么时候办。", "在{month}。"),
            2,
            "{name}的婚礼是什么时候？",
        ),
        (("{thing}的保修号码是{code}，请记好。", "记好了。"), 0, "我需要{thing}的保修号码，是多少？"),
        (("{name}不能吃{food}，一吃就不舒服。", "请客之前知道就好。"), 0, "请{name}吃饭，哪些东西不能做？"),
        (("我们给{thing}选了什么颜色？", "商量以后，你要的是{color}。"), 1, "{thing}会是什么颜色？"),
    ),
)

_VALUES = {
    "en": {
        "job": _words("nurse baker surveyor welder translator pilot"),
        "month": _words("April October June December March August"),
        "food": _words("shellfish peanuts celery mustard lentils kiwi"),
        "color": _words("olive crimson navy ivory copper teal"),
    },
    "zh": {
        "job": _words("护士 面包师 测量员 焊工 翻译 飞行员"),
        "month": _words("四月 十月 六月 十二月 三月 八月"),
        "food": _words("虾蟹 花生 芹菜 芥末 扁豆 猕猴桃"),
        "color": _words("橄榄绿 深红 海军蓝 象牙白 古铜色 青色"),
    },
}


def planted(language: Language, *, days: int = 90, seed: int = 7) -> Planted:
    """Make a conversation with a fact each second day, each about another thing or person."""
    random = Random(seed)
    values = _VALUES["en" if language is ENGLISH else "zh"]
    free = [(kind, at) for kind in range(len(language.facts)) for at in range(len(language.names))]
    random.shuffle(free)
    messages: list[Message] = []
    questions: list[tuple[str, int]] = []
    for day in range(days):
        for _ in range(random.randint(4, 8)):
            _say(messages, [one.format(**_fill(language, random)) for one in random.choice(language.chat)])
        if day % 2 and free:
            kind, at = free.pop()
            told, evidence, question = language.facts[kind]
            fill = _fill(language, random) | {key: random.choice(some) for key, some in values.items()}
            fill |= {"name": language.names[at], "thing": language.things[at]}
            fill |= {"code": f"{random.choice('ABCDK')}{random.choice('XYZ')}-{random.randint(100, 999)}"}
            questions.append((question.format(**fill), len(messages) + evidence))
            _say(messages, [one.format(**fill) for one in told])
    return Planted(messages=messages, questions=questions)


def _fill(language: Language, random: Random) -> dict[str, str]:
    return {
        "name": random.choice(language.names),
        "thing": random.choice(language.things),
        "place": random.choice(language.places),
        "day": random.choice(language.days),
        "number": str(random.randint(1, 40)),
    }


def _say(messages: list[Message], texts: Sequence[str]) -> None:
    """Let the user and the assistant take turns, the user first."""
    for at, text in enumerate(texts):
        messages.append({"role": "assistant" if at % 2 else "user", "content": text})


def share_in_view(planted: Planted, fit: Any) -> float:
    """Ask each question at the end, and return the share of those whose evidence is still in view.

    Args:
        planted: The conversation.
        fit: Takes the messages with a question behind them, and returns what is left of them.
    """
    found = 0
    for question, evidence in planted.questions:
        asked = [*planted.messages, {"role": "user", "content": question}]
        found += any(message is planted.messages[evidence] for message in fit(asked))
    return found / len(planted.questions)
