"""Where sentences of many languages end, and which marks stay with a word that moves."""

from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.scramble.sentences import TextSpan, find_sentences, word_slots
from stimuli.scramble.text import scramble_text
from stimuli.words import nfc

# One line a text; | stands where one sentence ends and the next begins.
SENTENCES = {
    "de": """
        Wir sahen z. B. Hunde und Katzen dort.| Danach gingen wir heim.
        Wir sahen z.B. Hunde und Katzen dort.| Danach gingen wir heim.
        In der Regel, d. h. fast immer, i. d. R. Montags, kam er.| Dann nicht.
        Cäsar starb 44 v. Chr. Rom trauerte, und 14 n. Chr. Augustus.
        Er starb 14 n. Chr.| Danach kam Tiberius.
        Wir sahen u. a. Hunde, Katzen o. Ä. Peter schlief.
        Es gab Birnen o. Ä.| Wir aßen sie.
        Das ist z. T. Unsinn (s. o. Kapitel 3).| Er ging.
        Z. B. Hunde bellen.| D. h. Katzen nicht.
        Der 2. Weltkrieg endete 1945.| Danach begann der Kalte Krieg.
        Er wurde 2.| Danach ging er.
        Im 19. Jahrhundert lebte Ludwig XIV. Frankreichs Sonnenkönig nicht mehr.
        Am 3. Mai, am 4. 5. 2020 und am 17. Juni kam er.| Es regnete.
        Er hat 30.| Sie hat 20.| Die Müller & Co. KG zahlt.
        1. Hunde bellen laut.| 2. Katzen schlafen.
        Im Jahr 1945.| Hunde bellten.
        Er sagte: „Komm her.“| Dann ging er.
        Er sagte: »Komm her.«| Dann ging er.
        Er sagte: „Sie rief: ‚Komm her.‘“| Dann ging er.
        Er sagte: ‚Komm her.‘| Dann ging er.
        „Komm!“, rief er.| „Wohin?“ fragte sie.| „Heim!“| Peter lachte.
        Prof. Dr. Meier wohnt in der Goethestr. 5.| Er mag Äpfel, Birnen usw.| Peter auch.
        Das kostet ca. 5 Mio. Euro bzw. Dollar.| Vgl. Abb. 3 auf S. 7.| Fertig!
        """,
    "fr": """
        « Viens ici. » Puis il partit.
        Il dit : « Viens ici ! »| Paul partit.
        « Viens ici ? » demanda M. Dupont.| Elle rit.
        M. Le Pen et Mme Dupont, p. ex. Marie, vinrent.| Puis ils partirent.
        Rome, en 44 av. J.-C. César mourut.| En 14 apr. J.-C.| Il mourut.
        Il vit J.-P. Sartre, c.-à-d. Jean-Paul.| Voir p. 5, fig. 3.
        Des chiens, des chats, etc.| Paul partit.| C’est à 10 m.| Il court.
        """,
    "es": """
        El Sr. García vive en EE. UU. desde ayer.| Luego se fue.
        Vive en los EE. UU.| Luego se fue.
        Animales, p. ej. Perros y gatos.| ¿Qué hora es?| ¡Vamos!| Son las 5 p. m. y ya.
        —¿Vienes? —preguntó la Sra. López.| —No.| Ella se fue.
        Murió en 44 a. C.| Después vino Augusto.
        ¿Sí?| ¡Claro que sí!| «Ven aquí.»| Después se fue.
        """,
    "el": """
        Τι ώρα είναι;| Ο Άρης γέλασε.
        Είδαμε π.χ. Σκύλους και γάτες κ.λπ.| Μετά φύγαμε.
        «Έλα εδώ.»| Μετά έφυγε ο κ. Παπαδόπουλος.
        Ήρθε στις 5 μ.μ.| Μετά έφυγε.
        """,
    "ru": """
        Мы видели птиц, т. е. Ласточек и т. д.| Потом ушли.
        В 1945 г. Германия капитулировала.| Он родился в 1980 г.| Потом уехал.
        Он жил в г. Москва на ул. Ленина, д. 5.| Потом уехал.
        А. С. Пушкин и др. Поэты жили в XIX в. Россия росла.
        «Иди сюда!» — сказал он.| Потом ушёл.
        — Иди сюда! — сказал он.| — Зачем?| Все молчали.
        Рим, 44 г. до н. э. Цезарь умер.
        """,
    "it": """
        Cani, gatti, ecc.| Poi andammo via.
        L'ing. Rossi è qui.| È un po' tardi.
        Animali, p. es. Cani, con il sig. Rossi.| Poi morì nel 44 a. C.| Allora venne Augusto.
        """,
    "nl": """
        Wij zagen d.w.z. Honden, bijv. Fikkie, en dhr. Jansen.| Toen gingen we.
        Hij stierf in 14 n. Chr.| Daarna kwam Tiberius.
        """,
    "pt": "O Sr. Silva viu animais, p. ex. Cães, em 5 a. C. Roma.| Depois saiu.| Cães, gatos, etc.| Ele saiu.",
    "pl": """
        Widzieliśmy m.in. Psy, np. Burka, i prof. Nowaka.| Potem poszliśmy.
        W 1945 r. Niemcy skapitulowały.| Urodził się w 1980 r.| Potem wyjechał.
        To był 2. dzień.| Był 3.| Wtedy poszedł.
        """,
    "cs": """
        Viděli jsme např. Psy, tj. Alíka, a prof. Nováka.| Pak jsme šli.
        Byla 2. světová válka, 3. 5. 1945.| Byl 2.| Potom odešel.
        """,
    "sv": "Vi såg t.ex. Hundar, bl.a. Karo, kl. 5.| Sedan gick vi.| Han sade: »Kom hit.»| Sedan gick han.",
    "da": "Vi så f.eks. Hunde den 2. maj.| Hun blev 2.| Derefter gik hun.| Hunde, katte osv.| Peter gik.",
    "nb": "Vi så bl.a. Karo den 17. mai.| Hun ble nr. 2.| Deretter gikk hun.",
    "no": "Vi så bl.a. Karo den 17. mai.| Hun ble nr. 2.| Deretter gikk hun.",
    "fi": "Näimme esim. Mustin ennen 2. maailmansotaa.| Hän oli 2.| Sitten hän lähti.",
    "tr": "Ali 2. Dünya Savaşı’nı, örn. Ankara’yı anlattı.| Sonra gitti.",
    "hu": "Láttuk pl. Bodrit a 2. világháborúban.| Ő lett a 2.| Aztán elment.",
    "uk": "Він жив у м. Київ на вул. Франка і т. д.| Потім поїхав.",
    "ar": "هل جئت؟| نعم جئت.| ذهب الولد!",
    "ur": "وہ آیا۔| وہ گیا۔",
    "hi": "यह एक है।| वह दो है।|वह तीन है॥| अंत।",
    "hy": "Նա եկավ։| Հետո գնաց։",
    "am": "እሱ መጣ።| ሄደ።",
    "zh": "他说：“来。”|然后走了。|真的吗？|是！|「好。」|他走了。",
    "ja": "「来て。」と彼は言った。|雨だ！|行く？|彼は「はい。」、と言った。|「来て。」|彼は去った。|"
    "雨（小雨。）が降った。|（終わり。）|次。",
    "en": """
        He came from St. Louis.| He left Main St.| She stayed.
        1. Dogs bark.| 2. Cats sleep.| He counted to 3.| Then he left.
        It costs 3.5 or 1,250.| Is it?| Yes!
        Dr. Smith met J. Doe, e.g. at 5 p.m. today.| Fine.
        He came from the U.S. in May.| She stayed.
        “Stop!” he said.| “Why?”| Nobody knew…
        Well… maybe.| Wait... no.
        no capitals here.| still two.
        So did I.| They left.
        See news.example.com.| It helps.
        The cat sat.| No. 5 ran on Sat. 3 Jan. 2020.| So.| Nine.
        She works at Dell Inc. as a clerk, etc.| They left.
        At 5 p.m.| She left.
        The U.S. Army left the U.S.| The war ended.
        By plan B.| Then Mr. J. He came.
        Bands, e.g. The Who, at 5 p.m. Monday.
        He saw J. Doe Jr.| Peter left, e. g. Mondays, i. e. never.| Done; He left.
        “Come here.”| Then he left.| ‘Why?’| (Nobody knew.)| Then…| Silence.
        """,
}  # fmt: skip
CUTS = {
    language: [line.strip() for line in lines.strip().splitlines() if "« Viens ici. »" not in line]
    for language, lines in SENTENCES.items()
}
TEXTS = [(language, nfc(line.replace("|", ""))) for language, lines in CUTS.items() for line in lines]


