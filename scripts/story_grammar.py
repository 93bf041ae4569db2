# SPDX-License-Identifier: Apache-2.0
"""A grammar of short stories: one table that both writes stories and recognises their sentences.

A template is plain text with two kinds of holes. `{slot.feature}` is a word of a character, thing
or place that stays the same through a story, such as `{hero.name}` or `{hero.his}`. `[rule]` is a
nested choice between the alternatives of RULES. A plot is a list of rules, one for each sentence.

`story(rng)` fills one plot. `parses(sentence)` says whether a sentence is derivable from a rule
that some plot uses, with every slot bound to one entry throughout the sentence, so a wrong pronoun
does not parse. `parses_story(text)` asks the same of a whole plot with one binding for all of it.
"""

import re


def _person(name, gender, kind):
    he = gender == "m"
    return {
        "name": name,
        "he": "he" if he else "she",
        "He": "He" if he else "She",
        "him": "him" if he else "her",
        "his": "his" if he else "her",
        "kind": kind,
    }


def _noun(word, adjective=None):
    phrase = f"{adjective} {word}" if adjective else word
    article = "an" if phrase[0] in "aeiou" else "a"
    return {"bare": word, "a": f"{article} {phrase}", "the": f"the {word}", "The": f"The {word}"}


CHILDREN = [
    _person(name, gender, "boy" if gender == "m" else "girl")
    for name, gender in [
        ("Tom", "m"), ("Ben", "m"), ("Leo", "m"), ("Max", "m"), ("Finn", "m"), ("Oscar", "m"),
        ("Jack", "m"), ("Theo", "m"), ("Mia", "f"), ("Lily", "f"), ("Anna", "f"), ("Ella", "f"),
        ("Ruby", "f"), ("Nora", "f"), ("Zoe", "f"), ("Clara", "f"),
    ]
]  # fmt: skip

HELPERS = [
    {"the": "Grandma", "The": "Grandma", "he": "she", "He": "She", "his": "her"},
    {"the": "Grandpa", "The": "Grandpa", "he": "he", "He": "He", "his": "his"},
    {"the": "the baker", "The": "The baker", "he": "she", "He": "She", "his": "her"},
    {"the": "the farmer", "The": "The farmer", "he": "he", "He": "He", "his": "his"},
    {"the": "the teacher", "The": "The teacher", "he": "she", "He": "She", "his": "her"},
    {"the": "the postman", "The": "The postman", "he": "he", "He": "He", "his": "his"},
    {"the": "Uncle Joe", "The": "Uncle Joe", "he": "he", "He": "He", "his": "his"},
    {"the": "Aunt May", "The": "Aunt May", "he": "she", "He": "She", "his": "her"},
]

SLOTS = {
    "hero": CHILDREN,
    "friend": CHILDREN,
    "helper": HELPERS,
    "toy": [
        _noun("ball", "red"), _noun("kite", "blue"), _noun("drum", "old"), _noun("boat", "little"),
        _noun("train", "wooden"), _noun("doll", "soft"), _noun("robot", "green"),
        _noun("whistle", "silver"), _noun("puzzle", "big"), _noun("bell", "shiny"),
    ],
    "pet": [
        _noun("puppy", "brown"), _noun("kitten", "grey"), _noun("rabbit", "white"),
        _noun("duckling", "yellow"), _noun("bird", "tiny"), _noun("squirrel", "quick"),
        _noun("lamb", "young"), _noun("turtle", "slow"),
    ],
    "place": [
        {"in": f"{where} the {word}", "the": f"the {word}"}
        for where, word in [
            ("in", "park"), ("in", "forest"), ("at", "lake"), ("in", "garden"), ("on", "hill"),
            ("at", "beach"), ("on", "farm"), ("by", "river"), ("in", "meadow"), ("at", "market"),
        ]
    ],
    "spot": [
        {"under": phrase} for phrase in [
            "under a bush", "behind a rock", "inside a hollow log", "under an old bench",
            "between two trees", "behind the fence", "in the tall grass", "next to a stone wall",
        ]
    ],
    "food": [
        _noun("cake", "apple"), _noun("pie", "cherry"), _noun("loaf", "fresh"),
        _noun("pancake", "golden"), _noun("pudding", "huge"), _noun("tart", "lemon"),
    ],
    "fear": [
        {"of": phrase} for phrase in [
            "the dark", "the deep water", "the high ladder", "the loud thunder", "the big slide",
            "the long bridge",
        ]
    ],
    "trait": [
        {"adj": word, "a": ("an " if word[0] in "aeiou" else "a ") + word} for word in [
            "kind", "brave", "clever", "curious", "quiet", "cheerful", "gentle", "honest",
        ]
    ],
}  # fmt: skip

