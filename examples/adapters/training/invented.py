"""Invented values for the gaps of templates: persons, addresses, numbers, and things that only look like them."""

from __future__ import annotations

import ipaddress
import random
import string
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Final

from faker import Faker

__all__ = ["MARKED", "Inventor"]

MARKED: Final[Mapping[str, str]] = {
    "PERSON": "PERSON",
    "FIRST": "PERSON",
    "LAST": "PERSON",
    "EMAIL": "EMAIL",
    "PHONE": "PHONE",
    "ADDRESS": "ADDRESS",
    "STREET": "ADDRESS",
    "CARD": "CREDIT_CARD",
    "SSN": "ID_NUMBER",
    "PASSPORT": "ID_NUMBER",
    "LICENSE": "ID_NUMBER",
    "NATID": "ID_NUMBER",
    "DOB": "DATE_OF_BIRTH",
    "IP": "IP_ADDRESS",
}
"""Gap -> the label of what fills it; what fills any other gap is no personal data."""

_NAMES = [
    "en_US",
    "en_US",
    "en_GB",
    "en_IN",
    "en_NG",
    "en_KE",
    "de_DE",
    "fr_FR",
    "es_ES",
    "es_MX",
    "it_IT",
    "nl_NL",
    "sv_SE",
    "no_NO",
    "da_DK",
    "fi_FI",
    "pl_PL",
    "cs_CZ",
    "pt_BR",
    "hr_HR",
    "hu_HU",
    "ro_RO",
    "tr_TR",
    "vi_VN",
    "id_ID",
    "yo_NG",
    "ha_NG",
    "tw_GH",
    "zu_ZA",
    "ga_IE",
    "is_IS",
    "et_EE",
]
_PLACES = [
    "en_US",
    "en_US",
    "en_US",
    "en_GB",
    "en_GB",
    "en_CA",
    "en_AU",
    "en_IE",
    "de_DE",
    "fr_FR",
    "es_ES",
    "it_IT",
    "nl_NL",
    "sv_SE",
    "pl_PL",
    "pt_BR",
    "da_DK",
    "fi_FI",
    "no_NO",
]
_MONTHS = (
    [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
)
_FOREIGN_MONTHS = (
    [
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ],
    [
        "janvier",
        "février",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
    ],
    [
        "enero",
        "febrero",
        "marzo",
        "abril",
        "mayo",
        "junio",
        "julio",
        "agosto",
        "septiembre",
        "octubre",
        "noviembre",
        "diciembre",
    ],
)
_PHONES = (
    "(###) ###-####", "###-###-####", "###.###.####", "+1 ### ### ####", "+1-###-###-####", "1-800-###-####", "555-####",
    "+44 20 #### ####", "+44 7### ######", "07### ######", "0### ### ####", "01#### ######", "+49 30 #######", "+49 1## ########",
    "030 #### ####", "01## #######", "089/######", "+33 # ## ## ## ##", "0# ## ## ## ##", "0#.##.##.##.##", "+34 ### ### ###", "### ## ## ##",
    "+39 0# #### ####", "+91 ##### #####", "+81 3-####-####", "+61 4## ### ###", "+31 6 ########", "+46 70 ### ## ##", "+47 ### ## ###",
    "+48 ### ### ###", "+55 11 9####-####", "+234 8## ### ####", "+86 1## #### ####", "00## ## #######", "##########", "+###########",
)  # fmt: skip
_CARDS = (
    "4### #### #### ####", "4###-####-####-####", "4###############", "5### #### #### ####", "5###-####-####-####", "5###############",
    "3### ###### #####", "3##############", "2### #### #### ####", "6### #### #### ####", "6011-####-####-####", "30## ###### ####", "3###-######-#####",
)  # fmt: skip
_PASSPORTS = (
    "?########",
    "?#######",
    "??#######",
    "#########",
    "?##?#####",
    "?#?##?###",
    "??? ######",
    "?## #######",
    "##??#####",
)
_LICENSES = (
    "?#######",
    "?###-####-####",
    "########",
    "?####-#####-#####",
    "??####-####",
    "##-###-###",
    "?#### ##### #####",
    "?????######??##?",
)
_NATIONAL = (
    "?? ## ## ## ?", "??######?", "########?", "### ### ###", "#### #### ####", "###########", "######-####", "##.###.###-?",
    "## ### ### ###", "######/####", "###.###.###-##", "?#######?", "######-#######", "# ## ## ## ### ###",
)  # fmt: skip
_ORDERS = (
    "######",
    "#####",
    "???-####",
    "INV-#####",
    "ORD-####-##",
    "#######-##",
    "?##-###",
    "PX########",
    "BK####",
    "20##-####",
    "????##",
)
_SMALL_WORDS = [
    "shop",
    "mail",
    "cloud",
    "river",
    "stone",
    "north",
    "blue",
    "green",
    "data",
    "labs",
    "tree",
    "star",
    "home",
    "fast",
    "web",
    "net",
    "box",
    "post",
    "inbox",
    "works",
    "media",
    "team",
    "light",
    "field",
    "hill",
]
_ENDINGS = [
    "com",
    "com",
    "org",
    "net",
    "io",
    "de",
    "co.uk",
    "fr",
    "es",
    "it",
    "nl",
    "eu",
    "example",
    "test",
    "dev",
    "info",
    "se",
    "no",
    "pl",
    "ca",
]


class Inventor:
    """Invents values; the same seed gives the same values with the same version of faker."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._fakers = {locale: Faker(locale) for locale in sorted({*_NAMES, *_PLACES})}
        for number, faker in enumerate(self._fakers.values()):
            faker.seed_instance(seed + number)
        self._makers: dict[str, Callable[[], str]] = {
            "PERSON": self._person,
            "FIRST": lambda: self._named().first_name(),
            "LAST": lambda: self._named().last_name(),
            "EMAIL": self._email,
            "PHONE": lambda: self._number(_PHONES),
            "ADDRESS": lambda: self._placed().address().replace("\n", ", "),
            "STREET": lambda: self._placed().street_address().replace("\n", ", "),
            "CARD": lambda: self._number(_CARDS),
            "SSN": lambda: self._number(("###-##-####", "###-##-####", "#########", "### ## ####")),
            "PASSPORT": lambda: self._number(_PASSPORTS),
            "LICENSE": lambda: self._number(_LICENSES),
            "NATID": lambda: self._number(_NATIONAL),
            "DOB": lambda: self._date(1925, 2022),
            "IP": self._ip,
            "DATE": lambda: self._date(1990, 2030),
            "TIME": self._time,
            "MONEY": self._money,
            "ORDER": lambda: self._random.choice(("", "", "#", "no. ")) + self._number(_ORDERS),
            "NUM": lambda: str(self._random.choice((self._random.randint(1, 99), self._random.randint(100, 9999)))),
            "VERSION": lambda: ".".join(str(self._random.randint(0, 20)) for _ in range(self._random.randint(2, 3))),
            "COMPANY": lambda: self._placed().company(),
            "CITY": lambda: self._placed().city(),
            "URL": lambda: f"https://{self._domain()}/{self._random.choice(_SMALL_WORDS)}",
        }

    def value(self, gap: str) -> str:
        """Invent what fills a gap; never with white space around it."""
        return " ".join(self._makers[gap]().split())

    def _named(self) -> Faker:
        return self._fakers[self._random.choice(_NAMES)]

    def _placed(self) -> Faker:
        return self._fakers[self._random.choice(_PLACES)]

    def _person(self) -> str:
        faker = self._named()
        first, last = faker.first_name(), faker.last_name()
        shape = self._random.random()
        if shape < 0.06:
            return f"{first[0]}. {last}"
        if shape < 0.12:
            return f"{first} {self._random.choice(string.ascii_uppercase)}. {last}"
        if shape < 0.20:
            return f"{first} {faker.first_name()} {last}"
        if shape < 0.25:
            return f"{first} {last}-{faker.last_name()}"
        if shape < 0.29:
            return f"{last}, {first}"
        return f"{first} {last}"

    def _email(self) -> str:
        faker = self._named()
        first, last = _plain(faker.first_name()), _plain(faker.last_name())
        word, number = self._random.choice(_SMALL_WORDS), self._random.randint(1, 2010)
        name = self._random.choice(
            (
                f"{first}.{last}",
                f"{first}_{last}",
                f"{first[:1]}.{last}",
                f"{first}{number}",
                f"{first[:1]}{last}",
                f"{last}-{word}",
                f"{word}{number}",
                f"{first}+{word}",
                f"{word}.{word}{number}",
                self._random.choice(
                    ("info", "support", "sales", "office", "admin", "no-reply", "jobs", "contact", "hello")
                ),
            )
        )
        return f"{name}@{self._domain()}"

    def _domain(self) -> str:
        words = self._random.sample(_SMALL_WORDS, 2)
        host = self._random.choice((words[0], "".join(words), "-".join(words), f"{words[0]}.{words[1]}"))
        return f"{host}.{self._random.choice(_ENDINGS)}"

    def _ip(self) -> str:
        shape = self._random.random()
        if shape < 0.2:
            return str(
                ipaddress.IPv6Address(
                    (0x20010DB8 << 96) | self._random.getrandbits(self._random.choice((16, 32, 64, 96)))
                )
            )
        if shape < 0.5:
            return str(ipaddress.IPv4Address((192 << 24 | 168 << 16) + self._random.getrandbits(16)))
        if shape < 0.65:
            return str(ipaddress.IPv4Address((10 << 24) + self._random.getrandbits(24)))
        return str(ipaddress.IPv4Address(self._random.randint(1 << 24, (224 << 24) - 1)))

    def _date(self, first: int, last: int) -> str:
        day = date(first, 1, 1) + timedelta(days=self._random.randrange((last - first) * 365))
        month = self._random.choice(_MONTHS)[day.month - 1]
        foreign = self._random.choice(_FOREIGN_MONTHS)[day.month - 1]
        ordinal = f"{day.day}{'th' if 10 < day.day < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day.day % 10, 'th')}"
        return self._random.choice(
            (
                day.isoformat(),
                f"{day:%d/%m/%Y}",
                f"{day:%m/%d/%Y}",
                f"{day:%d.%m.%Y}",
                f"{day:%m-%d-%Y}",
                f"{day.day}.{day.month}.{day:%y}",
                f"{day.day} {month} {day.year}",
                f"{month} {day.day}, {day.year}",
                f"{month} {ordinal}, {day.year}",
                f"{ordinal} of {month} {day.year}",
                f"{day.day} {month}",
                f"{day.day} {foreign} {day.year}",
                f"{day.day}. {foreign} {day.year}",
            )
        )

    def _time(self) -> str:
        hour, minute = self._random.randint(0, 23), self._random.randint(0, 59)
        return self._random.choice(
            (
                f"{hour}:{minute:02}",
                f"{hour:02}:{minute:02}:30",
                f"{hour % 12 + 1} pm",
                f"{hour % 12 + 1} o'clock",
                "noon",
            )
        )

    def _money(self) -> str:
        amount = self._random.choice((self._random.randint(2, 99), self._random.randint(100, 25000)))
        return self._random.choice(
            (f"${amount}", f"{amount} euros", f"€{amount:,}.50", f"{amount} dollars", f"£{amount:,}", f"{amount} EUR")
        )

    def _number(self, patterns: tuple[str, ...]) -> str:
        filled = {"#": string.digits, "?": string.ascii_uppercase}
        return "".join(
            self._random.choice(filled[sign]) if sign in filled else sign for sign in self._random.choice(patterns)
        )


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.lower())
    return "".join(letter for letter in letters if letter in string.ascii_lowercase) or "x"