@pytest.mark.parametrize("language", CUTS)
def test_sentences_of_every_language_end_where_its_readers_end_them(language):
    for line in CUTS[language]:
        cut = [nfc(sentence.strip()) for sentence in line.split("|")]
        text = nfc(line.replace("|", ""))
        assert [text[one.begin : one.end] for one in find_sentences(text, language)] == cut


@pytest.mark.parametrize("gap", [" ", "\u00a0", "\u202f", "\u2009"])
def test_french_quotes_close_after_their_inner_space_whatever_its_width(gap):
    said, then = f"Il dit «{gap}Viens ici.{gap}»", "Puis il partit."
    text = f"{said} {then}"
    assert [text[one.begin : one.end] for one in find_sentences(text, "fr")] == [said, then]


GERMAN = ["z. B.", "i. d. R.", "n. Chr.", "v. Chr.", "d. h.", "u. a.", "o. Ä.", "s. o.", "z. T."]


@pytest.mark.parametrize("gap", ["", " ", "\u202f"])
def test_a_german_abbreviation_of_several_parts_is_one_word_with_its_stops_and_spaces(gap):
    for short in GERMAN:
        written = short.replace(" ", gap)
        text = f"Wir sahen {written} Hunde und Katzen dort. Danach gingen wir heim."
        assert scramble_text(text, "words:reverse", seed=1, language="de").text == (
            f"Dort Katzen und Hunde {written} sahen wir. Heim wir gingen danach."
        )
        assert scramble_text(text, "sentences:reverse", seed=1, language="de").text == (
            f"Danach gingen wir heim. Wir sahen {written} Hunde und Katzen dort."
        )