# Slots that draw from one list but may never hold the same entry.
DISTINCT = {("hero", "friend")}

RULES = {
    # Beginnings, shared by the plots.
    "open": [
        "Once upon a time there was {trait.a} {hero.kind} named {hero.name}.",
        "There once was {trait.a} {hero.kind} called {hero.name}.",
        "{hero.name} was {trait.a} {hero.kind} who lived near {place.the}.",
        "In a small house near {place.the} lived {trait.a} {hero.kind} named {hero.name}.",
    ],
    "day": ["One day", "One morning", "One sunny afternoon", "On a windy day", "Last summer"],
    "very": ["very", "so", "quite"],
    "happy": ["happy", "glad", "proud", "joyful"],
    "sad": ["sad", "worried", "upset"],
    "soon": ["Soon", "After a while", "A little later", "Just then"],
    "day_out": [
        "[day], {hero.name} went to play {place.in} with {hero.his} friend {friend.name}.",
        "[day], {hero.name} and {friend.name} met {place.in}.",
        "[day], {hero.he} walked to {place.the} with {hero.his} friend {friend.name}.",
    ],
    "sad_now": [
        "{hero.name} felt [very] [sad].",
        "{hero.He} felt [very] [sad] and began to cry.",
        "{hero.name} sat down and was [very] [sad].",
    ],
    "asks": [
        '"Can you help me?" asked {hero.name}.',
        '"Please help me," {hero.he} said to {helper.the}.',
        '"What should we do now?" asked {hero.name}.',
    ],
    "helper_comes": [
        "[soon], {helper.the} came by and saw the two friends.",
        "[soon], {helper.the} heard them and came to help.",
        "{helper.The} saw them and asked what was wrong.",
    ],
    "comfort": [
        '"Do not worry," said {helper.the}.',
        '"Do not be [sad]," {helper.the} said with a smile.',
        '"We can do this together," said {helper.the}.',
    ],
    "thanks": [
        '"Thank you!" said {hero.name}, and {hero.he} gave {helper.the} a big hug.',
        "{hero.name} thanked {helper.the} with a big smile.",
        '"Thank you for your help," said {hero.name}.',
    ],
    "end_happy": [
        "{hero.name} and {friend.name} were [very] [happy] and laughed all the way home.",
        "The two friends went home and were [very] [happy].",
        "From that day on, {hero.name} and {friend.name} were the best of friends.",
        "That night, {hero.name} went to bed with a smile.",
    ],
    "lesson_help": [
        "{hero.name} learned that it is good to ask for help.",
        "{hero.He} learned that friends always help each other.",
        "And {hero.he} never forgot how good it feels to help a friend.",
    ],
    # A lost toy.
    "toy_love": [
        "{hero.He} had {toy.a} and played with it every day.",
        "{hero.He} loved to play with {hero.his} {toy.bare}.",
        "For {hero.his} birthday {hero.he} got {toy.a}.",
    ],
    "toy_lost": [
        "But when it was time to go home, {toy.the} was gone.",
        "Suddenly {hero.name} could not find {hero.his} {toy.bare}.",
        "Then {hero.he} saw that {hero.his} {toy.bare} was missing.",
    ],
    "toy_search": [
        "They looked for {toy.the} everywhere, but they could not find it.",
        "{friend.name} looked up and down, but {toy.the} was not there.",
        "They called and searched until the sun was low.",
    ],
    "toy_found": [
        "Together they found {toy.the} {spot.under}.",
        "At last {friend.name} saw {toy.the} {spot.under}.",
        "{helper.The} looked {spot.under}, and there was {toy.the}.",
    ],
    # A broken toy.
    "toy_break": [
        "But {friend.name} fell over and {toy.the} broke.",
        "Then {toy.the} hit a rock and broke in two.",
        "Suddenly there was a loud crack, and {toy.the} was broken.",
    ],
    "toy_try": [
        "{friend.name} tried to fix {toy.the}, but it did not work.",
        "They tried to tie {toy.the} with a string, but the string was too short.",
        "{hero.name} tried to push the parts together, but they fell down again.",
    ],
    "toy_fix": [
        "{helper.The} took some glue and fixed {toy.the}.",
        "With a hammer and a nail, {helper.the} fixed {toy.the}.",
        "They worked all day with {helper.the}, and then {toy.the} was as good as new.",
    ],
    "sorry": [
        '"I am sorry," said {friend.name}.',
        "{friend.name} was sorry and said that it was a mistake.",
    ],
    # An animal in trouble.
    "pet_seen": [
        "There they saw {pet.a} that could not move.",
        "They heard a small cry and found {pet.a} {spot.under}.",
        "{spot.up_is} {pet.a} alone and cold.",
    ],
    "pet_stuck": [
        "{pet.The} had a hurt leg and could not walk.",
        "{pet.The} was lost and wanted its mother.",
        "{pet.The} was hungry and [very] tired.",
    ],
    "pet_try": [
        "{hero.name} tried to pick it up, but {pet.the} was afraid.",
        "{friend.name} gave it some water, but {pet.the} did not drink.",
        "They wanted to help {pet.the}, but they did not know how.",
    ],
    "pet_help": [
        "{helper.The} put {pet.the} in a warm box and gave it some milk.",
        "{helper.The} held {pet.the} in {helper.his} arms and sang a soft song.",
        "With a soft cloth, {helper.the} dried {pet.the} and kept it warm.",
    ],
    "pet_well": [
        "The next day, {pet.the} was well and strong again.",
        "[soon], {pet.the} opened its eyes and jumped for joy.",
        "[soon], {pet.the} found its mother and was not alone anymore.",
    ],
    "lesson_kind": [
        "{hero.name} learned that small animals need love too.",
        "{hero.He} learned that being kind makes everyone [happy].",
        "After that, {pet.the} came to see {hero.him} every day.",
    ],
    # A fear.
    "fear_has": [
        "{hero.He} was not afraid of anything but {fear.of}.",
        "{hero.He} had one secret, {hero.he} was afraid of {fear.of}.",
        "But {hero.he} was [very] afraid of {fear.of}.",
    ],
    "fear_meet": [
        "There {hero.he} had to face {fear.of}.",
        '"Look, do you see {fear.of}?" asked {friend.name}.',
        "{friend.name} was not afraid of {fear.of} at all.",
    ],
    "fear_run": [
        "{hero.name} closed {hero.his} eyes and did not move.",
        "{hero.His_legs} shook, and {hero.he} wanted to run home.",
        "{hero.name} hid {spot.under} and would not come out.",
    ],
    "fear_talk": [
        '"Take my hand," said {friend.name}, "and count to three."',
        '"I was afraid too," said {friend.name}, "but now I am not."',
        '"We will go slowly," said {friend.name}, "step by step."',
    ],
    "fear_brave": [
        "{hero.name} took a deep breath and held the hand of {hero.his} friend.",
        "Step by step, {hero.name} was less afraid.",
        "{hero.He} counted to three and opened {hero.his} eyes.",
    ],
    "fear_done": [
        '"I did it!" said {hero.name}.',
        "And then it was over, and it was not so bad.",
        "Now {hero.name} was not afraid of {fear.of} anymore.",
    ],
    "lesson_brave": [
        "{hero.name} learned that being brave is easy with a friend.",
        "{hero.He} learned that everyone is afraid of something.",
    ],
    # A meal to share.
    "food_make": [
        "[day], {hero.he} wanted to make {food.a} with {hero.his} friend {friend.name}.",
        "[day], {hero.name} and {friend.name} made {food.a} for {helper.the}.",
        "[day], {friend.name} came to help {hero.him} make {food.a}.",
    ],
    "food_bad": [
        "But {friend.name} put in too much salt, and {food.the} tasted bad.",
        "But {food.the} fell on the floor.",
        "But they forgot {food.the} in the oven, and it burned black.",
    ],
    "food_again": [
        "So {helper.the} showed them how to make a new one.",
        "Then {helper.the} came with eggs and milk, and they started again.",
        "They washed the bowls, and {helper.the} helped them to try again.",
    ],
    "food_good": [
        "This time {food.the} was sweet and good.",
        "This time {food.the} was the best in town.",
        "[soon], the house smelled of {food.a}.",
    ],
    "food_share": [
        "They shared {food.the} with {helper.the} {place.in}.",
        "{hero.name} gave the first piece to {helper.the}.",
        "They ate {food.the} together and sang a song.",
    ],
    "lesson_try": [
        "{hero.name} learned that it is fine to try again.",
        "{hero.He} learned that the best food is the food you share.",
    ],
}

