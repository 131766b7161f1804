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


# Long answers: who told it wrote a line, and what answers it has the words of every question.


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Words of a user who tells things in passing, and of an assistant that answers at length."""

    subjects: Sequence[str]
    facts: Sequence[tuple[str, str, Sequence[str]]]
    """What the user says, the question for it, and what may be told."""
    asks: Sequence[str]
    answers: Sequence[str]
    between: str
    """What stands between two sentences."""
    said: tuple[str, str]
    """A sentence of the assistant's that stands once in a long answer, and the question for it."""


ENGLISH_ADVICE = Advice(
    subjects=(
        "kitchen renovation",
        "marathon training",
        "novel draft",
        "vegetable garden",
        "photo archive",
        "job application",
        "home network",
        "language course",
        "wedding speech",
        "tax return",
        "camping trip",
        "piano practice",
        "newsletter",
        "aquarium",
        "budget spreadsheet",
        "bicycle repair",
        "podcast",
        "quilt",
        "science fair project",
        "apartment move",
    ),
    facts=(
        (
            "I am planning my {s}, and it has to be done by {v}. Where do I begin?",
            "By which date must my {s} be done?",
            ("March 14", "June 2", "October 30", "May 21", "August 9", "November 17"),
        ),
        (
            "For the {s} I work with {v}, we get along well. How do we split the work?",
            "Who is helping me with the {s}?",
            ("Ingrid", "Marcus", "Leticia", "Tomasz", "Yara", "Benedikt"),
        ),
        (
            "I can spend {v} on the {s} and no more. What should I buy first?",
            "How much money do I have for the {s}?",
            ("420 euros", "1,150 dollars", "95 pounds", "2,300 francs", "780 euros", "60 dollars"),
        ),
        (
            "When you write about the {s}, please always use {v}.",
            "How did I ask you to write about the {s}?",
            (
                "bullet points",
                "metric units",
                "short paragraphs",
                "a friendly tone",
                "British spelling",
                "numbered steps",
            ),
        ),
        (
            "I tried {v} for the {s} before and did not like it. What else is there?",
            "Which thing did I dislike about my {s} in the past?",
            (
                "an online class",
                "a paper planner",
                "working at night",
                "a rented van",
                "group meetings",
                "second-hand parts",
            ),
        ),
        (
            "I prefer {v} for everything about the {s}. Any ideas?",
            "What do I prefer for my {s}?",
            (
                "early mornings",
                "the cheapest option",
                "natural materials",
                "dark colors",
                "open source tools",
                "local shops",
            ),
        ),
    ),
    asks=(
        "Can you tell me more about the {s}?",
        "What are common mistakes with a {s}?",
        "Give me a plan for the next week of the {s}.",
        "Is there anything I forgot about the {s}?",
        "Thanks. How do others do their {s}?",
        "Explain the second point again, please.",
        "And what would you do in my place?",
        "That helps. What comes after that?",
        "Good idea, I will.",
        "Ok, noted.",
        "Hm, not sure about that.",
        "Great, thanks!",
        "Let me think about it.",
    ),
    answers=(
        "When you plan a {s}, write down what must be done and by which date, so that nothing is forgotten.",
        "Many people prefer to begin with the smallest part of the {s}, which gives them a quick success.",
        "Think about how much money you have for the {s}, and keep a tenth of it for surprises.",
        "If somebody is helping you with the {s}, agree early on who does what and how you talk.",
        "A common mistake is to buy everything for the {s} at once, which most people dislike afterwards.",
        "You could ask a friend who did a {s} in the past which thing went wrong, and what did not.",
        "Set aside two evenings a week for the {s}, and must you skip one, move it rather than drop it.",
        "There are good books and videos about every kind of {s}; choose one and stay with it for a while.",
        "Write a short note after each step of the {s}, so that you can see later how far you have come.",
        "For the tools, quality matters more than number: two good ones serve a {s} better than ten.",
        "Keep receipts and dates together, since you will need them when the {s} is done.",
        "It is normal that a {s} takes longer than planned; a buffer of a third is what experts suggest.",
        "Before you decide, compare three options for the {s} by price, time and joy.",
        "Finally, tell people about your {s}: being asked about it is the best reminder there is.",
        "Safety comes first in any {s}, so read the instructions and ask when something is unclear.",
    ),
    between=" ",
    said=("As a brand for the {s} I recommend {v}.", "Which brand did you recommend for the {s}?"),
)