@pytest.mark.parametrize("mark", [";", "\u037e"])
def test_the_greek_question_mark_ends_a_sentence_in_greek_only(mark):
    text = f"Τι ώρα είναι{mark} Ο Άρης γέλασε."
    shown = {
        language: scramble_text(text, "sentences:reverse", seed=1, language=language).text
        for language in ("el", "el-CY", "ru", "en")
    }
    assert shown["el"] == shown["el-CY"] == "Ο Άρης γέλασε. Τι ώρα είναι;"
    assert shown["ru"] == shown["en"] == nfc(text)


@pytest.mark.parametrize(
    ("language", "text", "shown"),
    [
        ("de", "Der 2. Weltkrieg endete 1945.", "1945 endete Weltkrieg 2. der."),
        ("de", "Es gab Birnen o. Ä.", "o. Ä. Birnen gab es."),
        ("de", "Äpfel usw. kaufte er.", "Er kaufte usw. Äpfel."),
        ("de", "Er sagte: „Komm her.“", "Her Komm: „sagte er.“"),
        ("fr", "Il vécut avant 44 av. J.-C. à Rome.", "Rome à av. J.-C. 44 avant vécut il."),
        ("fr", "« Viens ici. »", "« Ici viens. »"),
        ("es", "¿Qué hora es?", "¿Es hora qué?"),
        ("es", "Vive en los EE. UU.", "EE. UU. los en vive."),
        ("es", "—Sí, señor.", "—Señor, sí."),
        ("el", "Τι ώρα είναι;", "Είναι ώρα τι;"),
        ("ru", "Птицы и т. д. летят.", "Летят т. д. и птицы."),
        ("it", "Un po’ di pane.", "Pane di po’ un."),
        ("nl", "Wij komen ’s avonds.", "Avonds ’s komen wij."),
        ("en", "The nations' currencies' values fell.", "Fell values currencies' nations' the."),
        ("en", "The nations’ values fell.", "Fell values nations’ the."),
        ("en", "He came 'fore noon in the ’90s.", "’90s the in noon 'fore came he."),
        ("en", "We like rock 'n' roll.", "Roll 'n' rock like we."),
        ("en", "We like rock ’n’ roll.", "Roll ’n’ rock like we."),
        ("en", "They said 'yes' and 'dogs' now.", "Now dogs 'and' yes 'said' they."),
        ("en", "They said 'the dogs' bones' now.", "Now bones 'dogs' the said' they."),
        ("en", "They said ‘the dogs’ now.", "Now dogs ‘the said’ they."),
        ("en", "They saw ``the dogs'' now.", "Now dogs ``the saw'' they."),
        ("en", "’Twas a dark night.", "Night dark a ’twas."),
        ("en", "See 10.1000/xyz123 now.", "Now 10.1000/xyz123 see."),
        ("en", r"Open C:\data\file.txt or /usr/bin/x now.", r"Now /usr/bin/x or C:\data\file.txt open."),
        ("en", "Ask @name about #tag today.", "Today #tag about @name ask."),
    ],
)  # fmt: skip
def test_stops_spaces_and_apostrophes_of_a_word_move_with_it(language, text, shown):
    assert scramble_text(text, "words:reverse", seed=1, language=language).text == nfc(shown)