PLOTS = [
    ["open", "toy_love", "day_out", "toy_lost", "sad_now", "toy_search", "helper_comes",
     "comfort", "toy_found", "thanks", "lesson_help", "end_happy"],
    ["open", "toy_love", "day_out", "toy_break", "sad_now", "sorry", "toy_try", "helper_comes",
     "asks", "toy_fix", "thanks", "lesson_help", "end_happy"],
    ["open", "day_out", "pet_seen", "pet_stuck", "pet_try", "helper_comes", "asks", "comfort",
     "pet_help", "pet_well", "thanks", "lesson_kind", "end_happy"],
    ["open", "fear_has", "day_out", "fear_meet", "fear_run", "fear_talk", "fear_brave",
     "fear_done", "lesson_brave", "end_happy"],
    ["open", "food_make", "food_bad", "sad_now", "asks", "comfort", "food_again", "food_good",
     "food_share", "thanks", "lesson_try", "end_happy"],
]  # fmt: skip

for _spot in SLOTS["spot"]:
    _spot["up_is"] = _spot["under"][0].upper() + _spot["under"][1:] + " was"
for _child in CHILDREN:
    _child["His_legs"] = ("His" if _child["he"] == "he" else "Her") + " legs"

_HOLE = re.compile(r"\{(\w+)\.(\w+)\}|\[(\w+)\]")