CHINESE_ADVICE = Advice(
    subjects=(
        "厨房装修",
        "马拉松训练",
        "小说初稿",
        "菜园",
        "照片整理",
        "求职申请",
        "家庭网络",
        "语言课程",
        "婚礼致辞",
        "报税",
        "露营旅行",
        "钢琴练习",
        "电子周刊",
        "鱼缸",
        "预算表格",
        "自行车修理",
        "播客节目",
        "拼布被子",
        "科学展项目",
        "公寓搬家",
    ),
    facts=(
        (
            "我在准备{s}，必须在{v}之前完成。该从哪里开始？",
            "我的{s}必须在哪天之前完成？",
            ("三月十四日", "六月二日", "十月三十日", "五月二十一日", "八月九日", "十一月十七日"),
        ),
        (
            "{s}是我和{v}一起做的，我们合得来。怎么分工好？",
            "谁在帮我做{s}？",
            ("英格", "马克", "丽蒂", "托马", "雅拉", "本尼"),
        ),
        (
            "{s}我最多能花{v}。先买什么？",
            "我有多少钱可以花在{s}上？",
            ("四百二十欧元", "一千一百元", "九十五英镑", "两千三百元", "七百八十欧元", "六十美元"),
        ),
        (
            "以后写到{s}的时候，请一直用{v}。",
            "我要求你怎么写{s}？",
            ("列表", "公制单位", "短段落", "友好的语气", "英式拼写", "编号步骤"),
        ),
        (
            "{s}我以前试过{v}，不喜欢。还有别的办法吗？",
            "关于{s}，我以前不喜欢什么？",
            ("网上课程", "纸质计划本", "晚上工作", "租的货车", "小组会议", "二手零件"),
        ),
        (
            "{s}的一切我都更喜欢{v}。有什么主意？",
            "我的{s}更喜欢什么？",
            ("清早", "最便宜的", "天然材料", "深色", "开源工具", "本地商店"),
        ),
    ),
    asks=(
        "能再讲讲{s}吗？",
        "{s}常见的错误有哪些？",
        "给我一个下周{s}的计划。",
        "{s}我还忘了什么吗？",
        "谢谢。别人是怎么做{s}的？",
        "请再解释一下第二点。",
        "换了你会怎么做？",
        "有帮助。然后呢？",
        "好主意，我会的。",
        "好的，记住了。",
        "嗯，不太确定。",
        "太好了，谢谢！",
        "让我想想。",
    ),
    answers=(
        "准备{s}的时候，把要做的事和必须完成的日期写下来，就不会忘记。",
        "很多人更喜欢从{s}最小的部分开始，因为很快就能看到成果。",
        "想一想{s}可以花多少钱，留下十分之一应付意外。",
        "如果有人在帮你做{s}，早点商量好谁做什么、怎么写信联系。",
        "常见的错误是一次把{s}的东西都买齐，之后大多数人都不喜欢。",
        "可以问问以前做过{s}的朋友，哪里出了问题，哪些还会再做。",
        "每周给{s}留出两个晚上，必须错过的话就换一天，不要取消。",
        "各种{s}都有好的书和视频，选一个坚持一段时间。",
        "{s}每做完一步写一点笔记，以后可以看到走了多远。",
        "工具的质量比数量重要：两个好的比十个差的更适合{s}。",
        "把收据和日期放在一起，{s}完成的时候会用到。",
        "{s}比计划的时间长是正常的，专家建议留三分之一的余地。",
        "决定之前，按价格、时间和喜欢的程度比较{s}的三种选择。",
        "最后，把{s}告诉大家：被人问起是最好的提醒。",
        "任何{s}都是安全第一，看说明，不清楚就问。",
    ),
    between="",
    said=("{s}的话我推荐买{v}牌子的。", "你推荐{s}买什么牌子？"),
)


def advised(words: Advice, *, turns: int = 400, seed: int = 7, by_assistant: bool = False) -> Planted:
    """Make a conversation of short requests and long answers, with a fact each fifth turn.

    Args:
        words: Of which language.
        turns: Requests of the user's.
        seed: Of the random numbers.
        by_assistant: Facts are a sentence in a long answer, in place of a line of the user's.
    """
    random = Random(seed)
    facts = [(words.said[0], words.said[1], [f"{a}{b}" for a in "KLM" for b in range(10, 99)])]
    free = [
        (fact, subject) for fact in (facts if by_assistant else words.facts) for subject in words.subjects
    ]
    random.shuffle(free)
    messages: list[Message] = []
    questions: list[tuple[str, int]] = []
    for turn in range(turns):
        subject, request = random.choice(words.subjects), random.choice(words.asks)
        answer = random.choices(words.answers, k=random.randint(6, 14))
        if turn % 5 == 2 and free:
            (told, question, values), subject = free.pop()
            told = told.replace("{v}", random.choice(values))
            questions.append((question.format(s=subject), len(messages) + by_assistant))
            if by_assistant:
                answer.insert(random.randrange(len(answer)), told)
            else:
                request = told
        _say(messages, [request.format(s=subject), words.between.join(answer).format(s=subject)])
    return Planted(messages=messages, questions=questions)


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