pieces = st.sampled_from(
    ["z. B.", "Der", "2.", "Hunde", "„Komm.“", "« Oui. »", "nations'", "'fore", "’90s", "т. е.", "¿Qué?", "Ist;", "J.-C.",
     "etc.", "—", "…", "。", "»Ja«", "p.m.", "\n", "1.", "usw.", "C:\\x\\y", "#tag"]
)  # fmt: skip
texts = st.one_of(
    st.sampled_from(TEXTS),
    st.tuples(
        st.sampled_from(sorted(SENTENCES)),
        st.lists(st.tuples(pieces, st.sampled_from([" ", "\u00a0", "  ", "\n", ""])), max_size=12).map(
            lambda parts: nfc("".join(itertools.chain.from_iterable(parts)))
        ),
    ),
    st.tuples(st.sampled_from(sorted(SENTENCES)), st.text(max_size=60).map(nfc)),
)


@given(texts)
def test_sentences_with_the_gaps_between_them_give_the_text_back(given_text):
    language, text = given_text
    spans = find_sentences(text, language)
    edges = [0, *itertools.chain.from_iterable(spans), len(text)]
    assert edges == sorted(edges) and all(begin < end for begin, end in spans)
    gaps = [text[edges[place] : edges[place + 1]] for place in range(0, len(edges), 2)]
    assert not any(gap.strip() for gap in gaps)


@given(texts)
def test_words_of_a_sentence_lie_in_order_within_it_and_hold_a_letter_or_digit(given_text):
    language, text = given_text
    for span in find_sentences(text, language):
        slots = word_slots(text, span, language)
        edges = [span.begin, *itertools.chain.from_iterable(slots), span.end]
        assert edges == sorted(edges)
        assert all(any(map(str.isalnum, text[slot.begin : slot.end])) for slot in slots)
        assert not any(map(str.isalnum, text[span.begin : slots[0].begin if slots else span.begin]))


def _bare(text):
    return "".join(one for one in text.casefold() if unicodedata.category(one)[0] in "LNM")


def test_words_reversed_twice_give_each_sentence_back_up_to_capitals_and_marks():
    for language, text in TEXTS:
        for span in find_sentences(text, language):
            sentence = text[span.begin : span.end]
            shown = scramble_text(sentence, "words:reverse", seed=1, language=language).text
            slots = word_slots(shown, TextSpan(0, len(shown)), language)
            words = [shown[slot.begin : slot.end] for slot in slots]
            assert len(words) < 2 or shown != sentence
            assert _bare("".join(words[::-1])) == _bare(sentence)