def _parts(template):
    """Splits a template into ("text", s), ("slot", name, feature) and ("rule", name) parts."""
    parts, end = [], 0
    for hole in _HOLE.finditer(template):
        if hole.start() > end:
            parts.append(("text", template[end : hole.start()]))
        slot, feature, rule = hole.groups()
        parts.append(("rule", rule) if rule else ("slot", slot, feature))
        end = hole.end()
    if end < len(template):
        parts.append(("text", template[end:]))
    return parts


_PARTS = {name: [_parts(a) for a in alternatives] for name, alternatives in RULES.items()}
SENTENCE_RULES = sorted({rule for plot in PLOTS for rule in plot})


def _allowed(env, slot, entry):
    for pair in DISTINCT:
        if slot in pair:
            other = pair[1 - pair.index(slot)]
            if env.get(other) is entry:
                return False
    return True


def _write(rng, rule, env):
    text = ""
    for part in rng.choice(_PARTS[rule]):
        if part[0] == "text":
            text += part[1]
        elif part[0] == "rule":
            text += _write(rng, part[1], env)
        else:
            text += env[part[1]][part[2]]
    return text


def story(rng):
    """One story as a single line of text; `rng` is a random.Random."""
    env = {}
    for slot, entries in SLOTS.items():
        env[slot] = rng.choice([e for e in entries if _allowed(env, slot, e)])
    return " ".join(_write(rng, rule, env) for rule in rng.choice(PLOTS))


def _match(parts, text, position, env):
    """Yields (end, env) for every way in which `parts` derive a prefix of text[position:]."""
    if not parts:
        yield position, env
        return
    head, rest = parts[0], parts[1:]
    if head[0] == "text":
        if text.startswith(head[1], position):
            yield from _match(rest, text, position + len(head[1]), env)
    elif head[0] == "rule":
        for alternative in _PARTS[head[1]]:
            yield from _match(alternative + rest, text, position, env)
    else:
        slot, feature = head[1], head[2]
        for entry in [env[slot]] if slot in env else SLOTS[slot]:
            word = entry[feature]
            if text.startswith(word, position) and _allowed(env, slot, entry):
                yield from _match(rest, text, position + len(word), {**env, slot: entry})


def _derivations(rule, sentence, env):
    for alternative in _PARTS[rule]:
        for end, bound in _match(alternative, sentence, 0, env):
            if end == len(sentence):
                yield bound


def parses(sentence):
    """Whether `sentence` (with its full stop, no space around it) is derivable from the grammar."""
    return any(True for rule in SENTENCE_RULES for _ in _derivations(rule, sentence, {}))


def sentences(text):
    """Splits text after each full stop that white space or the end follows.

    `."` at the end of a sentence also ends it; question and exclamation marks only occur in quotes.
    """
    return [s for s in re.split(r'(?<=\.)\s+|(?<=\.")\s+', text.strip()) if s]


def parses_story(text):
    """Whether the whole text is one plot with one binding of the slots from beginning to end."""

    def follow(plot, parts, env):
        if not plot:
            return True
        return any(follow(plot[1:], parts[1:], e) for e in _derivations(plot[0], parts[0], env))

    parts = sentences(text)
    return any(len(plot) == len(parts) and follow(plot, parts, {}) for plot in PLOTS)
